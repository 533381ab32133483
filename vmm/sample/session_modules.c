// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_modules.h"

#include "guest/os.h"

struct session_modules {
	const struct os_kernel *kernel;
	struct page_walk walk;
	struct module_table table;
	struct symtab *symtabs[MODULES_MAX]; /* NULL: not read yet, or none */
	bool tried[MODULES_MAX];
	uint64_t room, left_out; /* bytes for symbols, and symbols that had none */
};

struct session_modules *session_modules_read(struct session *session, GError **error)
{
	const struct os_kernel *kernel = session_kernel(session);
	struct page_walk walk;

	if (!kernel->modules) {
		const char *why = kernel->why[OS_MODULES] ? kernel->why[OS_MODULES] : kernel->why[OS_TASKS];

		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot read the guest's modules: %s",
		            why ? why : "its kernel has none");
		return NULL;
	}
	if (!session_kernel_walk(session, &walk)) {
		g_set_error_literal(error, SESSION_ERROR, SESSION_ERROR_STATE,
		                    "cannot read the guest's modules: no vCPU's page tables lead to its kernel (yet)");
		return NULL;
	}
	struct session_modules *modules = g_new0(struct session_modules, 1);

	modules->kernel = kernel;
	modules->walk = walk;
	modules->room = MODULE_SYMBOLS_BYTES_MAX;
	kernel->modules->update(kernel, &modules->table, &modules->walk, 0);
	return modules;
}

void session_modules_free(struct session_modules *modules)
{
	if (!modules)
		return;
	for (unsigned i = 0; i < MODULES_MAX; i++)
		symtab_free(modules->symtabs[i]);
	g_free(modules);
}

const struct module *session_modules_get(const struct session_modules *modules, unsigned i)
{
	return i < modules->table.n ? &modules->table.modules[i] : NULL;
}

const struct symtab *session_modules_symtab(struct session_modules *modules, unsigned i)
{
	if (modules->tried[i])
		return modules->symtabs[i];
	struct symtab *symtab = modules->kernel->modules->symbols(modules->kernel, &modules->walk,
	                                                          &modules->table.modules[i], modules->room);

	if (symtab) {
		modules->room -= MIN(modules->room, symtab_bytes(symtab));
		modules->left_out += symtab_left_out(symtab);
	}
	modules->symtabs[i] = symtab;
	modules->tried[i] = true;
	return symtab;
}

uint64_t session_modules_left_out(const struct session_modules *modules)
{
	return modules->left_out;
}

static const struct symbol *find_symbol(struct session_modules *modules, const struct module_range *range,
                                        uint64_t address)
{
	const struct symtab *symtab = range ? session_modules_symtab(modules, range->module) : NULL;
	const struct symbol *symbol = symtab ? symtab_find(symtab, address) : NULL;

	return symbol && symbol->address >= range->start ? symbol : NULL;
}

const struct symbol *session_modules_symbol(struct session_modules *modules, uint64_t address)
{
	return find_symbol(modules, module_table_find(&modules->table, address), address);
}

bool session_modules_find(struct session_modules *modules, uint64_t address, struct module_place *place)
{
	const struct module_range *range = module_table_find(&modules->table, address);
	const struct symbol *symbol = find_symbol(modules, range, address);

	if (!symbol)
		return false;
	const struct module *module = &modules->table.modules[range->module];

	*place = (struct module_place){
		.module = module->name,
		.symbol = symbol->name,
		.file_offset = module_file_offset(module, range->part) + (symbol->address - range->start),
		.address = symbol->address,
		.bytes = symbol->size,
	};
	return true;
}
