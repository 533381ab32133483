// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes of the kernel's static trace points. A breakpoint of the processor is at the nop, whether the kernel has made
 * it a jump or not. A patch is never there, where the kernel changes its code itself: it takes two, one behind the nop
 * and one where the jump leads to, of which the second counts while the trace point is in use.
 */
#include <string.h>

#include "probe/placement_priv.h"

#define SITES_MAX 16u /* of one trace point */

/* [I] all of it. */
struct traced {
	struct placement base;
	const struct tracepoint *tracepoint; /* of the hub */
	struct probe_site sites[2 * SITES_MAX];
	const struct tracepoint_site *of[2 * SITES_MAX]; /* the place in the kernel's code that each of them is for */
	size_t n;
};

/* Why no probe of it can ever fire; NULL: one may. */
static const char *why_never(const struct tracepoint *tracepoint)
{
	if (tracepoint->needs_kernel)
		return "is reached only if the kernel itself uses it";
	return tracepoint->sites->len == 0 ? "is in no code of the kernel's image" : NULL;
}

static const struct tracepoint *find(struct probe_hub *hub, const struct probe_spec *spec, GError **error)
{
	const struct tracepoints *all = probe_hub_tracepoints(hub, error);
	const struct tracepoint *tracepoint = all ? hub->os->tracepoints->find(all, spec->symbol) : NULL;
	const char *why = tracepoint ? why_never(tracepoint) : NULL;

	if (!all)
		return NULL;
	if (tracepoint && !why)
		return tracepoint;
	if (g_str_has_prefix(spec->symbol, "syscalls:sys_"))
		why = "is of a system call that x86-64 does not have";
	g_set_error(error, PROBE_ERROR, tracepoint ? PROBE_ERROR_UNSUPPORTED : PROBE_ERROR_UNKNOWN,
	            "cannot place %s: the trace point %s; `vprof probe list 'tracepoint:*'` shows what there is",
	            spec->name, why ? why : "is not in the guest's kernel image; it may be in a module");
	return NULL;
}

/* ---- hits ---- */

/* The breakpoint may be behind the nop or where it leads to: the event is that of the nop. */
static void traced_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                       const struct guest_gprs *gprs)
{
	const struct probe_site *hit = (const struct probe_site *)breakpoint;
	const struct traced *self = (const struct traced *)hit->placement;
	const struct tracepoint_site *site = self->of[hit - self->sites];
	struct probe *probe = self->base.probe;
	struct guest_regs at_nop = *regs;
	struct firing firing = probe_firing(probe, vcpu, &at_nop, gprs);

	if (!probe_records(probe, vcpu))
		return;
	const enum tracepoint_outcome outcome = probe->set->hub->os->tracepoints->run(
		self->tracepoint, site, probe->set->hub->guest, regs, gprs, probe->arguments->len, firing.values);
	if (outcome == TRACEPOINT_PASSED)
		return;
	firing.bare = outcome == TRACEPOINT_UNKNOWN;
	if (firing.bare) {
		firing.n_values = 0;
		probe_count(&probe->set->vcpus[vcpu].no_arguments);
	}
	guest_regs_set_ip(&at_nop, site->nop);
	probe_event_note(&firing);
	probe_event_fire(&firing);
}

/* ---- breakpoints ---- */

static bool take_place(struct traced *self, const struct tracepoint_site *site, uint64_t address,
                       enum guest_breakpoint_kind kind, GError **error)
{
	struct probe *probe = self->base.probe;
	const struct probe_hub *hub = probe->set->hub;
	struct probe_site *placed = &self->sites[self->n];

	*placed = (struct probe_site){{.at = {address}, .what = probe->spec.name, .hit = traced_hit}, &self->base};
	self->of[self->n] = site;
	if (!probe_text_check(hub->text, hub->guest, probe->spec.name, address, error) ||
	    !probe_site_add(probe, placed, kind, error))
		return false;
	self->n++;
	return true;
}

static bool patch_site(struct traced *self, const struct tracepoint_site *site, GError **error)
{
	if (!site->joins)
		return take_place(self, site, site->behind, GUEST_BREAKPOINT_PATCH, error) &&
		       take_place(self, site, site->block, GUEST_BREAKPOINT_PATCH, error);
	g_set_error(
		error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		"cannot place %s by patching: other code leads to what follows the trace point at 0x%" G_GINT64_MODIFIER
		"x; use a breakpoint of the processor (\"--breakpoints processor\")",
		self->base.probe->spec.name, site->nop);
	return false;
}

static bool place_site(struct traced *self, const struct tracepoint_site *site, GError **error)
{
	const enum guest_breakpoint_kind kind = self->base.probe->options.breakpoint;
	g_autoptr(GError) taken = NULL;

	if (kind == GUEST_BREAKPOINT_PATCH)
		return patch_site(self, site, error);
	if (take_place(self, site, site->nop, GUEST_BREAKPOINT_PROCESSOR, &taken))
		return true;
	if (kind == GUEST_BREAKPOINT_ANY && g_error_matches(taken, GUEST_ERROR, GUEST_ERROR_TAKEN))
		return patch_site(self, site, error);
	g_propagate_error(error, g_steal_pointer(&taken));
	return false;
}

static void traced_remove(struct placement *placement)
{
	struct traced *self = (struct traced *)placement;

	probe_sites_remove(placement->probe, self->sites, self->n);
	placement_free(placement);
}

static bool traced_place(struct probe *probe, GError **error)
{
	const struct tracepoint *tracepoint = find(probe->set->hub, &probe->spec, error);

	if (!tracepoint)
		return false;
	if (tracepoint->sites->len > SITES_MAX) {
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
			"cannot place %s: the trace point is in %u places of the kernel's code, and a probe can be in %u",
			probe->spec.name, tracepoint->sites->len, SITES_MAX);
		return false;
	}
	struct traced *self = (struct traced *)placement_new(probe, sizeof(*self));
	self->tracepoint = tracepoint;
	for (guint i = 0; i < tracepoint->sites->len; i++) {
		if (place_site(self, &g_array_index(tracepoint->sites, struct tracepoint_site, i), error))
			continue;
		traced_remove(&self->base);
		return false;
	}
	return true;
}

static void traced_describe(const struct placement *placement, struct probe_info *info)
{
	const struct traced *self = (const struct traced *)placement;

	probe_sites_describe(placement->probe, self->sites, self->n, info);
}

GArray *probe_tracepoint_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error)
{
	const struct tracepoint *tracepoint = find(hub, spec, error);

	return tracepoint ? hub->os->tracepoints->arguments(tracepoint, probe_hub_btf(hub)) : NULL;
}

const struct placement_ops placement_tracepoint = {
	.place = traced_place,
	.remove = traced_remove,
	.describe = traced_describe,
};
