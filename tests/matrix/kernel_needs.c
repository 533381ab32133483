// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel_needs KERNEL: a line for everything that a kernel's image says of what can be known of a guest, and for what
 * differs from release to release. The kernel is not booted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/symtab.h"
#include "linux/kernel.h"
#include "linux/needs.h"
#include "linux/orc.h"
#include "linux/x86/orc_entry.h"

static void needs_print(const struct os_kernel *kernel)
{
	for (const struct os_need *need = linux_needs; need->name; need++) {
		const char *why = need->why(kernel);

		printf("%s: %s%s\n", need->name, why ? "" : "by ", why ? why : need->how);
	}
}

static void shapes_print(const struct kernel_layout *layout)
{
	const struct os_places *places = &layout->os.places;

	printf("bytes of on_cpu, state: %u, %u\n", layout->list.on_cpu.bytes, layout->list.state.bytes);
	printf("waiters of a mutex: %s\n",
	       layout->locks.types[VPROF_LOCK_MUTEX].first ? "a ring of their own" : "in the lock's list");
	printf("notes of modules: %s\n", layout->modules.notes.has_list ? "a list" : "an array");
	printf("bytes behind the registers of user space on a task's stack: %u\n", places->stack_padding);
	printf("bytes between the interrupt stack's last word and its address: %u\n", places->interrupt_stack_behind);
}

/* Functions that begin with a return address on top of the stack, in a hundred. */
static unsigned plain_percent(const struct unwind_tables *orc, const struct symtab *symtab)
{
	unsigned functions = 0, plain = 0;
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++) {
		const struct orc_entry *entry = strchr("tT", symbols[i].type) && !strchr(symbols[i].name, '.')
		                                        ? orc_find(orc, symbols[i].address)
		                                        : NULL;

		if (!entry || entry->type == ORC_UNDEFINED)
			continue;
		functions++;
		plain += entry->type == ORC_CALL && entry->sp_reg == ORC_REG_SP && entry->sp_offset == 8;
	}
	return functions > 0 ? plain * 100 / functions : 0;
}

static void orc_print(const struct image *image, const struct symtab *symtab)
{
	g_autoptr(GError) error = NULL;
	struct unwind_tables *orc = orc_load(image, &error);

	if (orc)
		printf("ORC: of all functions, %s begin with their return address on top of the stack\n",
		       plain_percent(orc, symtab) >= 95 ? "nearly all" : "NOT nearly all");
	else
		printf("ORC: %s\n", error->code == UNWIND_ERROR_NONE ? "none" : error->message);
	orc_free(orc);
}

/* What is taken for a function, and is data. */
static void data_print(const struct symtab *symtab)
{
	const uint64_t begin = symtab_address(symtab, "_sdata"), end = symtab_address(symtab, "_edata");
	unsigned functions = 0;
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++)
		functions += symbols[i].address >= begin && symbols[i].address < end && strchr("tTwW", symbols[i].type);
	printf("functions in .data: %u\n", functions);
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct image *image = argc == 2 ? image_open(argv[1], &error) : NULL;
	struct symtab *symtab = image ? symtab_load(image, &error) : NULL;

	if (argc != 2) {
		fprintf(stderr, "usage: kernel_needs KERNEL\n");
		return EXIT_FAILURE;
	}
	if (!symtab) {
		printf("none of it: %s\n", error->message);
		image_free(image);
		return EXIT_SUCCESS;
	}
	struct kernel_layout *layout = kernel_layout_load(image);

	needs_print(&layout->os);
	if (layout->has_tasks)
		shapes_print(layout);
	orc_print(image, symtab);
	data_print(symtab);
	kernel_layout_free(layout);
	symtab_free(symtab);
	image_free(image);
	return EXIT_SUCCESS;
}
