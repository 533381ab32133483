// SPDX-License-Identifier: BSD-2-Clause
/*
 * The boot processor's state: Documentation/arch/x86/boot.rst, "64-bit BOOT PROTOCOL", and
 * xen/include/public/arch-x86/hvm/start_info.h, "PVH".
 */
#include "kvm/boot/x86/boot_registers.h"

#include <string.h>

#include "kvm/boot/x86/boot_layout.h"

/* SDM volume 3, 2.5 and 2.2.1. */
#define CR0_PE (UINT64_C(1) << 0)
#define CR0_MP (UINT64_C(1) << 1)
#define CR0_ET (UINT64_C(1) << 4)
#define CR0_NE (UINT64_C(1) << 5)
#define CR0_WP (UINT64_C(1) << 16)
#define CR0_PG (UINT64_C(1) << 31)
#define CR4_PAE (UINT64_C(1) << 5)
#define EFER_LME (UINT64_C(1) << 8)
#define EFER_LMA (UINT64_C(1) << 10)
#define RFLAGS_RESERVED UINT64_C(2)

/* Descriptor types, SDM volume 3, 3.4.5.1 and 3.5. */
enum { TYPE_DATA = 3, TYPE_CODE = 11, TYPE_TSS_BUSY = 11 };

#define SELECTOR_CODE64 0x10u /* Linux's __BOOT_CS and __BOOT_DS (arch/x86/include/asm/segment.h) */
#define SELECTOR_DATA 0x18u
#define SELECTOR_CODE32 0x20u
#define SELECTOR_TSS 0x28u

#define SEGMENT_LIMIT 0xffffffffu
#define TSS_LIMIT 0x67u

static const struct kvm_segment code64 = {
	.selector = SELECTOR_CODE64,
	.limit = SEGMENT_LIMIT,
	.type = TYPE_CODE,
	.present = 1,
	.s = 1,
	.l = 1,
	.g = 1,
};
static const struct kvm_segment code32 = {
	.selector = SELECTOR_CODE32,
	.limit = SEGMENT_LIMIT,
	.type = TYPE_CODE,
	.present = 1,
	.s = 1,
	.db = 1,
	.g = 1,
};
static const struct kvm_segment data = {
	.selector = SELECTOR_DATA,
	.limit = SEGMENT_LIMIT,
	.type = TYPE_DATA,
	.present = 1,
	.s = 1,
	.db = 1,
	.g = 1,
};
static const struct kvm_segment tss = {
	.selector = SELECTOR_TSS,
	.limit = TSS_LIMIT,
	.type = TYPE_TSS_BUSY,
	.present = 1,
};

/* SDM volume 3, figure 3-8; every segment here starts at 0. */
static uint64_t descriptor(const struct kvm_segment *segment)
{
	uint64_t limit = segment->g ? segment->limit >> 12 : segment->limit;
	uint64_t access = (uint64_t)segment->type | (uint64_t)segment->s << 4 | (uint64_t)segment->present << 7;
	uint64_t flags = (uint64_t)segment->l << 1 | (uint64_t)segment->db << 2 | (uint64_t)segment->g << 3;

	return (limit & 0xffff) | access << 40 | (limit >> 16) << 48 | flags << 52;
}

void boot_gdt_write(const struct memory *memory, struct boot_state *state)
{
	const uint64_t gdt[] = {
		[SELECTOR_CODE64 / 8] = descriptor(&code64),
		[SELECTOR_DATA / 8] = descriptor(&data),
		[SELECTOR_CODE32 / 8] = descriptor(&code32),
		[SELECTOR_TSS / 8] = descriptor(&tss),
		[SELECTOR_TSS / 8 + 1] = 0, /* upper half of a 64-bit TSS descriptor: base bits 32 to 63 */
	};

	memcpy(boot_structure(memory, BOOT_GDT_GPA, sizeof(gdt)), gdt, sizeof(gdt));
	state->gdt_base = BOOT_GDT_GPA;
	state->gdt_limit = sizeof(gdt) - 1;
}

void boot_registers(const struct boot_state *state, struct kvm_regs *regs, struct kvm_sregs *sregs)
{
	bool linux_protocol = state->protocol == BOOT_LINUX;

	*regs = (struct kvm_regs){
		.rip = state->rip,
		.rsp = state->rsp,
		.rsi = state->rsi,
		.rbx = state->rbx,
		.rflags = RFLAGS_RESERVED,
	};
	sregs->cs = linux_protocol ? code64 : code32;
	sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss = data;
	sregs->tr = tss;
	sregs->gdt = (struct kvm_dtable){.base = state->gdt_base, .limit = state->gdt_limit};
	sregs->idt = (struct kvm_dtable){0};
	sregs->cr0 = linux_protocol ? CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG : CR0_PE | CR0_ET;
	sregs->cr3 = state->cr3;
	sregs->cr4 = linux_protocol ? CR4_PAE : 0;
	sregs->efer = linux_protocol ? EFER_LME | EFER_LMA : 0;
}
