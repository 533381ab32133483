// SPDX-License-Identifier: BSD-2-Clause
/* Where the kernel's functions are, and by which means a breakpoint is there. */
#include <string.h>

#include "probe/placement_priv.h"

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

static bool find_address(struct probe *probe, uint64_t *address, struct probe_module **module, GError **error)
{
	const struct probe_spec *spec = &probe->spec;
	const char *const *entries = probe_sources[spec->kind].entries;

	*address = 0;
	if (!entries && strchr(spec->symbol, PROBE_MODULE_SEPARATOR))
		return (*module = probe_module_find(probe, address, error)) != NULL;
	if (entries || spec->symbol[0] != '\0') {
		const struct symtab *symtab = probe_hub_symtab(probe->set->hub, error);

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

bool probe_find_function(struct probe *probe, uint64_t *address, struct probe_module **module, GError **error)
{
	struct probe_hub *hub = probe->set->hub;

	*module = NULL;
	if (probe_hub_load_text(hub, error) && find_address(probe, address, module, error) &&
	    probe_text_check(hub->text, hub->guest, probe->spec.name, *address, error))
		return true;
	g_clear_pointer(module, g_free);
	return false;
}

/* ---- means ---- */

bool probe_site_add(struct probe *probe, struct probe_site *site, enum guest_breakpoint_kind kind, GError **error)
{
	struct guest *guest = probe->set->hub->guest;
	const struct probe_text *text = probe->set->hub->text;
	struct guest_breakpoint *breakpoint = &site->breakpoint;

	breakpoint->kind = kind;
	if (kind != GUEST_BREAKPOINT_PROCESSOR) {
		breakpoint->at.value = probe_text_patch(text, breakpoint->at.value);
		if (!probe_text_check_patch(text, probe->spec.name, breakpoint->at.value, error))
			return false;
	}
	return guest->debug->breakpoint_add(guest, breakpoint, error);
}

bool probe_site_place(struct probe *probe, struct probe_site *site, GError **error)
{
	const enum guest_breakpoint_kind kind = probe->options.breakpoint;
	g_autoptr(GError) taken = NULL;

	if (kind == GUEST_BREAKPOINT_PATCH)
		return probe_site_add(probe, site, kind, error);
	if (probe_site_add(probe, site, GUEST_BREAKPOINT_PROCESSOR, &taken))
		return true;
	if (kind == GUEST_BREAKPOINT_ANY && g_error_matches(taken, GUEST_ERROR, GUEST_ERROR_TAKEN))
		return probe_site_add(probe, site, kind, error);
	g_propagate_error(error, g_steal_pointer(&taken));
	return false;
}
