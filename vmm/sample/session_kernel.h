// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a session knows of the guest's kernel: its unwind tables, and where it keeps tasks, mappings, cgroups and
 * modules; or why these are not known. Main thread only. vCPU threads read `unwind` and `layout` while they sample; the
 * main thread does not change them then.
 */
#ifndef VPROF_SAMPLE_SESSION_KERNEL_H
#define VPROF_SAMPLE_SESSION_KERNEL_H

#include "counter/route.h"
#include "guest/guest.h"
#include "guest/os.h"
#include "sample/session_config.h"

struct session_kernel {
	struct guest *guest;
	const struct guest_os *os;   /* of its kernel; until that is known, the likeliest one */
	struct unwind_tables *orc;   /* NULL: not needed yet, or the kernel has none */
	struct call_sites *sites;    /* the same */
	struct user_text *text;      /* of its programs, where stack pointers are searched for; NULL */
	char *orc_why;               /* what is wrong with the tables that it has; NULL */
	struct unwind_config unwind; /* for the last configuration with call chains */
	struct os_kernel *layout;    /* NULL: not needed yet */
	GPtrArray *old;              /* of earlier kernels of the guest; they may still be in use */
};

/* The guest stays the caller's. */
void session_kernel_init(struct session_kernel *kernel, struct guest *guest);
void session_kernel_deinit(struct session_kernel *kernel);

/*
 * Reads what this configuration needs and is not known yet; opens the kernel's image once. `route`: that samples; NULL.
 * Having no tasks, or ORC tables that cannot be used, is not an error, unless the configuration requires ORC. Errors:
 * SESSION_ERROR_RANGE, those of image_open, UNWIND_ERROR.
 */
bool session_kernel_prepare(struct session_kernel *kernel, const struct session_config *config,
                            const struct counter_route *route, GError **error);
/*
 * How counters beside the session unwind, by this configuration, which has call chains and needs no route. What
 * *unwind points to stays until session_kernel_deinit. Errors: SESSION_ERROR_RANGE, those of image_open, UNWIND_ERROR.
 */
bool session_kernel_unwind(struct session_kernel *kernel, const struct session_config *config,
                           struct unwind_config *unwind, GError **error);
/* Whether kernels of its system for its processor may have unwind tables. */
bool session_kernel_may_have_tables(const struct session_kernel *kernel);
/* The guest has another kernel. */
void session_kernel_forget(struct session_kernel *kernel);

/*
 * Walks by the kernel's own page tables, to which a vCPU leads now; false where none does. Main thread. `layout`: of
 * the kernel; NULL: not known.
 */
bool session_kernel_tables(const struct os_kernel *layout, struct guest *guest, struct page_walk *walk);

/* How the kernel is unwound, independent of the configuration: by its tables, if it has any and its image is known. */
struct unwind_config session_kernel_unwinding(struct session_kernel *kernel);

#endif
