// SPDX-License-Identifier: BSD-2-Clause
/* Registers: those of a sample, of the start, and of a crash. */
#include <sys/ioctl.h>

#include "kvm/host/x86/host_quirks.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/x86/vcpu_x86.h"

/* After INIT (SDM vol. 3A, table 10-1; APM vol. 2, table 14-1). */
#define INIT_RIP UINT64_C(0xfff0)
#define INIT_CS_BASE UINT64_C(0xffff0000)
#define CR0_PE UINT64_C(1)
#define CR4_LA57 (UINT64_C(1) << 12) /* SDM vol. 3A, 2.5 */

bool vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs, GError **error)
{
	return ioctl(vcpu->fd, KVM_GET_SREGS, sregs) == 0 || vcpu_fail(vcpu, "read the system registers", error);
}

bool vcpu_set_registers(struct vcpu *vcpu, const struct kvm_regs *regs, const struct kvm_sregs *sregs, GError **error)
{
	if (ioctl(vcpu->fd, KVM_SET_SREGS, sregs) < 0)
		return vcpu_fail(vcpu, "set the system registers", error);
	if (ioctl(vcpu->fd, KVM_SET_REGS, regs) < 0)
		return vcpu_fail(vcpu, "set the registers", error);
	return true;
}

void vcpu_keep_registers(struct vcpu *vcpu)
{
	const struct kvm_sync_regs *now = &vcpu->run->s.regs;

	if (vcpu->run->exit_reason != KVM_EXIT_SHUTDOWN)
		vcpu->arch->last = (struct vcpu_registers){.valid = true, .regs = now->regs, .sregs = now->sregs};
}

bool vcpu_was_reset(const struct vcpu *vcpu)
{
	const struct kvm_sync_regs *now = &vcpu->run->s.regs;

	return vcpu->run->exit_reason == KVM_EXIT_SHUTDOWN && now->regs.rip == INIT_RIP &&
	       now->sregs.cs.base == INIT_CS_BASE && !(now->sregs.cr0 & CR0_PE);
}

void vcpu_read_registers(const struct vcpu *vcpu, struct guest_regs *regs)
{
	const struct kvm_sync_regs *sync = &vcpu->run->s.regs;
	const struct host_quirks *quirks = vcpu->machine->arch->quirks;
	const bool real_mode = !(sync->sregs.cr0 & CR0_PE);

	/* The CPL is SS's DPL (SDM vol. 3C, 25.4.1; KVM's vmx_get_cpl and svm_get_segment), and always 0 in real mode.
	 */
	*regs = (struct guest_regs){.rip = sync->regs.rip,
	                            .rsp = sync->regs.rsp,
	                            .rbp = sync->regs.rbp,
	                            .rax = sync->regs.rax,
	                            .rdx = sync->regs.rdx,
	                            .rdi = sync->regs.rdi,
	                            .r10 = sync->regs.r10,
	                            .r13 = sync->regs.r13,
	                            .rbx = sync->regs.rbx,
	                            .rcx = sync->regs.rcx,
	                            .rsi = sync->regs.rsi,
	                            .r8 = sync->regs.r8,
	                            .r9 = sync->regs.r9,
	                            .r11 = sync->regs.r11,
	                            .r12 = sync->regs.r12,
	                            .r14 = sync->regs.r14,
	                            .r15 = sync->regs.r15,
	                            .all = true,
	                            .cr3 = sync->sregs.cr3,
	                            .gs_base = sync->sregs.gs.base,
	                            .cpl = real_mode ? 0 : sync->sregs.ss.dpl,
	                            .la57 = (sync->sregs.cr4 & CR4_LA57) != 0,
	                            .real_mode = real_mode,
	                            .cs_base = real_mode ? (uint32_t)sync->sregs.cs.base : 0,
	                            .valid = !quirks || !quirks->owns(sync->regs.rip)};
}

static void append_registers(GString *text, const struct kvm_regs *r, const struct kvm_sregs *s)
{
	g_string_append_printf(text, "CPL %u\n", s->ss.dpl);
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

/* The instruction, where KVM gives it. */
static void append_code(GString *text, const struct kvm_run *run)
{
	uint8_t code[INSTRUCTION_BYTES_MAX];
	size_t n = run->exit_reason == KVM_EXIT_INTERNAL_ERROR ? kvm_failed_instruction(run, code) : 0;

	if (n == 0)
		return;
	g_string_append(text, "Instruction:");
	for (size_t i = 0; i < n; i++)
		g_string_append_printf(text, " %02x", code[i]);
	g_string_append_c(text, '\n');
}

void vcpu_arch_describe(const struct vcpu *vcpu, struct vcpu_state *state)
{
	const struct vcpu_registers *last = &vcpu->arch->last;
	const struct kvm_sync_regs *now = &vcpu->run->s.regs;
	bool past = last->valid && vcpu_was_reset(vcpu);
	const struct kvm_regs *regs = past ? &last->regs : &now->regs;
	GString *text = g_string_new(NULL);

	append_registers(text, regs, past ? &last->sregs : &now->sregs);
	append_code(text, vcpu->run);
	*state = (struct vcpu_state){
		.text = g_string_free(text, FALSE), .ip_name = "RIP", .ip = regs->rip, .past = past};
}
