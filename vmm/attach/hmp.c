// SPDX-License-Identifier: BSD-2-Clause
/* QEMU: softmmu/memory.c (mtree_print_flatview), monitor/misc.c (gpa2hva), target/i386/cpu-dump.c. */
#include "attach/hmp.h"

#include <stdlib.h>
#include <string.h>

#define CR0_PE UINT64_C(1)
#define CR4_LA57 (UINT64_C(1) << 12)

/* Up to the end of the line. */
struct line {
	const char *text;
	size_t n;
};

static bool next_line(const char **text, struct line *line)
{
	if (**text == '\0')
		return false;
	line->text = *text;
	line->n = strcspn(*text, "\n");
	*text += line->n + ((*text)[line->n] == '\n');
	return true;
}

static const char *line_find(struct line line, const char *word)
{
	return memmem(line.text, line.n, word, strlen(word));
}

/* Hexadecimal digits at `at`, 16 at most; where they end, or NULL without any. */
static const char *hex(const char *at, uint64_t *value)
{
	unsigned digits = 0;

	*value = 0;
	for (int digit; digits < 16 && (digit = g_ascii_xdigit_value(at[digits])) >= 0; digits++)
		*value = *value << 4 | (uint64_t)digit;
	return digits > 0 && !g_ascii_isxdigit(at[digits]) ? at + digits : NULL;
}

/* ---- info mtree -f ---- */

/* "... (prio 0, ram): pc.ram @0000000000100000 KVM" */
static bool range_parse(struct line line, struct hmp_ram_range *range)
{
	const char *at = line.text + strspn(line.text, " ");
	const char *kind = line_find(line, ", ram): ");
	uint64_t last;

	if (!kind)
		kind = line_find(line, ", rom): ");
	if (!kind || !(at = hex(at, &range->gpa)) || *at != '-' || !hex(at + 1, &last) || last < range->gpa ||
	    __builtin_add_overflow(last - range->gpa, 1, &range->bytes))
		return false;
	kind += strlen(", ram): ");
	size_t left = line.n - (size_t)(kind - line.text);
	size_t name = MIN(strcspn(kind, " \r\n"), left);

	if (name == 0 || name >= sizeof(range->block))
		return false;
	memcpy(range->block, kind, name);
	range->block[name] = '\0';
	range->offset = 0;
	return name + 2 >= left || kind[name + 1] != '@' || hex(kind + name + 2, &range->offset);
}

/* Sorted ones, and none that reaches into the next: QEMU prints a flat view so. */
static bool range_follows(const struct hmp_ram_range *ranges, size_t n, const struct hmp_ram_range *range)
{
	uint64_t end;

	return !__builtin_add_overflow(range->gpa, range->bytes, &end) &&
	       (n == 0 || range->gpa - ranges[n - 1].gpa >= ranges[n - 1].bytes) &&
	       (n == 0 || range->gpa > ranges[n - 1].gpa);
}

/* The vCPUs' own address space; by KVM they have the machine's. */
static bool is_vcpu_view(struct line line)
{
	return line_find(line, " AS \"cpu-memory-0\"") || line_find(line, " AS \"memory\"");
}

size_t hmp_parse_mtree(const char *text, struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX])
{
	struct hmp_ram_range range;
	struct line line;
	bool wanted = false;
	size_t n = 0;

	while (next_line(&text, &line)) {
		if (line_find(line, "FlatView #") == line.text) {
			if (n > 0)
				break;
			wanted = false;
		} else if (is_vcpu_view(line)) {
			wanted = true;
		} else if (wanted && n < HMP_RAM_RANGES_MAX && range_parse(line, &range) &&
		           range_follows(ranges, n, &range)) {
			ranges[n++] = range;
		}
	}
	return n;
}

bool hmp_parse_gpa2hva(const char *text, uint64_t *hva)
{
	static const char words[] = " is 0x";
	const char *at = strstr(text, words);

	return at && hex(at + strlen(words), hva) && *hva != 0;
}

/* ---- info registers -a ---- */

/* "NAME=0123" or "NAME =0123"; at the start of a line or behind a blank. */
static const char *value_of(struct line line, const char *name)
{
	size_t length = strlen(name);
	const char *from = line.text;

	for (;;) {
		struct line rest = {from, line.n - (size_t)(from - line.text)};
		const char *at = line_find(rest, name);

		if (!at)
			return NULL;
		const char *equals = at + length + strspn(at + length, " ");

		if ((at == line.text || at[-1] == ' ') && *equals == '=')
			return equals + 1 + strspn(equals + 1, " ");
		from = at + length;
	}
}

