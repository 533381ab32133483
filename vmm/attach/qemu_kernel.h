// SPDX-License-Identifier: BSD-2-Clause
/* The kernel of an attached guest: found when we come, and again after a reset. Main thread only. */
#ifndef VPROF_ATTACH_QEMU_KERNEL_H
#define VPROF_ATTACH_QEMU_KERNEL_H

#include "attach/qemu_guest.h"

/* Fills in guest->kernel_image and its like, or kernel_why. One that is not there yet is sought on. */
void qemu_kernel_look(struct qemu_guest *qemu);

/* A step of the search, if there is one. A kernel that is where the last one was is the last one. */
void qemu_kernel_follow(struct qemu_guest *qemu);

#endif
