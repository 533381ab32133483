// SPDX-License-Identifier: BSD-2-Clause
/* Code on a copy of registers: the first bytes are the registers, the others the code and all of the memory. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "guest/x86/interpreter.h"
#include "lib/code/x86/instruction.h"

#define STEPS_MAX 256u

struct input {
	const uint8_t *bytes;
	size_t n;
};

static bool read_input(void *data, uint64_t from, void *to, size_t bytes)
{
	const struct input *input = data;

	if (bytes == 0 || bytes > 8)
		abort();
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = input->n > 0 ? input->bytes[(from + i) % input->n] : 0;
	return from >> 60 != 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct interpreter interpreter = {.gs_base = UINT64_C(0xffff888000000000), .read = read_input, .data = &input};
	const size_t n = size < sizeof(interpreter.registers) ? size : sizeof(interpreter.registers);

	if (n > 0)
		memcpy(interpreter.registers, data, n);
	input.bytes += n;
	input.n -= n;
	for (unsigned i = 0; i < STEPS_MAX && interpreter.rip < input.n; i++) {
		const uint8_t *code = input.bytes + interpreter.rip;
		const size_t left = input.n - interpreter.rip;
		const enum interpreter_step step = interpreter_step(&interpreter, code, left);

		if (interpreter.n_writes > INTERPRETER_WRITES_MAX ||
		    (step == INTERPRETER_NEXT && !interpreter_knows(code, left)))
			abort();
		/* Whatever it is, what is behind it is looked at, too. */
		if (step != INTERPRETER_NEXT)
			interpreter.rip++;
	}
	return 0;
}
