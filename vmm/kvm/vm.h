// SPDX-License-Identifier: BSD-2-Clause
/* Our own virtual machine on KVM: a struct guest of kind "kvm". */
#ifndef VPROF_KVM_VM_H
#define VPROF_KVM_VM_H

#include <glib.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "kvm/boot/boot.h"
#include "kvm/vm_pmu.h"

#define VM_DISKS_MAX 6u

struct vm_disk {
	char *path;
	bool read_only;
};

struct vm_config {
	const char *name; /* NULL: the kernel's base name and our process id */
	const char *kernel_path;
	const char *initrd_path;  /* NULL: none */
	const char *command_line; /* the user's; see command_line.h for what is put before it; NULL: none */
	uint64_t memory_bytes;
	unsigned vcpus; /* 1..GUEST_VCPUS_MAX */
	enum boot_protocol protocol;
	bool quirks;                 /* mend what the host needs mended */
	bool stop_on_panic;          /* a Linux panic on the console ends the guest with GUEST_END_PANIC */
	double duration_s;           /* from guest_ops.start, then GUEST_END_DURATION; 0: as long as it takes */
	const struct vm_disk *disks; /* virtio-blk, /dev/vda and on */
	unsigned n_disks;            /* 0..VM_DISKS_MAX */
	int serial_fds[2];           /* where the first and the second UART's output goes; -1: nowhere. The caller's */
	enum vm_pmu_kind pmu;
	const struct kvm_pmu_event_filter *pmu_filter; /* VM_PMU_KVM; NULL: the guest may count what it likes */
};

/* Loads the kernel and makes the machine, whose vCPUs do not exist as threads yet. Errors: HOST_, IMAGE_, BOOT_,
 * DISK_ERROR.
 */
struct guest *vm_new(const struct vm_config *config, GError **error);
/* Shuts down, and waits for the console's reader to take what is left (2 s at most). */
void vm_free(struct guest *guest);

/* Starts the vCPU threads and lets them open what they need; they wait for guest_ops.start. Watchers are in place. */
bool vm_launch(struct guest *guest, GError **error);
/* Ends the guest if it is still there and waits for its threads; nothing is called back any more. */
void vm_shutdown(struct guest *guest);

/* The exit status of a program that ran the guest to this end (VPROF_GUEST_ENDS). */
int vm_exit_status(const struct guest_end *end);

/*
 * Characters for a UART (0 or 1), or instead of the second one for the virtio port beside it, while the guest has that
 * open; returns how many found room. Main thread.
 */
size_t vm_serial_input(struct guest *guest, unsigned serial, const uint8_t *bytes, size_t n);

/* Console characters dropped because nobody read them in time. */
uint64_t vm_console_dropped(struct guest *guest);

#endif
