// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every context switch of a guest, seen at an instruction of its kernel that all of them execute (os_switches.at), and
 * changes of names in between.
 */
#ifndef VPROF_SAMPLE_SWITCH_PROBE_H
#define VPROF_SAMPLE_SWITCH_PROBE_H

#include "guest/guest_debug.h"
#include "guest/os.h"
#include "guest/task_match.h"

/* Embedded by the user, and not changed from switch_probe_add to switch_probe_remove. */
struct switch_probe {
	/*
	 * The vCPU switches from one task to the next; NULL: the task could not be read. The page tables are those of
	 * the next task. On the vCPU's thread: must not block, allocate or log.
	 */
	void (*switched)(struct switch_probe *probe, unsigned vcpu, const struct task_view *view,
	                 const struct task *previous, const struct task *next);
	struct guest_breakpoint breakpoint; /* this and the rest is set by switch_probe_add */
	struct guest_breakpoint rename;
	bool sees_names; /* `rename` is placed */
	struct guest *guest;
	const struct os_kernel *kernel;
};

/* Main thread. Errors: SESSION_ERROR_UNSUPPORTED, GUEST_ERROR; messages name `what` it is for. */
bool switch_probe_add(struct switch_probe *probe, struct guest *guest, const struct os_kernel *kernel, const char *what,
                      GError **error);
/*
 * Also calls `switched` when the task that a vCPU runs is given another name: it switches to itself under that name.
 * Does nothing where the kernel does not say where that is, or no breakpoint is left. Main thread.
 */
void switch_probe_see_names(struct switch_probe *probe);
void switch_probe_remove(struct switch_probe *probe);

#endif
