// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a session knows of the guest's kernel: its unwind tables, and where it keeps tasks, mappings, cgroups and
 * modules; or why these are not known. Main thread only. vCPU threads read `unwind` and `layout` while they sample; the
 * main thread does not change them then.
 */
#ifndef VPROF_SAMPLE_SESSION_KERNEL_H
#define VPROF_SAMPLE_SESSION_KERNEL_H

#include "guest/guest.h"
#include "guest/kernel.h"
#include "sample/session_config.h"

struct session_kernel {
	struct guest *guest;
	struct orc *orc;                   /* NULL: not needed yet, or the kernel has none */
	char *orc_why;                     /* why it has none; NULL */
	struct unwind_config unwind;       /* for the last configuration with call chains */
	struct kernel_layout *layout;      /* NULL: not needed yet */
	GPtrArray *old_layouts, *old_orcs; /* of earlier kernels of the guest; they may still be in use */
};

/* The guest stays the caller's. */
void session_kernel_init(struct session_kernel *kernel, struct guest *guest);
void session_kernel_deinit(struct session_kernel *kernel);

/*
 * Reads what this configuration needs and is not known yet; opens the kernel's image once. `by_route`: a route samples.
 * Having no tasks is not an error. Errors: SESSION_ERROR_RANGE, those of orc_load.
 */
bool session_kernel_prepare(struct session_kernel *kernel, const struct session_config *config, bool by_route,
                            GError **error);
/* The guest has another kernel. */
void session_kernel_forget(struct session_kernel *kernel);

/* The unwind tables, independent of the configuration; NULL: the kernel has none, or its image is not known. */
const struct orc *session_kernel_orc(struct session_kernel *kernel);

#endif
