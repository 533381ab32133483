// SPDX-License-Identifier: BSD-2-Clause
/* Every context switch of a Linux guest, seen at the entry of its __switch_to (arch/x86/kernel/process_64.c). */
#ifndef VPROF_SAMPLE_SWITCH_PROBE_H
#define VPROF_SAMPLE_SWITCH_PROBE_H

#include "guest/guest_debug.h"
#include "guest/kernel.h"
#include "guest/task_match.h"

/* Embedded by whoever wants to know; his, unchanged, from switch_probe_add to switch_probe_remove. */
struct switch_probe {
	/*
	 * The vCPU goes over from one task to the next; NULL: it could not be read. CR3 is that of the next one. On the
	 * vCPU's thread: may neither block, allocate nor log.
	 */
	void (*switched)(struct switch_probe *probe, unsigned vcpu, const struct task_view *view,
	                 const struct task *previous, const struct task *next);
	struct guest_breakpoint breakpoint; /* the rest is set by switch_probe_add */
	struct guest *guest;
	const struct task_layout *layout;
};

/* Main thread, both. Errors: SESSION_ERROR_UNSUPPORTED, GUEST_ERROR; they say `what` for. */
bool switch_probe_add(struct switch_probe *probe, struct guest *guest, const struct kernel_layout *kernel,
                      const char *what, GError **error);
void switch_probe_remove(struct switch_probe *probe);

#endif
