// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

const struct processor processor_x86 = {
	.arch = ARCH_X86_64,
	.probes =
		PROBES_OF_PORTS | PROBES_OF_MSRS | PROBES_OF_CALL_RETURNS | PROBES_OF_TRACE_POINTS | PROBES_OF_PROGRAMS,
	.memory = &memory_x86,
	.frames = &frames_x86,
	.gprs = &gprs_x86,
	.code = &code_x86,
};
