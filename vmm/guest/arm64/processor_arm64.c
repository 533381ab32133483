// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

const struct processor processor_arm64 = {
	.arch = ARCH_ARM64,
	.memory = &memory_arm64,
	.frames = &frames_arm64,
	.gprs = &gprs_arm64,
	.code = &code_arm64,
};
