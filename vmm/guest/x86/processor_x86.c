// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

const struct processor processor_x86 = {
	.arch = ARCH_X86_64,
	.memory = &memory_x86,
	.frames = &frames_x86,
	.gprs = &gprs_x86,
	.kernel = &kernel_x86,
	.code = &code_x86,
};
