// SPDX-License-Identifier: BSD-2-Clause
/*
 * One search for the kernel of a guest, on a thread of its own: it reads the guest's memory and nothing else, ends
 * within the limits of a look (guest/look.h), or when it is freed, and hands its result to the main thread, which
 * serves clients meanwhile.
 */
#ifndef VPROF_ATTACH_KERNEL_SEARCH_H
#define VPROF_ATTACH_KERNEL_SEARCH_H

#include "attach/guest_memory.h"
#include "guest/kernel_find.h"
#include "guest/os.h"

struct kernel_search_config {
	struct guest *guest;
	/* Copied: of any vCPUs, by which it is looked for. One that runs no kernel yet counts if no other says more. */
	const struct seen_vcpu *registers;
	size_t n; /* GUEST_VCPUS_MAX at most */
	/* As for kernel_find; both outlive the search. */
	const char *kernel_path;
	int kernel_file;
	/* Its page tables are searched for first, on from `scan`, in all of this memory; NULL: they are not. */
	struct guest_memory *memory;
	bool parts; /* and what is made of it for sampling (guest/os.h), */
	bool sites; /* the sites of its calls, too */
	struct os_scan scan;
	bool five_levels;
};

struct kernel_search_result {
	struct kernel_found found;
	struct os_parts *parts;   /* NULL: not asked for */
	GError *why;              /* NULL: it was found */
	bool gave_up;             /* a limit ended it */
	struct os_scan scan;      /* where the next one goes on; all zero: at the start */
	struct seen_vcpu scanned; /* by which it was found then; long_mode is false: by none of a scan */
	int64_t took_us;          /* of the thread's CPU time: a busy host changes nothing */
};

struct kernel_search;

struct kernel_search *kernel_search_new(const struct kernel_search_config *config);
/* Here and now, on the caller's thread. */
void kernel_search_run(struct kernel_search *search);
/* On a thread. `done` is called once on the main thread, from the default GMainContext, unless it is freed before. */
void kernel_search_begin(struct kernel_search *search, void (*done)(void *data), void *data);
/* When it is done. What the caller takes of it, it sets to zero there. */
struct kernel_search_result *kernel_search_result(struct kernel_search *search);
/* Ends it first, within a second. NULL is fine. */
void kernel_search_free(struct kernel_search *search);

#endif
