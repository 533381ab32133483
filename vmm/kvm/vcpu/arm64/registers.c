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
#define PSTATE_AARCH32 (UINT64_C(1) << 4)
#define PSTATE_MASKED (UINT64_C(15) << 6) /* D, A, I, F */
#define PSTATE_EL1H UINT64_C(5)
#define PSTATE_FLAGS (UINT64_C(15) << 28)
#define PSTATE_SSBS (UINT64_C(1) << 12)
#define PSTATE_PAN (UINT64_C(1) << 22)
#define PSTATE_DIT (UINT64_C(1) << 24)
#define SCTLR_SPAN (UINT64_C(1) << 23)
#define SCTLR_DSSBS (UINT64_C(1) << 44)
/* The vectors of EL1 (Arm ARM, D1.3): one has 128 bytes, four are for each place that an exception may come from. */
#define VECTOR_BYTES UINT64_C(0x80)
#define VECTORS_BYTES UINT64_C(0x800)
#define VECTORS_SAME_EL(pstate) ((pstate)&PSTATE_SP ? UINT64_C(0x200) : 0)
#define VECTORS_EL0(pstate) ((pstate)&PSTATE_AARCH32 ? UINT64_C(0x600) : UINT64_C(0x400))

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

static uint64_t core_x(unsigned n)
{
	return CORE(regs.regs[0]) + n * sizeof(uint64_t) / sizeof(uint32_t);
}

/* One that cannot be read is 0. */
void vcpu_arch_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs)
{
	*gprs = (struct guest_gprs){.processor = GUEST_ARM64};
	for (unsigned i = 0; i < GUEST_GPRS_ARM64_X; i++)
		get(vcpu, core_x(i), &gprs->arm64.x[i]);
	get(vcpu, CORE(regs.pstate), &gprs->arm64.pstate);
	gprs->arm64.sp = vcpu->regs.arm64.sp;
	gprs->arm64.pc = vcpu->regs.arm64.pc;
}

bool vcpu_was_diverted(const struct vcpu *vcpu, uint64_t pc, uint64_t before)
{
	uint64_t vectors, link;

	return pc % VECTOR_BYTES == 0 && get(vcpu, VBAR_EL1, &vectors) && pc - vectors < VECTORS_BYTES &&
	       get(vcpu, CORE(elr_el1), &link) && link == before;
}

/* Arm ARM, D1.3.1 and D1.3.2. */
static uint64_t exception_pstate(uint64_t before, uint64_t sctlr)
{
	return PSTATE_EL1H | PSTATE_MASKED | (before & (PSTATE_FLAGS | PSTATE_PAN | PSTATE_DIT)) |
	       (sctlr & SCTLR_SPAN ? 0 : PSTATE_PAN) | (sctlr & SCTLR_DSSBS ? PSTATE_SSBS : 0);
}

bool vcpu_enter_exception(struct vcpu *vcpu, uint32_t esr, GError **error)
{
	enum { PSTATE, PC, SCTLR, VBAR, WANTED };
	static const uint64_t ids[WANTED] = {
		[PSTATE] = CORE(regs.pstate), [PC] = CORE(regs.pc), [SCTLR] = SCTLR_EL1, [VBAR] = VBAR_EL1};
	const uint64_t syndrome = esr;
	uint64_t values[WANTED];

	if (!get_all(vcpu, ids, values, WANTED))
		return vcpu_fail(vcpu, "read the registers", error);
	const uint64_t pstate = exception_pstate(values[PSTATE], values[SCTLR]);
	const uint64_t pc = values[VBAR] + (PSTATE_EL(values[PSTATE]) == 0 ? VECTORS_EL0(values[PSTATE])
	                                                                   : VECTORS_SAME_EL(values[PSTATE]));
	return set(vcpu, CORE(elr_el1), &values[PC], error) &&
	       set(vcpu, CORE(spsr[KVM_SPSR_EL1]), &values[PSTATE], error) && set(vcpu, ESR_EL1, &syndrome, error) &&
	       set(vcpu, CORE(regs.pstate), &pstate, error) && set(vcpu, CORE(regs.pc), &pc, error);
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
		g_string_append_printf(text, "X%-2u %016" PRIx64 "%s", i, shown(vcpu, core_x(i)),
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
