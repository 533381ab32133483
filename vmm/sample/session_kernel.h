// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a session knows of the guest's kernel: its unwind tables, and where it keeps its tasks, mappings, cgroups and
 * modules; or why it does not know them. Main thread only; vCPU threads read `unwind` and `layout` while they sample,
 * when the main thread leaves them alone.
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
	struct unwind_config unwind;       /* as the last configuration with call chains wants it */
	struct kernel_layout *layout;      /* NULL: not needed yet */
	GPtrArray *old_layouts, *old_orcs; /* of kernels that the guest had before; others may know them */
};

/* The guest stays the caller's. */
void session_kernel_init(struct session_kernel *kernel, struct guest *guest);
void session_kernel_deinit(struct session_kernel *kernel);

/*
 * Reads what this configuration needs and is not known yet; the kernel's image is opened for it once. `by_route`: a
 * route samples. A guest without tasks is profiled all the same. Errors: SESSION_ERROR_RANGE, those of orc_load.
 */
bool session_kernel_prepare(struct session_kernel *kernel, const struct session_config *config, bool by_route,
                            GError **error);
/* The guest has another kernel. */
void session_kernel_forget(struct session_kernel *kernel);

/* The unwind tables, whatever the configuration says; NULL: the kernel has none, or its image is not known. */
const struct orc *session_kernel_orc(struct session_kernel *kernel);

#endif
