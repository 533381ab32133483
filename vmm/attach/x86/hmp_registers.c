// SPDX-License-Identifier: BSD-2-Clause
/* `info registers -a` of a guest of x86-64. QEMU: target/i386/cpu-dump.c. */
#include <stdlib.h>
#include <string.h>

#include "attach/hmp_priv.h"

#define CR0_PE UINT64_C(1)
#define CR4_LA57 (UINT64_C(1) << 12)

/* "NAME=0123" or "NAME =0123"; at the start of a line or behind a blank. */
static const char *value_of(struct hmp_line line, const char *name)
{
	size_t length = strlen(name);
	const char *from = line.text;

	for (;;) {
		struct hmp_line rest = {from, line.n - (size_t)(from - line.text)};
		const char *at = hmp_line_find(rest, name);

		if (!at)
			return NULL;
		const char *equals = at + length + strspn(at + length, " ");

		if ((at == line.text || at[-1] == ' ') && *equals == '=')
			return equals + 1 + strspn(equals + 1, " ");
		from = at + length;
	}
}

static bool take(struct hmp_line line, const char *name, uint64_t *value)
{
	const char *at = value_of(line, name);
	uint64_t read;

	if (!at || !hmp_hex(at, &read))
		return false;
	*value = read;
	return true;
}

/* "GS =0000 ffff88807dc00000 ...": selector, then base. */
static bool take_base(struct hmp_line line, const char *name, uint64_t *base)
{
	const char *at = value_of(line, name);
	uint64_t selector, read;

	if (!at || !(at = hmp_hex(at, &selector)) || *at != ' ' || !hmp_hex(at + 1, &read))
		return false;
	*base = read;
	return true;
}

struct seen {
	bool ip, cr3, cpl;
};

/* The line with RIP (or EIP) has CPL and HLT, too. */
static void take_ip_line(struct hmp_line line, struct seen_vcpu *out, struct seen *seen)
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

static void take_line(struct hmp_line line, struct seen_vcpu *out, struct seen *seen)
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
	if (hmp_line_find(line, "GS") == line.text)
		take_base(line, "GS", &regs->gs_base);
	if (hmp_line_find(line, "CS") == line.text && take_base(line, "CS", &base))
		regs->cs_base = (uint32_t)base;
	if (hmp_line_find(line, "IDT") == line.text)
		take(line, "IDT", &out->vectors);
	if (take(line, "CR0", &cr0))
		regs->real_mode = !(cr0 & CR0_PE);
	if (take(line, "CR3", &regs->cr3))
		seen->cr3 = true;
	if (take(line, "CR4", &cr4))
		regs->la57 = cr4 & CR4_LA57;
}

static bool vcpu_line(struct hmp_line line, unsigned *vcpu)
{
	static const char word[] = "CPU#";
	char *end;

	if (hmp_line_find(line, word) != line.text)
		return false;
	unsigned long number = strtoul(line.text + strlen(word), &end, 10);

	*vcpu = (unsigned)number;
	return end != line.text + strlen(word) && number < GUEST_VCPUS_MAX;
}

size_t hmp_parse_registers(const char *text, struct seen_vcpu *registers, size_t max)
{
	struct seen_vcpu *current = NULL;
	struct seen seen = {false, false, false};
	struct hmp_line line;
	unsigned vcpu;
	size_t n = 0;

	while (hmp_line_next(&text, &line)) {
		if (hmp_line_find(line, "CPU#") == line.text) {
			current = vcpu_line(line, &vcpu) && vcpu < max && n < max ? &registers[n] : NULL;
			seen = (struct seen){false, false, false};
			if (current)
				*current = (struct seen_vcpu){.vcpu = vcpu, .regs.valid = true};
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
