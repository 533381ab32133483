// SPDX-License-Identifier: BSD-2-Clause
/* The report of a triple fault or an unhandled exit. */
#include "kvm/vm_parts.h"
#include "lib/symbol/symtab.h"

#define CONSOLE_LINES 40u

/* Before it turns paging on, a kernel runs at the physical addresses that its segments were loaded to. */
static uint64_t image_address(const struct image *image, uint64_t ip)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if (ip >= segments[i].gpa && ip - segments[i].gpa < segments[i].memory_bytes)
			return ip - segments[i].gpa + segments[i].gva;
	}
	return ip;
}

static void append_symbol(GString *text, const struct vm *vm)
{
	struct image *image = guest_image_open(&vm->guest, NULL);
	struct symtab *symtab = image ? symtab_load(image, NULL) : NULL;

	if (symtab) {
		const struct vcpu_state *state = &vm->crash.state;
		uint64_t address = image_address(image, state->ip);
		const struct symbol *symbol = symtab_find(symtab, address);

		if (symbol)
			g_string_append_printf(text, "%s %s in %s+0x%" G_GINT64_MODIFIER "x\n", state->ip_name,
			                       state->past ? "was last seen" : "is", symbol->name,
			                       address - symbol->address);
	}
	symtab_free(symtab);
	image_free(image);
}

char *vm_console_lines(struct vm *vm)
{
	return console_tail(vm->consoles[0], CONSOLE_LINES);
}

char *vm_crash_report(struct vm *vm)
{
	GString *text = g_string_new(NULL);

	if (vm->crash.state.past)
		g_string_append(text, "Registers as last seen, at the exit before: KVM has reset the vCPU\n");
	g_string_append_printf(text, "vCPU %u, %s", vm->crash.vcpu, vm->crash.state.text);
	append_symbol(text, vm);
	g_autofree char *tail = vm_console_lines(vm);
	if (*tail)
		g_string_append_printf(text, "Last console lines:\n%s%s", tail,
		                       g_str_has_suffix(tail, "\n") ? "" : "\n");
	return g_string_free(text, FALSE);
}
