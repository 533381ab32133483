// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the guest kernel's modules: function:MODULE:NAME. */
#include <string.h>

#include "guest/module.h"
#include "probe/placement_priv.h"
#include "sample/session_modules.h"

#define NEAREST_MAX 5u
#define PADDING "__pfx_" /* objtool's names, from Linux 6.2 on */

/* Code that stays: that of the init function is freed once it has returned. */
static bool is_function(const struct module *module, const struct symbol *symbol)
{
	return symbol->address - module->parts[MODULE_TEXT].start < module->parts[MODULE_TEXT].bytes &&
	       !g_str_has_prefix(symbol->name, PADDING);
}

static const struct symbol *find_function(struct session_modules *modules, unsigned i, const char *name)
{
	const struct symtab *symtab = session_modules_symtab(modules, i);
	const struct symbol *symbol = symtab ? symtab_find_name(symtab, name) : NULL;

	return symbol && is_function(session_modules_get(modules, i), symbol) ? symbol : NULL;
}

/* ---- what there is ---- */

static void each_function(struct session_modules *modules, unsigned i,
                          void (*each)(void *data, const char *module, const char *function), void *data)
{
	const struct module *module = session_modules_get(modules, i);
	const struct symtab *symtab = session_modules_symtab(modules, i);
	size_t n = 0;
	const struct symbol *symbols = symtab ? symtab_symbols(symtab, &n) : NULL;

	for (size_t j = 0; j < n; j++)
		if (is_function(module, &symbols[j]))
			each(data, module->name, symbols[j].name);
}

void probe_hub_list_modules(struct probe_hub *hub, void (*each)(void *data, const char *module, const char *function),
                            void *data)
{
	struct session_modules *modules = session_modules_read(hub->session, NULL);

	for (unsigned i = 0; modules && session_modules_get(modules, i); i++)
		each_function(modules, i, each, data);
	session_modules_free(modules);
}

/* ---- what there is instead ---- */

/* The names that begin most like the one that was asked for. */
struct nearest {
	const char *wanted;
	size_t alike; /* characters */
	unsigned n;
	GString *names;
};

static void nearest_take(struct nearest *nearest, const char *name)
{
	size_t alike = 0;

	while (name[alike] != '\0' && name[alike] == nearest->wanted[alike])
		alike++;
	if (alike > nearest->alike) {
		g_string_truncate(nearest->names, 0);
		nearest->n = 0;
		nearest->alike = alike;
	}
	if (alike == nearest->alike && nearest->n++ < NEAREST_MAX)
		g_string_append_printf(nearest->names, "%s%s", nearest->n > 1 ? ", " : "", name);
}

static void nearest_take_function(void *data, const char *module G_GNUC_UNUSED, const char *function)
{
	nearest_take(data, function);
}

static void set_error(const struct probe *probe, struct session_modules *modules, unsigned i, char **parts,
                      GError **error)
{
	const bool is_loaded = session_modules_get(modules, i);
	struct nearest nearest = {.wanted = parts[is_loaded], .names = g_string_new(NULL)};

	if (is_loaded)
		each_function(modules, i, nearest_take_function, &nearest);
	else
		for (i = 0; session_modules_get(modules, i); i++)
			nearest_take(&nearest, session_modules_get(modules, i)->name);
	if (nearest.n > NEAREST_MAX)
		g_string_append_printf(nearest.names, " and %u more", nearest.n - NEAREST_MAX);
	if (nearest.n == 0)
		g_string_append(nearest.names, "none that can be probed");
	if (is_loaded)
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
			"cannot place %s: the guest's module %s has no function \"%s\" that stays, or it was inlined; there is %s. `vprof probe list 'function:%s:*'` shows all",
			probe->spec.name, parts[0], parts[1], nearest.names->str, parts[0]);
	else
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
			"cannot place %s: the guest has no module \"%s\" loaded now; it has %s. A probe of a module is added once the module is loaded; those of the kernel itself are function:NAME",
			probe->spec.name, parts[0], nearest.names->str);
	g_string_free(nearest.names, TRUE);
}

/* ---- where it is ---- */

/* [I] all of it. */
struct probe_module {
	const struct os_kernel *kernel; /* the session's */
	struct module module;
};

struct probe_module *probe_module_find(struct probe *probe, uint64_t *address, GError **error)
{
	struct session_modules *modules = session_modules_read(probe->set->hub->session, error);
	const char separator[] = {PROBE_MODULE_SEPARATOR, '\0'};
	g_auto(GStrv) parts = g_strsplit(probe->spec.symbol, separator, 2);
	struct probe_module *self = NULL;
	const struct symbol *symbol = NULL;
	const struct module *module;
	unsigned i = 0;

	if (!modules)
		return NULL;
	while ((module = session_modules_get(modules, i)) && strcmp(module->name, parts[0]) != 0)
		i++;
	if (module)
		symbol = find_function(modules, i, parts[1]);
	if (symbol) {
		*address = symbol->address;
		self = g_new(struct probe_module, 1);
		*self = (struct probe_module){session_kernel(probe->set->hub->session), *module};
	} else {
		set_error(probe, modules, i, parts, error);
	}
	session_modules_free(modules);
	return self;
}

bool probe_module_runs(const struct probe_module *module, struct guest *guest, const struct guest_regs *regs)
{
	struct page_walk walk;

	if (!module)
		return true;
	page_walk_init_regs(&walk, guest, regs);
	return module->kernel->modules->is_there(module->kernel, &walk, &module->module);
}

bool probe_module_is_there(const struct probe_module *module, struct session *session)
{
	struct page_walk walk;

	return !module || !session_kernel_walk(session, &walk) ||
	       module->kernel->modules->is_there(module->kernel, &walk, &module->module);
}
