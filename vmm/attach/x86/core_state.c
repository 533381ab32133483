// SPDX-License-Identifier: BSD-2-Clause
/* As in QEMU's target/i386/arch_dump.c. */
#include <string.h>

#include "attach/core_file.h"

#define QEMU_STATE_VERSION 1u

struct qemu_segment {
	uint32_t selector, limit, flags, pad;
	uint64_t base;
};
struct qemu_state {
	uint32_t version, size;
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rsp, rbp;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rip, rflags;
	struct qemu_segment cs, ds, es, fs, gs, ss, ldt, tr, gdt, idt;
	uint64_t cr[5];
};
_Static_assert(sizeof(struct qemu_state) == 8 + 18 * 8 + 10 * 24 + 5 * 8, "a version 1 note, but kernel_gs_base");

#define CR0_PE UINT64_C(1)
#define CR4_LA57 (UINT64_C(1) << 12)
#define SEGMENT_LONG (1u << 21) /* L of a descriptor's second word */

static struct seen_vcpu registers_of(const struct qemu_state *state, unsigned vcpu)
{
	return (struct seen_vcpu){
		.vcpu = vcpu,
		.regs = {.valid = true,
	                 .rip = state->rip,
	                 .rsp = state->rsp,
	                 .rbp = state->rbp,
	                 .rax = state->rax,
	                 .rdx = state->rdx,
	                 .rdi = state->rdi,
	                 .r10 = state->r10,
	                 .r13 = state->r13,
	                 .rbx = state->rbx,
	                 .rcx = state->rcx,
	                 .rsi = state->rsi,
	                 .r8 = state->r8,
	                 .r9 = state->r9,
	                 .r11 = state->r11,
	                 .r12 = state->r12,
	                 .r14 = state->r14,
	                 .r15 = state->r15,
	                 .all = true,
	                 .cr3 = state->cr[3],
	                 .gs_base = state->gs.base,
	                 .cpl = state->cs.selector & 3,
	                 .la57 = state->cr[4] & CR4_LA57,
	                 .real_mode = !(state->cr[0] & CR0_PE)},
		.vectors = state->idt.base,
		/* In user space of 32 bits, the kernel is one of 64 all the same. */
		.long_mode = state->cs.flags & SEGMENT_LONG || state->idt.base >> 63,
	};
}

bool core_state_read(const uint8_t *body, size_t bytes, unsigned vcpu, struct seen_vcpu *registers)
{
	struct qemu_state state;

	if (bytes < sizeof(state))
		return false;
	memcpy(&state, body, sizeof(state));
	if (state.version != QEMU_STATE_VERSION)
		return false;
	*registers = registers_of(&state, vcpu);
	return true;
}
