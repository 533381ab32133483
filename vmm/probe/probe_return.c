// SPDX-License-Identifier: BSD-2-Clause
/* Returns of a function of the kernel: a breakpoint at its entry, and one wherever it returns. */
#include "guest/gprs.h"
#include "lib/code/function_returns.h"
#include "probe/placement_priv.h"

/* [I] but for the calls, which have their own legend. */
struct function_return {
	struct placement base;
	struct probe_site sites[1 + FUNCTION_RETURNS_MAX]; /* the entry last */
	size_t n;                                          /* that are placed */
	struct probe_calls *calls;
	struct probe_module *module; /* that the function is in; NULL: the kernel itself */
};

static struct function_return *of_breakpoint(const struct guest_breakpoint *breakpoint)
{
	return (struct function_return *)((const struct probe_site *)breakpoint)->placement;
}

static void entry_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                      const struct guest_gprs *gprs)
{
	const struct function_return *self = of_breakpoint(breakpoint);
	const struct probe *probe = self->base.probe;

	if (probe_records(probe, vcpu) && probe_module_runs(self->module, probe->set->hub->guest, regs))
		probe_calls_enter(self->calls, 0, guest_gprs_stack(gprs));
}

static void return_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                       const struct guest_gprs *gprs)
{
	const struct function_return *self = of_breakpoint(breakpoint);
	struct probe *probe = self->base.probe;
	struct firing firing = probe_firing(probe, vcpu, regs, gprs);

	firing.at_entry = true; /* the frame is gone again */
	firing.values[0] = guest_gprs_result(gprs);
	if (!probe_records(probe, vcpu) ||
	    !probe_calls_leave(self->calls, 0, guest_gprs_stack(gprs), &firing.values[1]) ||
	    !probe_module_runs(self->module, probe->set->hub->guest, regs))
		return;
	probe_event_note(&firing);
	probe_event_fire(&firing);
}

static void return_remove(struct placement *placement)
{
	struct function_return *self = (struct function_return *)placement;

	probe_sites_remove(placement->probe, self->sites, self->n);
	probe_calls_free(self->calls);
	g_free(self->module);
	placement_free(placement);
}

static bool find_returns(struct probe *probe, const struct probe_module *module, uint64_t address,
                         struct function_returns *returns, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	struct session_modules *modules = module ? session_modules_read(hub->session, NULL) : NULL;
	const bool found =
		probe_text_returns(hub->text, modules, hub->guest, probe->spec.name, address, returns, error);

	session_modules_free(modules);
	return found;
}

/* The returns first: an entry alone would count calls that are never seen to return. */
static bool sites_place(struct function_return *self, uint64_t entry, const struct function_returns *returns,
                        GError **error)
{
	struct probe *probe = self->base.probe;

	for (size_t i = 0; i <= returns->n; i++) {
		const bool is_entry = i == returns->n;
		struct probe_site *site = &self->sites[i];

		*site = (struct probe_site){{.at = {is_entry ? entry : returns->at[i]},
		                             .what = probe->spec.name,
		                             .hit = is_entry ? entry_hit : return_hit},
		                            &self->base};
		if (!probe_site_place(probe, site, error))
			return false;
		self->n++;
	}
	return true;
}

static bool return_place(struct probe *probe, GError **error)
{
	struct function_returns returns;
	struct probe_module *module;
	uint64_t address;

	if (!probe_find_function(probe, &address, &module, error))
		return false;
	struct function_return *self = (struct function_return *)placement_new(probe, sizeof(*self));
	self->module = module;
	self->calls = probe_calls_new();
	if (find_returns(probe, module, address, &returns, error) && sites_place(self, address, &returns, error))
		return true;
	return_remove(&self->base);
	return false;
}

static void return_describe(const struct placement *placement, struct probe_info *info)
{
	const struct function_return *self = (const struct function_return *)placement;

	probe_sites_describe(placement->probe, self->sites, self->n, info);
	info->intact &= probe_module_is_there(self->module, placement->probe->set->hub->session);
	info->breakpoint =
		self->sites[self->n - 1].breakpoint.patched ? GUEST_BREAKPOINT_PATCH : GUEST_BREAKPOINT_PROCESSOR;
}

static void return_start(struct placement *placement)
{
	probe_calls_reset(((const struct function_return *)placement)->calls);
}

static void return_count(const struct placement *placement, struct probe_statistics *out)
{
	out->forgotten += probe_calls_forgotten(((const struct function_return *)placement)->calls);
}

const struct placement_ops placement_return = {
	.place = return_place,
	.remove = return_remove,
	.describe = return_describe,
	.count = return_count,
	.start = return_start,
};
