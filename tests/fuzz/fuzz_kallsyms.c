// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory with or without kallsyms tables. A search in it ends within its steps.
 */
#include <string.h>

#include "fuzz_target.h"
#include "lib/symbol/kallsyms.h"

#define GVA UINT64_C(0xffffffff82000000)

static void each(uint64_t address, char type, const char *name, void *data)
{
	size_t *bytes = data;

	(void)address, (void)type;
	*bytes += strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t steps = KALLSYMS_STEPS_MAX;
	size_t bytes = 0;

	kallsyms_decode(data, size, GVA, &steps, each, &bytes, NULL);
	return 0;
}
