// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/arm64/cfi_arm64.h"

static uint64_t place(uint64_t dwarf)
{
	switch (dwarf) {
	case 29:
		return CFI_ARM64_X29;
	case 30:
		return CFI_ARM64_X30;
	case 31:
		return CFI_ARM64_SP;
	default:
		return CFI_REGISTERS;
	}
}

const struct cfi_arch cfi_arm64 = {
	.return_address = 30, .links = true, .preserved = 1u << CFI_ARM64_X29, .place = place};
