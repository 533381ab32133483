// SPDX-License-Identifier: BSD-2-Clause
/* Our own virtual machine on KVM: a struct guest of kind "kvm". */
#ifndef VPROF_KVM_VM_H
#define VPROF_KVM_VM_H

#include <glib.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "kvm/vm_config.h"

/* Loads the kernel and makes the machine; its vCPUs have no threads yet. Errors: HOST_, IMAGE_, BOOT_,
 * DISK_ERROR.
 */
struct guest *vm_new(const struct vm_config *config, GError **error);
/* Releases what is not yet released. */
void vm_free(struct guest *guest);

/* Starts the vCPU threads and lets them open what they need; they wait for guest_ops.start. Watchers are in place. */
bool vm_launch(struct guest *guest, GError **error);
/* Ends the guest if it is still there and waits for its threads; nothing is called back any more. */
void vm_shutdown(struct guest *guest);
/*
 * Shuts down, waits for the console's reader to take what is left (2 s at most), and closes the disks: another guest
 * may have them. The description, the memory and what was counted stay.
 */
void vm_release(struct guest *guest);

/* The exit status of a program that ran the guest to this end (VPROF_GUEST_ENDS). */
int vm_exit_status(const struct guest_end *end);

/*
 * Characters for a UART (0 or 1), or instead of the second one for the virtio port beside it, while the guest has that
 * open; returns how many found room. Main thread.
 */
size_t vm_serial_input(struct guest *guest, unsigned serial, const uint8_t *bytes, size_t n);

/* Console characters dropped because they were not read in time. */
uint64_t vm_console_dropped(struct guest *guest);

#endif