static bool take(struct line line, const char *name, uint64_t *value)
{
	const char *at = value_of(line, name);
	uint64_t read;

	if (!at || !hex(at, &read))
		return false;
	*value = read;
	return true;
}

/* "GS =0000 ffff88807dc00000 ...": selector, then base. */
static bool take_base(struct line line, const char *name, uint64_t *base)
{
	const char *at = value_of(line, name);
	uint64_t selector, read;

	if (!at || !(at = hex(at, &selector)) || *at != ' ' || !hex(at + 1, &read))
		return false;
	*base = read;
	return true;
}

struct seen {
	bool ip, cr3, cpl;
};

/* The line with RIP (or EIP) has CPL and HLT, too. */
static void take_ip_line(struct line line, struct hmp_registers *out, struct seen *seen)
{
	uint64_t cpl, halted;

	if (!take(line, "RIP", &out->regs.rip) && !take(line, "EIP", &out->regs.rip))
		return;
	out->long_mode = value_of(line, "RIP") != NULL;
	seen->ip = true;
	if (take(line, "CPL", &cpl) && cpl <= 3) {
		out->regs.cpl = (uint8_t)cpl;
		seen->cpl = true;
	}
	out->halted = take(line, "HLT", &halted) && halted == 1;
}

static void take_line(struct line line, struct hmp_registers *out, struct seen *seen)
{
	struct guest_regs *regs = &out->regs;

	const struct {
		const char *name;
		uint64_t *value;
	} general[] = {
		{"RAX", &regs->rax}, {"RDX", &regs->rdx}, {"RDI", &regs->rdi}, {"RBP", &regs->rbp}, {"RSP", &regs->rsp},
		{"R10", &regs->r10}, {"R13", &regs->r13}, {"RBX", &regs->rbx}, {"RCX", &regs->rcx}, {"RSI", &regs->rsi},
		{"R8", &regs->r8},   {"R9", &regs->r9},   {"R11", &regs->r11}, {"R12", &regs->r12}, {"R14", &regs->r14},
	};
	uint64_t cr0, cr4, base;

	for (size_t i = 0; i < G_N_ELEMENTS(general); i++)
		take(line, general[i].name, general[i].value);
	/* The last one. */
	regs->all |= take(line, "R15", &regs->r15);
	take_ip_line(line, out, seen);
	if (line_find(line, "GS") == line.text)
		take_base(line, "GS", &regs->gs_base);
	if (line_find(line, "CS") == line.text && take_base(line, "CS", &base))
		regs->cs_base = (uint32_t)base;
	if (line_find(line, "IDT") == line.text)
		take(line, "IDT", &out->idt);
	if (take(line, "CR0", &cr0))
		regs->real_mode = !(cr0 & CR0_PE);
	if (take(line, "CR3", &regs->cr3))
		seen->cr3 = true;
	if (take(line, "CR4", &cr4))
		regs->la57 = cr4 & CR4_LA57;
}

static bool vcpu_line(struct line line, unsigned *vcpu)
{
	static const char word[] = "CPU#";
	char *end;

	if (line_find(line, word) != line.text)
		return false;
	unsigned long number = strtoul(line.text + strlen(word), &end, 10);

	*vcpu = (unsigned)number;
	return end != line.text + strlen(word) && number < GUEST_VCPUS_MAX;
}

size_t hmp_parse_registers(const char *text, struct hmp_registers *registers, size_t max)
{
	struct hmp_registers *current = NULL;
	struct seen seen = {false, false, false};
	struct line line;
	unsigned vcpu;
	size_t n = 0;

	while (next_line(&text, &line)) {
		if (line_find(line, "CPU#") == line.text) {
			current = vcpu_line(line, &vcpu) && vcpu < max && n < max ? &registers[n] : NULL;
			seen = (struct seen){false, false, false};
			if (current)
				*current = (struct hmp_registers){.vcpu = vcpu, .regs.valid = true};
		} else if (current) {
			take_line(line, current, &seen);
			if (seen.ip && seen.cpl && seen.cr3 && value_of(line, "EFER")) {
				n++;
				current = NULL;
			}
		}
	}
	return n;
}
