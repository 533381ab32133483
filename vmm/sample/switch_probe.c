// SPDX-License-Identifier: BSD-2-Clause
#include "sample/switch_probe.h"

#include "guest/gprs.h"
#include "sample/session_config.h"

/* __switch_to(struct task_struct *prev, struct task_struct *next) */
static void probe_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                      const struct guest_gprs *gprs)
{
	struct switch_probe *probe =
		(struct switch_probe *)((char *)breakpoint - offsetof(struct switch_probe, breakpoint));
	struct task_cpu cpu = {0};

	task_cpu_note(&cpu, regs);
	struct page_walk walk;
	struct task previous, next;
	bool knows_previous =
		task_read_at(probe->layout, &cpu, probe->guest, regs, guest_gprs_argument(gprs, 0), &walk, &previous);
	bool knows_next =
		task_read_at(probe->layout, &cpu, probe->guest, regs, guest_gprs_argument(gprs, 1), &walk, &next);
	const struct task_view view = {probe->layout, &walk, regs};

	probe->switched(probe, vcpu, &view, knows_previous ? &previous : NULL, knows_next ? &next : NULL);
}

bool switch_probe_add(struct switch_probe *probe, struct guest *guest, const struct kernel_layout *kernel,
                      const char *what, GError **error)
{
	if (!guest->debug) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
		            "cannot see context switches for %s: a guest of kind %s takes no breakpoints", what,
		            guest->kind);
		return false;
	}
	if (!kernel->has_tasks || kernel->switch_to.value == 0) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot see context switches for %s: %s",
		            what, kernel->has_tasks ? "the kernel has no symbol __switch_to" : kernel->tasks_why);
		return false;
	}
	probe->guest = guest;
	probe->layout = &kernel->tasks;
	probe->breakpoint = (struct guest_breakpoint){.at = kernel->switch_to, .what = what, .hit = probe_hit};
	return guest->debug->breakpoint_add(guest, &probe->breakpoint, error);
}

void switch_probe_remove(struct switch_probe *probe)
{
	probe->guest->debug->breakpoint_remove(probe->guest, &probe->breakpoint);
}
