// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest that another process runs: QEMU, under libvirt or not. It is looked at from outside, is never paused, and
 * does not notice when we come or go.
 */
#ifndef VPROF_ATTACH_QEMU_GUEST_H
#define VPROF_ATTACH_QEMU_GUEST_H

#include "attach/qemu.h"

struct asker;

struct qemu_guest_config {
	struct asker *asker; /* of a domain, or of the monitor of `pid`; taken. NULL: without a domain or a monitor */
	pid_t pid;           /* 0: the asker's domain */
	bool no_monitor;     /* the domain's is left alone */
	/*
	 * For one client that samples for long: without the monitor, libvirt is left where KVM tells a reset, a pause
	 * and the end, too, later and in fewer words; of the kernel no copy is kept that only other clients would need.
	 */
	bool lean;
	const struct os_search *const *searches; /* struct guest */
	const char *kernel_path;                 /* NULL: what the guest's memory holds */
	double duration_s;                       /* ends the profile after this time; 0: never */
};

/*
 * Finds and opens what it takes to look at the guest, by what the host says of it; nothing is changed in the guest.
 * Then, perhaps with fewer rights, qemu_guest_look reads its memory for the first time: for its kernel.
 * qemu_guest_begin does the same on a thread, and calls `looked` on the main thread then; qemu_guest_looked is what
 * came of it.
 */
struct qemu_guest *qemu_guest_new(const struct qemu_guest_config *config, GError **error);
bool qemu_guest_look(struct qemu_guest *guest, GError **error);
void qemu_guest_begin(struct qemu_guest *guest, void (*looked)(void *data), void *data);
bool qemu_guest_looked(const struct qemu_guest *guest, GError **error);
/* Closes the monitor, which a QMP socket has for one client at a time, and watches the process no more. */
void qemu_guest_detach(struct qemu_guest *guest);
void qemu_guest_free(struct qemu_guest *guest);

#endif
