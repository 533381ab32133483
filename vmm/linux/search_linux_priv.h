// SPDX-License-Identifier: BSD-2-Clause
/*
 * search_linux.c, and what leads to Linux in a way of the processor: x86/search_x86.c and arm64/search_arm64.c, both in
 * every build.
 */
#ifndef VPROF_LINUX_SEARCH_LINUX_PRIV_H
#define VPROF_LINUX_SEARCH_LINUX_PRIV_H

#include "guest/gva_range.h"
#include "guest/kernel_find.h"
#include "guest/os.h"

/* struct os_search */
struct search_processor {
	bool (*early)(const struct seen_vcpu *registers, GError **error);
	bool (*find)(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error);
	bool (*slide)(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found,
	              GError **error);
	uint64_t (*mark)(struct guest *guest, const struct seen_vcpu *registers);
	/* NULL: registers are always known. */
	bool (*scan)(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool five_levels,
	             struct seen_vcpu *registers);
	/* How far the kernel around `code` reaches, at multiples of a page; nothing where it is not mapped. */
	struct gva_range (*extent)(const struct page_walk *walk, uint64_t code);
};
extern const struct search_processor search_x86, search_arm64;

static inline const struct search_processor *search_processor_of(enum guest_processor processor)
{
	return processor == GUEST_ARM64 ? &search_arm64 : &search_x86;
}

/* KERNEL_FIND_ERROR_NONE; returns false. */
bool search_none(const char *what, GError **error);

#endif
