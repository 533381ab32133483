// SPDX-License-Identifier: BSD-2-Clause
/* Where the breakpoints of a probe go, and by which means. */
#include <string.h>

#include "probe/probe_priv.h"

static bool function_error(const struct probe_spec *spec, GError **error)
{
	g_set_error(
		error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
		"cannot place %s: the guest's kernel image has no function \"%s\"; it may have been inlined, or be in a module (function:MODULE:NAME). `vprof probe list 'function:*NAME*'` shows what there is",
		spec->name, spec->symbol);
	return false;
}

static bool find_function(const struct symtab *symtab, const char *name, uint64_t *address)
{
	const struct symbol *symbol = symtab_find_name(symtab, name);

	if (!symbol || !strchr("tTwW", symbol->type))
		return false;
	*address = symbol->address;
	return true;
}

static bool find_entry(const struct symtab *symtab, const char *const *entries, uint64_t *address)
{
	for (size_t i = 0; entries[i]; i++) {
		if (find_function(symtab, entries[i], address))
			return true;
	}
	return false;
}

static bool find_address(struct probe *probe, uint64_t *address, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	const struct probe_spec *spec = &probe->spec;
	const char *const *entries = probe_sources[spec->kind].entries;
	bool by_number = !entries && spec->symbol[0] == '\0';

	*address = 0;
	if (!entries && strchr(spec->symbol, PROBE_MODULE_SEPARATOR))
		return probe_module_find(probe, address, error);
	if (!by_number) {
		const struct symtab *symtab = probe_hub_symtab(hub, error);

		if (!symtab)
			return false;
		if (!entries && !find_function(symtab, spec->symbol, address))
			return function_error(spec, error);
		if (entries && !find_entry(symtab, entries, address)) {
			g_set_error(
				error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
				"cannot place %s: the guest's kernel has no function %s; only Linux has system calls that can be probed",
				spec->name, entries[0]);
			return false;
		}
	}
	*address += spec->offset;
	return true;
}

static bool add_breakpoint(struct probe *probe, struct guest_breakpoint *breakpoint, enum guest_breakpoint_kind kind,
                           GError **error)
{
	struct guest *guest = probe->set->hub->guest;

	breakpoint->kind = kind;
	return guest->debug->breakpoint_add(guest, breakpoint, error);
}

static bool add_patch(struct probe *probe, struct guest_breakpoint *breakpoint, enum guest_breakpoint_kind kind,
                      GError **error)
{
	const struct probe_text *text = probe->set->hub->text;

	breakpoint->at.value = probe_text_patch(text, breakpoint->at.value);
	return probe_text_check_patch(text, probe->spec.name, breakpoint->at.value, error) &&
	       add_breakpoint(probe, breakpoint, kind, error);
}

/* Where `breakpoint` says. Without a choice of the user's, a breakpoint of the processor is tried first. */
static bool place_at(struct probe *probe, struct guest_breakpoint *breakpoint, GError **error)
{
	enum guest_breakpoint_kind kind = probe->options.breakpoint;
	g_autoptr(GError) taken = NULL;

	if (kind == GUEST_BREAKPOINT_PATCH)
		return add_patch(probe, breakpoint, kind, error);
	if (add_breakpoint(probe, breakpoint, GUEST_BREAKPOINT_PROCESSOR, &taken))
		return true;
	if (kind == GUEST_BREAKPOINT_ANY && g_error_matches(taken, GUEST_ERROR, GUEST_ERROR_TAKEN))
		return add_patch(probe, breakpoint, kind, error);
	g_propagate_error(error, g_steal_pointer(&taken));
	return false;
}

static void remove_returns(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;
	struct guest_breakpoint *breakpoint;

	for (size_t i = 0; (breakpoint = probe_returns_breakpoint(probe->returns, i)); i++)
		guest->debug->breakpoint_remove(guest, breakpoint);
	g_clear_pointer(&probe->returns, g_free);
}

/* Breakpoints where the function at `address` returns. */
static bool place_returns(struct probe *probe, uint64_t address, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	struct session_modules *modules = probe->module ? session_modules_read(hub->session, NULL) : NULL;
	struct function_returns returns;
	const bool found =
		probe_text_returns(hub->text, modules, hub->guest, probe->spec.name, address, &returns, error);

	session_modules_free(modules);
	if (!found)
		return false;
	probe->returns = probe_returns_new(probe, &returns);
	for (size_t i = 0; i < returns.n; i++) {
		if (place_at(probe, probe_returns_breakpoint(probe->returns, i), error))
			continue;
		probe_returns_keep(probe->returns, i);
		remove_returns(probe);
		return false;
	}
	return true;
}

