// SPDX-License-Identifier: BSD-2-Clause
/* Registers by KVM_GET_ONE_REG and KVM_SET_ONE_REG: KVM shares none in kvm_run (Documentation/virt/kvm/api.rst, 4.68).
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "kvm/host/host.h"
#include "kvm/vcpu/arm64/vcpu_arm64.h"
#include "kvm/vcpu/vcpu_arch.h"

#define CORE(member) (KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | KVM_REG_ARM_CORE_REG(member))
/* Arm ARM, D19.2: op0, op1, CRn, CRm, op2. */
#define SCTLR_EL1 ARM64_SYS_REG(3, 0, 1, 0, 0)
#define TTBR0_EL1 ARM64_SYS_REG(3, 0, 2, 0, 0)
#define TTBR1_EL1 ARM64_SYS_REG(3, 0, 2, 0, 1)
#define TCR_EL1 ARM64_SYS_REG(3, 0, 2, 0, 2)
#define TPIDR_EL1 ARM64_SYS_REG(3, 0, 13, 0, 4)
#define ESR_EL1 ARM64_SYS_REG(3, 0, 5, 2, 0)
#define FAR_EL1 ARM64_SYS_REG(3, 0, 6, 0, 0)
#define VBAR_EL1 ARM64_SYS_REG(3, 0, 12, 0, 0)

#define SCTLR_M UINT64_C(1)
/* PSTATE as SPSR has it (Arm ARM, C5.2.18): the exception level, and whether its own stack pointer is in use. */
#define PSTATE_EL(pstate) ((pstate) >> 2 & 3)
#define PSTATE_SP 1u

static bool get(const struct vcpu *vcpu, uint64_t id, uint64_t *value)
{
	const struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)value};

	return ioctl(vcpu->fd, KVM_GET_ONE_REG, &reg) == 0;
}

static bool get_all(const struct vcpu *vcpu, const uint64_t *ids, uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!get(vcpu, ids[i], &values[i]))
			return false;
	return true;
}

void vcpu_read_registers(const struct vcpu *vcpu, struct guest_regs *regs)
{
	enum { PSTATE, PC, FP, LR, SCTLR, TCR, TTBR0, TTBR1, TPIDR, WANTED };
	static const uint64_t ids[WANTED] = {
		[PSTATE] = CORE(regs.pstate), [PC] = CORE(regs.pc), [FP] = CORE(regs.regs[29]),
		[LR] = CORE(regs.regs[30]),   [SCTLR] = SCTLR_EL1,  [TCR] = TCR_EL1,
		[TTBR0] = TTBR0_EL1,          [TTBR1] = TTBR1_EL1,  [TPIDR] = TPIDR_EL1};
	uint64_t values[WANTED], sp;

	*regs = (struct guest_regs){.processor = GUEST_ARM64};
	if (!get_all(vcpu, ids, values, WANTED) ||
	    !get(vcpu, values[PSTATE] & PSTATE_SP ? CORE(sp_el1) : CORE(regs.sp), &sp))
		return;
	regs->valid = true;
	regs->arm64.pc = values[PC];
	regs->arm64.sp = sp;
	regs->arm64.fp = values[FP];
	regs->arm64.lr = values[LR];
	regs->arm64.tpidr = values[TPIDR];
	regs->arm64.el = (uint8_t)PSTATE_EL(values[PSTATE]);
	regs->arm64.tables = (struct guest_tables_arm64){.ttbr0 = values[TTBR0],
	                                                 .ttbr1 = values[TTBR1],
	                                                 .tcr = values[TCR],
	                                                 .mmu = (values[SCTLR] & SCTLR_M) != 0};
}

static bool set(const struct vcpu *vcpu, uint64_t id, const uint64_t *value, GError **error)
{
	const struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)value};

	if (ioctl(vcpu->fd, KVM_SET_ONE_REG, &reg) == 0)
		return true;
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot set register 0x%" PRIx64 " of vCPU %u: %s", id,
	            vcpu->index, g_strerror(errno));
	return false;
}

bool vcpu_set_start(struct vcpu *vcpu, uint64_t pc, uint64_t x0, GError **error)
{
	return set(vcpu, CORE(regs.pc), &pc, error) && set(vcpu, CORE(regs.regs[0]), &x0, error);
}

/* A register that cannot be read is shown as zero. */
static uint64_t shown(const struct vcpu *vcpu, uint64_t id)
{
	uint64_t value = 0;

	return get(vcpu, id, &value) ? value : 0;
}

void vcpu_arch_describe(const struct vcpu *vcpu, struct vcpu_state *state)
{
	const uint64_t pstate = shown(vcpu, CORE(regs.pstate)), pc = shown(vcpu, CORE(regs.pc));
	GString *text = g_string_new(NULL);

	g_string_append_printf(text, "EL%u\n", (unsigned)PSTATE_EL(pstate));
	g_string_append_printf(
		text, "PC  %016" PRIx64 "  SP_EL1 %016" PRIx64 "  SP_EL0 %016" PRIx64 "  PSTATE %08" PRIx64 "\n", pc,
		shown(vcpu, CORE(sp_el1)), shown(vcpu, CORE(regs.sp)), pstate);
	for (unsigned i = 0; i < 31; i++) {
		const uint64_t id = CORE(regs.regs[0]) + i * sizeof(uint64_t) / sizeof(uint32_t);

		g_string_append_printf(text, "X%-2u %016" PRIx64 "%s", i, shown(vcpu, id),
		                       i % 4 == 3 || i == 30 ? "\n" : "  ");
	}
	g_string_append_printf(text, "SCTLR %" PRIx64 "  TCR %" PRIx64 "  TTBR0 %" PRIx64 "  TTBR1 %" PRIx64 "\n",
	                       shown(vcpu, SCTLR_EL1), shown(vcpu, TCR_EL1), shown(vcpu, TTBR0_EL1),
	                       shown(vcpu, TTBR1_EL1));
	g_string_append_printf(text, "ELR %" PRIx64 "  ESR %" PRIx64 "  FAR %" PRIx64 "  VBAR %" PRIx64 "\n",
	                       shown(vcpu, CORE(elr_el1)), shown(vcpu, ESR_EL1), shown(vcpu, FAR_EL1),
	                       shown(vcpu, VBAR_EL1));
	*state = (struct vcpu_state){.text = g_string_free(text, FALSE), .ip_name = "PC", .ip = pc};
}
