// SPDX-License-Identifier: BSD-2-Clause
/* The report of a triple fault or an unhandled exit. */
#include "kvm/vm_parts.h"
#include "lib/symbol/symtab.h"

#define CONSOLE_LINES 40u

static void append_registers(GString *text, const struct vm_crash *crash)
{
	const struct kvm_regs *r = &crash->regs;
	const struct kvm_sregs *s = &crash->sregs;

	if (crash->reset)
		g_string_append(text, "Registers as last seen, at the exit before: KVM has reset the vCPU\n");
	g_string_append_printf(text, "vCPU %u, CPL %u\n", crash->vcpu, s->ss.dpl);
	g_string_append_printf(text, "RIP %016llx  RSP %016llx  RBP %016llx  RFLAGS %08llx\n", r->rip, r->rsp, r->rbp,
	                       r->rflags);
	g_string_append_printf(text, "RAX %016llx  RBX %016llx  RCX %016llx  RDX %016llx\n", r->rax, r->rbx, r->rcx,
	                       r->rdx);
	g_string_append_printf(text, "RSI %016llx  RDI %016llx  R8  %016llx  R9  %016llx\n", r->rsi, r->rdi, r->r8,
	                       r->r9);
	g_string_append_printf(text, "R10 %016llx  R11 %016llx  R12 %016llx  R13 %016llx\n", r->r10, r->r11, r->r12,
	                       r->r13);
	g_string_append_printf(text, "R14 %016llx  R15 %016llx\n", r->r14, r->r15);
	g_string_append_printf(text, "CR0 %08llx  CR2 %016llx  CR3 %016llx  CR4 %08llx  EFER %llx\n", s->cr0, s->cr2,
	                       s->cr3, s->cr4, s->efer);
	g_string_append_printf(text, "CS %04x  SS %04x  GS base %016llx  GDT %016llx/%x  IDT %016llx/%x\n",
	                       s->cs.selector, s->ss.selector, s->gs.base, s->gdt.base, s->gdt.limit, s->idt.base,
	                       s->idt.limit);
}

static void append_code(GString *text, const struct vm_crash *crash)
{
	if (crash->code_bytes == 0)
		return;
	g_string_append(text, "Instruction:");
	for (size_t i = 0; i < crash->code_bytes; i++)
		g_string_append_printf(text, " %02x", crash->code[i]);
	g_string_append_c(text, '\n');
}

/* Before it turns paging on, a kernel runs at the physical addresses that its segments were loaded to. */
static uint64_t image_address(const struct image *image, uint64_t rip)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if (rip >= segments[i].gpa && rip - segments[i].gpa < segments[i].memory_bytes)
			return rip - segments[i].gpa + segments[i].gva;
	}
	return rip;
}

static void append_symbol(GString *text, const struct vm *vm)
{
	struct image *image = image_open(vm->guest.kernel_path, NULL);
	struct symtab *symtab = image ? symtab_load(image, NULL) : NULL;

	if (symtab) {
		uint64_t address = image_address(image, vm->crash.regs.rip);
		const struct symbol *symbol = symtab_find(symtab, address);

		if (symbol)
			g_string_append_printf(text, "RIP %s in %s+0x%" G_GINT64_MODIFIER "x\n",
			                       vm->crash.reset ? "was last seen" : "is", symbol->name,
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

	append_registers(text, &vm->crash);
	append_code(text, &vm->crash);
	append_symbol(text, vm);
	g_autofree char *tail = vm_console_lines(vm);
	if (*tail)
		g_string_append_printf(text, "Last console lines:\n%s%s", tail,
		                       g_str_has_suffix(tail, "\n") ? "" : "\n");
	return g_string_free(text, FALSE);
}