/* ---- trace points ---- */

static bool check_place(struct probe *probe, uint64_t address, GError **error)
{
	const struct probe_hub *hub = probe->set->hub;

	return probe_text_check(hub->text, hub->guest, probe->spec.name, address, error);
}

static bool take_place(struct probe *probe, const struct tracepoint_site *site, uint64_t address,
                       enum guest_breakpoint_kind kind, GError **error)
{
	struct guest_breakpoint *breakpoint = probe_tracepoint_take(probe->traced, probe, site, address);

	if (check_place(probe, address, error) &&
	    (kind == GUEST_BREAKPOINT_PATCH ? add_patch(probe, breakpoint, kind, error)
	                                    : add_breakpoint(probe, breakpoint, kind, error)))
		return true;
	probe_tracepoint_give_back(probe->traced);
	return false;
}

static bool patch_site(struct probe *probe, const struct tracepoint_site *site, GError **error)
{
	if (!site->joins)
		return take_place(probe, site, site->behind, GUEST_BREAKPOINT_PATCH, error) &&
		       take_place(probe, site, site->block, GUEST_BREAKPOINT_PATCH, error);
	g_set_error(
		error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		"cannot place %s by patching: other code leads to what follows the trace point at 0x%" G_GINT64_MODIFIER
		"x; use a breakpoint of the processor (\"--breakpoints processor\")",
		probe->spec.name, site->nop);
	return false;
}

static bool place_site(struct probe *probe, const struct tracepoint_site *site, GError **error)
{
	const enum guest_breakpoint_kind kind = probe->options.breakpoint;
	g_autoptr(GError) taken = NULL;

	if (kind == GUEST_BREAKPOINT_PATCH)
		return patch_site(probe, site, error);
	if (take_place(probe, site, site->nop, GUEST_BREAKPOINT_PROCESSOR, &taken))
		return true;
	if (kind == GUEST_BREAKPOINT_ANY && g_error_matches(taken, GUEST_ERROR, GUEST_ERROR_TAKEN))
		return patch_site(probe, site, error);
	g_propagate_error(error, g_steal_pointer(&taken));
	return false;
}

static void remove_tracepoint(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;
	struct guest_breakpoint *breakpoint;

	for (size_t i = 0; (breakpoint = probe_tracepoint_breakpoint(probe->traced, i)); i++)
		guest->debug->breakpoint_remove(guest, breakpoint);
	g_clear_pointer(&probe->traced, probe_tracepoint_free);
}

static bool place_tracepoint(struct probe *probe, GError **error)
{
	probe->traced = probe_tracepoint_new(probe, error);
	if (!probe->traced)
		return false;
	const GArray *sites = probe_tracepoint_sites(probe->traced);
	for (guint i = 0; i < sites->len; i++) {
		if (place_site(probe, &g_array_index(sites, struct tracepoint_site, i), error))
			continue;
		remove_tracepoint(probe);
		return false;
	}
	return true;
}

/* ---- one breakpoint ---- */

static bool place_breakpoint(struct probe *probe, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	uint64_t address;

	if (!probe_hub_load_text(hub, error) || !find_address(probe, &address, error) ||
	    !probe_text_check(hub->text, hub->guest, probe->spec.name, address, error))
		return false;
	if (probe_sources[probe->spec.kind].returns && !place_returns(probe, address, error))
		return false;
	probe->breakpoint =
		(struct guest_breakpoint){.at = {address}, .what = probe->spec.name, .hit = probe_event_hit};
	if (place_at(probe, &probe->breakpoint, error))
		return true;
	if (probe->returns)
		remove_returns(probe);
	return false;
}

bool probe_place(struct probe *probe, GError **error)
{
	if (probe_sources[probe->spec.kind].programs)
		return probe_user_place(probe, error);
	return probe_sources[probe->spec.kind].traces ? place_tracepoint(probe, error) : place_breakpoint(probe, error);
}

void probe_unplace(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;

	if (probe->traced)
		remove_tracepoint(probe);
	else if (probe->user)
		probe_user_remove(probe);
	else
		guest->debug->breakpoint_remove(guest, &probe->breakpoint);
	if (probe->returns)
		remove_returns(probe);
}
