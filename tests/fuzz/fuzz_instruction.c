// SPDX-License-Identifier: BSD-2-Clause
/* Lengths of instructions: never more than there is, and the same whatever follows. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/code/x86/instruction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		size_t length = instruction_length(data + at, size - at);

		if (length > size - at || length > INSTRUCTION_LENGTH_MAX ||
		    (length > 0 && instruction_length(data + at, length) != length))
			abort();
	}
	return 0;
}
