// SPDX-License-Identifier: BSD-2-Clause
/* Registers by their DWARF numbers (x86-64 psABI, figure 3.36). */
#ifndef VPROF_SYMBOL_X86_CFI_X86_H
#define VPROF_SYMBOL_X86_CFI_X86_H

#include "lib/symbol/cfi.h"

enum cfi_register_x86 {
	CFI_RAX,
	CFI_RDX,
	CFI_RCX,
	CFI_RBX,
	CFI_RSI,
	CFI_RDI,
	CFI_RBP = CFI_FP,
	CFI_RSP = CFI_SP,
	CFI_R8,
	CFI_R9,
	CFI_R10,
	CFI_R11,
	CFI_R12,
	CFI_R13,
	CFI_R14,
	CFI_R15,
	CFI_RIP = CFI_RETURN,
};

#endif
