// SPDX-License-Identifier: BSD-2-Clause
/*
 * The RAM of a guest in another process: which guest physical addresses lie where in the VMM's address space, and reads
 * through /proc/PID/mem. Its permission is checked once, when it is opened (ptrace(2), PTRACE_MODE_ATTACH). Reads
 * neither stop nor slow the guest; they see what it is writing.
 */
#ifndef VPROF_ATTACH_GUEST_MEMORY_H
#define VPROF_ATTACH_GUEST_MEMORY_H

#include <sys/types.h>

#include "attach/hmp.h"
#include "attach/kvm_machine.h"
#include "attach/monitor.h"
#include "guest/os.h"

#define GUEST_MEMORY_ERROR guest_memory_error_quark()
GQuark guest_memory_error_quark(void);
enum guest_memory_error {
	GUEST_MEMORY_ERROR_DENIED, /* the process's memory may not be read */
	GUEST_MEMORY_ERROR_MAP,    /* QEMU does not say where the guest's RAM is */
};

struct guest_memory;

struct guest_memory *guest_memory_open(pid_t pid, GError **error);
void guest_memory_free(struct guest_memory *memory);

/* The map as KVM has it: sorted, not overlapping. */
void guest_memory_set(struct guest_memory *memory, const struct kvm_machine_range *ranges, size_t n);

/* Asks QEMU for the map anew, as after memory was plugged in or the guest reset. An old one stays when this fails. */
bool guest_memory_map(struct guest_memory *memory, struct monitor *monitor, GError **error);

/*
 * A os_scan_next; `data`: the guest_memory. Pages that the guest has not used yet are left out: reading one would
 * give it memory. False, too, when /proc/PID/pagemap cannot be read. Any thread.
 */
bool guest_memory_next(void *data, uint64_t from, struct os_scan_run *run);

/* /proc/PID/mem of the VMM, open for reading; -1 for NULL. */
int guest_memory_file(const struct guest_memory *memory);

/* False when any byte is not RAM, or there is no map. Any thread. */
bool guest_memory_read(struct guest_memory *memory, gpa_t from, void *to, size_t bytes);

#endif
