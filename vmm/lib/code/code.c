// SPDX-License-Identifier: BSD-2-Clause
#include "lib/code/code.h"

const struct processor_code *code_of(enum arch arch)
{
	static const struct processor_code *const all[] = {
		[ARCH_X86_64] = &code_x86,
		[ARCH_ARM64] = &code_arm64,
	};

	return all[arch];
}
