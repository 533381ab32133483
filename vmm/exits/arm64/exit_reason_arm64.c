// SPDX-License-Identifier: BSD-2-Clause
/* Exception classes (ESR_ELx.EC of the Arm ARM, D19.2), by the names that KVM's trace points and perf have for them. */
#include "exits/exit_reason.h"

#include <inttypes.h>
#include <stdio.h>

#include "exits/bpf/exit_times.h"

#define CLASS_WFX 0x01u

static const char *const classes[] = {
	[0x00] = "UNKNOWN",     [CLASS_WFX] = "WFx",    [0x03] = "CP15_32",     [0x04] = "CP15_64",
	[0x05] = "CP14_MR",     [0x06] = "CP14_LS",     [0x07] = "FP_ASIMD",    [0x08] = "CP10_ID",
	[0x09] = "PAC",         [0x0c] = "CP14_64",     [0x0d] = "BTI",         [0x0e] = "ILL",
	[0x11] = "SVC32",       [0x12] = "HVC32",       [0x13] = "SMC32",       [0x15] = "SVC64",
	[0x16] = "HVC64",       [0x17] = "SMC64",       [0x18] = "SYS64",       [0x19] = "SVE",
	[0x1a] = "ERET",        [0x1c] = "FPAC",        [0x1d] = "SME",         [0x1f] = "IMP_DEF",
	[0x20] = "IABT_LOW",    [0x21] = "IABT_CUR",    [0x22] = "PC_ALIGN",    [0x24] = "DABT_LOW",
	[0x25] = "DABT_CUR",    [0x26] = "SP_ALIGN",    [0x27] = "MOPS",        [0x28] = "FP_EXC32",
	[0x2c] = "FP_EXC64",    [0x2f] = "SERROR",      [0x30] = "BREAKPT_LOW", [0x31] = "BREAKPT_CUR",
	[0x32] = "SOFTSTP_LOW", [0x33] = "SOFTSTP_CUR", [0x34] = "WATCHPT_LOW", [0x35] = "WATCHPT_CUR",
	[0x38] = "BKPT32",      [0x3a] = "VECTOR32",    [0x3c] = "BRK64",
};

/* KVM's codes of what is no trap: ARM_EXCEPTION_* of arch/arm64/include/asm/kvm_asm.h. */
static const char *const others[] = {"IRQ", "EL1_SERROR", NULL, "IL"};

static const char *name_find(uint32_t reason)
{
	const uint32_t code = reason & ~EXIT_TIMES_NO_TRAP;

	if (reason & EXIT_TIMES_NO_TRAP)
		return code < G_N_ELEMENTS(others) ? others[code] : NULL;
	return reason < G_N_ELEMENTS(classes) ? classes[reason] : NULL;
}

void exit_reason_name(unsigned isa, uint32_t reason, char name[GUEST_EXIT_NAME_BYTES])
{
	const char *known = isa == EXIT_TIMES_ISA_ARM64 ? name_find(reason) : NULL;

	if (known)
		snprintf(name, GUEST_EXIT_NAME_BYTES, "%s", known);
	else
		snprintf(name, GUEST_EXIT_NAME_BYTES, "0x%" PRIx32, reason);
}

bool exit_reason_is_halt(unsigned isa, uint32_t reason)
{
	return isa == EXIT_TIMES_ISA_ARM64 && reason == CLASS_WFX;
}
