// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/x86/cfi_x86.h"

static uint64_t place(uint64_t dwarf)
{
	return dwarf;
}

const struct cfi_arch cfi_x86_64 = {
	.return_address = CFI_RIP,
	.preserved = 1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 | 1u << CFI_R14 | 1u << CFI_R15,
	.place = place,
};
