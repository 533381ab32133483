// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes of the kernel's static trace points. A breakpoint of the processor is at the nop, whether the kernel has made
 * it a jump or not. A patch is never there, where the kernel changes its code itself: it takes two, one behind the nop
 * and one where the jump leads to, of which the second counts while the trace point is in use.
 */
#include <string.h>

#include "probe/probe_priv.h"

#define SITES_MAX 16u /* of one trace point */

struct probe_place {
	struct guest_breakpoint breakpoint; /* first: the argument of `hit` */
	struct probe *probe;
	const struct tracepoint_site *site;
};

/* [I] all of it. */
struct probe_tracepoint {
	const struct tracepoint *tracepoint; /* of the hub */
	struct probe_place places[2 * SITES_MAX];
	size_t n;
};

/* Why no probe of it can ever fire; NULL: one may. */
static const char *why_never(const struct tracepoint *tracepoint)
{
	if (tracepoint->needs_kernel)
		return "is reached only if the kernel itself uses it";
	return tracepoint->sites->len == 0 ? "is in no code of the kernel's image" : NULL;
}

const struct tracepoint *probe_tracepoint_find(struct probe_hub *hub, const struct probe_spec *spec, GError **error)
{
	const struct tracepoints *all = probe_hub_tracepoints(hub, error);
	const struct tracepoint *tracepoint = all ? tracepoints_find(all, spec->symbol) : NULL;
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

struct probe_tracepoint *probe_tracepoint_new(struct probe *probe, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	const struct tracepoint *tracepoint = probe_tracepoint_find(hub, &probe->spec, error);

	if (!tracepoint)
		return NULL;
	if (tracepoint->sites->len > SITES_MAX) {
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
			"cannot place %s: the trace point is in %u places of the kernel's code, and a probe can be in %u",
			probe->spec.name, tracepoint->sites->len, SITES_MAX);
		return NULL;
	}
	struct probe_tracepoint *self = g_new0(struct probe_tracepoint, 1);
	self->tracepoint = tracepoint;
	return self;
}

void probe_tracepoint_free(struct probe_tracepoint *self)
{
	g_free(self);
}

const GArray *probe_tracepoint_sites(const struct probe_tracepoint *self)
{
	return self->tracepoint->sites;
}

struct guest_breakpoint *probe_tracepoint_breakpoint(struct probe_tracepoint *self, size_t i)
{
	return i < self->n ? &self->places[i].breakpoint : NULL;
}

struct guest_breakpoint *probe_tracepoint_take(struct probe_tracepoint *self, struct probe *probe,
                                               const struct tracepoint_site *site, uint64_t address)
{
	struct probe_place *place = &self->places[self->n++];

	*place = (struct probe_place){
		.breakpoint = {.at = {address}, .what = probe->spec.name, .hit = probe_event_traced},
		.probe = probe,
		.site = site,
	};
	return &place->breakpoint;
}

void probe_tracepoint_give_back(struct probe_tracepoint *self)
{
	self->n--;
}

struct probe *probe_tracepoint_probe(const struct guest_breakpoint *breakpoint)
{
	return ((const struct probe_place *)breakpoint)->probe;
}

uint64_t probe_tracepoint_nop(const struct guest_breakpoint *breakpoint)
{
	return ((const struct probe_place *)breakpoint)->site->nop;
}

enum tracepoint_outcome probe_tracepoint_run(const struct guest_breakpoint *breakpoint, const struct guest_regs *regs,
                                             const struct guest_gprs *gprs, uint64_t *arguments)
{
	const struct probe_place *place = (const struct probe_place *)breakpoint;
	const struct probe_tracepoint *self = place->probe->traced;

	return tracepoint_site_run(self->tracepoint, place->site, place->probe->set->hub->guest, regs, gprs,
	                           place->probe->arguments->len, arguments);
}
