// SPDX-License-Identifier: BSD-2-Clause
/*
 * What becomes of an attached guest: libvirt's events, the end of its process, threads that come and go with its vCPUs,
 * and the kernel that it runs after a reset. Main thread only.
 */
#ifndef VPROF_ATTACH_QEMU_LIFE_H
#define VPROF_ATTACH_QEMU_LIFE_H

#include "attach/qemu_guest.h"

/* A domain_event; `data`: the guest. */
void qemu_life_event(const char *what, void *data);

/* Once the guest's process and threads are known. */
bool qemu_life_watch(struct qemu_guest *qemu, GError **error);
void qemu_life_unwatch(struct qemu_guest *qemu);

/* Ends the profile at this time, if one was asked for. */
void qemu_life_start(struct qemu_guest *qemu);
/* Ends our part in it; the first reason counts. */
void qemu_life_end(struct qemu_guest *qemu, enum guest_end_reason reason, const char *message);

#endif
