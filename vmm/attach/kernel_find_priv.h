// SPDX-License-Identifier: BSD-2-Clause
/* kernel_find.c, and what it has of the processor: x86/kernel_find_x86.c and arm64/kernel_find_arm64.c. */
#ifndef VPROF_ATTACH_KERNEL_FIND_PRIV_H
#define VPROF_ATTACH_KERNEL_FIND_PRIV_H

#include "attach/kernel_find.h"
#include "guest/page_walk.h"

/* ---- the processor's ---- */

/* Whether no kernel runs yet on that vCPU, with an error that says so. */
bool kernel_arch_early(const struct seen_vcpu *registers, GError **error);
/* The kernel that memory has. On error, what is found of it is the caller's all the same. */
bool kernel_arch_find(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error);
/* Slides the kernel that was given to where the guest has it. */
bool kernel_arch_slide(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found,
                       GError **error);
/* What kernel_find_mark is made of. */
uint64_t kernel_arch_mark(struct guest *guest, const struct seen_vcpu *registers);
/* The address spaces that may have the kernel; how many. */
size_t kernel_arch_walks(struct guest *guest, const struct seen_vcpu *registers, struct page_walk walks[2]);

/* ---- for them ---- */

/* KERNEL_FIND_ERROR_NONE; returns false. */
bool kernel_find_none(const char *what, GError **error);
/* Sets the slide if it is one and the build-id is where it says then. Of several tries, the first error stays. */
bool kernel_find_slide(struct kernel_found *found, struct page_walk *walk, uint64_t slide, GError **error);

#endif
