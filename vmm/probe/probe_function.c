// SPDX-License-Identifier: BSD-2-Clause
/* A breakpoint in a function of the kernel: of function, of syscall, and of the trace points of system calls. */
#include "guest/gprs.h"
#include "probe/placement_priv.h"

/* [I] all of it. */
struct function {
	struct placement base;
	struct probe_site site;
	struct probe_module *module; /* that the function is in; NULL: the kernel itself */
};

static void function_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                         const struct guest_gprs *gprs)
{
	const struct function *self = (const struct function *)((const struct probe_site *)breakpoint)->placement;
	struct probe *probe = self->base.probe;
	struct guest *guest = probe->set->hub->guest;
	struct firing firing = probe_firing(probe, vcpu, regs, gprs);

	firing.at_entry = probe->spec.symbol[0] != '\0' && probe->spec.offset == 0;
	if (!probe_records(probe, vcpu) || !probe_module_runs(self->module, guest, regs))
		return;
	probe_event_note(&firing);
	if (probe_sources[probe->spec.kind].read(&probe->spec, probe->set->hub->os, guest, regs, gprs, firing.values))
		probe_event_fire(&firing);
}

static void function_remove(struct placement *placement)
{
	struct function *self = (struct function *)placement;

	probe_sites_remove(placement->probe, &self->site, 1);
	g_free(self->module);
	placement_free(placement);
}

static bool function_place(struct probe *probe, GError **error)
{
	struct probe_module *module;
	uint64_t address;

	if (!probe_find_function(probe, &address, &module, error))
		return false;
	struct function *self = (struct function *)placement_new(probe, sizeof(*self));
	self->module = module;
	self->site = (struct probe_site){{.at = {address}, .what = probe->spec.name, .hit = function_hit}, &self->base};
	if (probe_site_place(probe, &self->site, error))
		return true;
	g_free(self->module);
	placement_free(&self->base);
	return false;
}

static void function_describe(const struct placement *placement, struct probe_info *info)
{
	const struct function *self = (const struct function *)placement;

	probe_sites_describe(placement->probe, &self->site, 1, info);
	info->intact &= probe_module_is_there(self->module, placement->probe->set->hub->session);
}

const struct placement_ops placement_function = {
	.place = function_place,
	.remove = function_remove,
	.describe = function_describe,
};
