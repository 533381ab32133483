// SPDX-License-Identifier: BSD-2-Clause
#include "sample/switch_probe.h"

#include "guest/gprs.h"
#include "sample/session_config.h"

static void probe_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                      const struct guest_gprs *gprs)
{
	struct switch_probe *probe =
		(struct switch_probe *)((char *)breakpoint - offsetof(struct switch_probe, breakpoint));
	struct task_cpu cpu = {0};

	task_cpu_note(&cpu, regs);
	struct page_walk walk;
	struct task previous, next;
	const struct os_kernel *kernel = probe->kernel;
	uint64_t from, to;

	kernel->switches->tasks(gprs, &from, &to);
	bool knows_previous = kernel->tasks->read_at(kernel, &cpu, probe->guest, regs, from, &walk, &previous);
	bool knows_next = kernel->tasks->read_at(kernel, &cpu, probe->guest, regs, to, &walk, &next);
	const struct task_view view = {kernel, &walk, regs};

	probe->switched(probe, vcpu, &view, knows_previous ? &previous : NULL, knows_next ? &next : NULL);
}

static void rename_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                       const struct guest_gprs *gprs)
{
	struct switch_probe *probe =
		(struct switch_probe *)((char *)breakpoint - offsetof(struct switch_probe, rename));
	const struct os_kernel *kernel = probe->kernel;
	struct task_cpu cpu = {0};
	struct page_walk walk;
	struct task task;
	uint64_t renamed;

	task_cpu_note(&cpu, regs);
	if (!kernel->tasks->read(kernel, &cpu, probe->guest, regs, &walk, &task))
		return;
	const struct task_view view = {kernel, &walk, regs};
	struct task after = task;

	if (kernel->switches->renamed(&walk, gprs, &renamed, after.comm) && renamed == task.address)
		probe->switched(probe, vcpu, &view, &task, &after);
}

bool switch_probe_add(struct switch_probe *probe, struct guest *guest, const struct os_kernel *kernel, const char *what,
                      GError **error)
{
	if (!guest->debug) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
		            "cannot see context switches for %s: a guest of kind %s takes no breakpoints", what,
		            guest->kind);
		return false;
	}
	const gva_t at = kernel->switches ? kernel->switches->at(kernel) : (gva_t){0};

	if (!kernel->tasks || at.value == 0) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot see context switches for %s: %s",
		            what, kernel->tasks ? kernel->why[OS_SWITCHES] : kernel->why[OS_TASKS]);
		return false;
	}
	probe->guest = guest;
	probe->kernel = kernel;
	probe->sees_names = false;
	probe->breakpoint = (struct guest_breakpoint){.at = at, .what = what, .hit = probe_hit};
	return guest->debug->breakpoint_add(guest, &probe->breakpoint, error);
}

void switch_probe_see_names(struct switch_probe *probe)
{
	const gva_t at = probe->kernel->switches->rename_at(probe->kernel);

	if (probe->sees_names || at.value == 0)
		return;
	probe->rename = (struct guest_breakpoint){.at = at, .what = probe->breakpoint.what, .hit = rename_hit};
	probe->sees_names = probe->guest->debug->breakpoint_add(probe->guest, &probe->rename, NULL);
}

void switch_probe_remove(struct switch_probe *probe)
{
	if (probe->sees_names)
		probe->guest->debug->breakpoint_remove(probe->guest, &probe->rename);
	probe->guest->debug->breakpoint_remove(probe->guest, &probe->breakpoint);
}
