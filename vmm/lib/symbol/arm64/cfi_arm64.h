// SPDX-License-Identifier: BSD-2-Clause
/* Registers of arm64 by the places that they have, and by their numbers (DWARF for the Arm 64-bit Architecture, 4.1).
 */
#ifndef VPROF_SYMBOL_ARM64_CFI_ARM64_H
#define VPROF_SYMBOL_ARM64_CFI_ARM64_H

#include "lib/symbol/cfi.h"

enum cfi_register_arm64 {
	CFI_ARM64_X29 = CFI_FP,
	CFI_ARM64_SP = CFI_SP,
	CFI_ARM64_X30 = CFI_RETURN,
};

#endif
