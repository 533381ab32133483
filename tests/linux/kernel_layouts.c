// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel_layouts KERNEL core|mem: whether a distribution's kernel, which is not booted, says all that samples need of
 * it: its ORC tables, and where its tasks, mappings, cgroups and modules have their members. `core` and `mem`: where a
 * module's code is, up to 6.3 and from 6.4 on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/symtab.h"
#include "linux/kernel.h"
#include "linux/orc.h"
#include "linux/x86/orc_entry.h"

#define ENTRIES_MIN 100000u
#define FUNCTIONS_MIN 20000u
#define PLAIN_MIN 0.99

static unsigned failures;

static void expect(bool ok, const char *what)
{
	failures += !ok;
	printf("  %-7s %s\n", ok ? "ok" : "WRONG", what);
}

/* A function that has just been called has its return address on top of the stack. */
static bool is_plain_call(const struct orc_entry *entry)
{
	return entry->type == ORC_CALL && entry->sp_reg == ORC_REG_SP && entry->sp_offset == 8 &&
	       entry->bp_reg == ORC_REG_UNDEFINED;
}

static bool is_function(const struct symbol *symbol)
{
	return strchr("tT", symbol->type) && symbol->name[0] != '_' && !strchr(symbol->name, '.') &&
	       !g_str_has_prefix(symbol->name, "asm_") && !g_str_has_prefix(symbol->name, "entry_");
}

static void check_orc(const struct unwind_tables *orc, const struct symtab *symtab)
{
	unsigned functions = 0, plain = 0, types[ORC_REGS_PARTIAL + 1] = {0};
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++) {
		const struct orc_entry *first = orc_find(orc, symbols[i].address);
		const struct orc_entry *last = orc_find(orc, symbols[i].address + symbols[i].size - 1);

		if (!first || !last)
			continue;
		types[last->type]++;
		if (!is_function(&symbols[i]) || first->type == ORC_UNDEFINED)
			continue;
		functions++;
		plain += is_plain_call(first);
	}
	printf("  %zu entries; %u of %u functions begin with their return address on top of the stack\n",
	       orc_entries(orc), plain, functions);
	expect(orc_entries(orc) > ENTRIES_MIN && functions > FUNCTIONS_MIN, "the size of a distribution's kernel");
	expect(plain > PLAIN_MIN * functions, "what is known of functions that begin");
	expect(types[ORC_CALL] > 0 && types[ORC_REGS] > 0 && types[ORC_UNDEFINED] > 0, "calls, exceptions, no way on");
}

static void check_modules(const struct module_layout *modules, bool mem)
{
	uint32_t stride = modules->parts[MODULE_INIT_TEXT].base - modules->parts[MODULE_TEXT].base;

	printf("  modules: list %u, name %u, build-id %u, text %u and %u, init %u and %u\n", modules->list,
	       modules->name, modules->build_id, modules->parts[0].base, modules->parts[0].bytes,
	       modules->parts[1].base, modules->parts[1].bytes);
	expect(modules->list > modules->state && modules->name == modules->list + 16, "their list and names");
	expect(modules->build_id != 0 || modules->notes.attributes != 0, "their build-ids");
	expect(modules->has_orc && modules->has_kallsyms, "their unwind tables and symbols");
	/* Four struct module_memory of at least a pointer and a size, or one struct module_layout. */
	expect(mem ? stride % 4 == 0 && stride >= 64 : stride > 16 && stride < 128, "their code");
}

static void check_layout(const struct kernel_layout *layout, const struct symtab *symtab, bool mem)
{
	const struct symbol *hot = symtab_find_name(symtab, "pcpu_hot");

	expect(layout->has_tasks && layout->has_mappings && layout->has_cgroups && layout->has_modules,
	       "tasks, mappings, cgroups, modules");
	if (layout->os.why[OS_TASKS] || layout->os.why[OS_MAPPINGS] || layout->os.why[OS_GROUPS] ||
	    layout->os.why[OS_MODULES] != NULL)
		printf("  %s %s %s %s\n", layout->os.why[OS_TASKS], layout->os.why[OS_MAPPINGS],
		       layout->os.why[OS_GROUPS], layout->os.why[OS_MODULES]);
	printf("  tasks: pid %u, tgid %u, comm %u, mm %u\n", layout->tasks.pid, layout->tasks.tgid, layout->tasks.comm,
	       layout->tasks.mm);
	expect(layout->tasks.tgid == layout->tasks.pid + 4, "pid and tgid, side by side");
	expect((hot != NULL) == mem && (!hot || layout->tasks.current_task == hot->address),
	       "where the running task is");
	expect(layout->mappings.has_tree, "mappings in a tree");
	expect(layout->has_list && layout->list.queued != 0, "the list of tasks, and their time in the run queue");
	expect(layout->list.n_locks > 10 && layout->list.n_locks < TASK_LOCKS_MAX, "functions that wait for locks");
	expect(layout->switch_to.value != 0 && layout->os.page_tables.value != 0, "symbols that are looked for");
	if (layout->has_modules)
		check_modules(&layout->modules, mem);
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	bool mem = argc == 3 && strcmp(argv[2], "mem") == 0;

	if (argc != 3 || (!mem && strcmp(argv[2], "core") != 0)) {
		fprintf(stderr, "usage: kernel_layouts KERNEL core|mem\n");
		return EXIT_FAILURE;
	}
	struct image *image = image_open(argv[1], &error);
	struct symtab *symtab = image ? symtab_load(image, &error) : NULL;
	struct unwind_tables *orc = symtab ? orc_load(image, &error) : NULL;

	if (orc) {
		struct kernel_layout *layout = kernel_layout_load(image);

		printf("Linux %s\n", image_release(image));
		check_orc(orc, symtab);
		check_layout(layout, symtab, mem);
		kernel_layout_free(layout);
	} else {
		fprintf(stderr, "kernel_layouts: %s\n", error->message);
		failures++;
	}
	orc_free(orc);
	symtab_free(symtab);
	image_free(image);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
