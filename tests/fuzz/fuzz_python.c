// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of CPython in a process in which the input changes words: three bytes each, two that choose a word in the
 * objects and on the stack, and one that says what it becomes: the place of another such word, or a number.
 */
#include <glib.h>
#include <stdlib.h>

#include "../support/fake_python.h"
#include "fuzz_target.h"

#define FRAMES_MAX 127u
#define READS_MAX (64u * 1024u) /* threads and frames, with the page tables for each word */
#define WORDS 8192u

static struct fake_python python;

static void memory_change(const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3) {
		const uint64_t at = FAKE_PYTHON + (uint64_t)(data[0] | data[1] << 8) % WORDS * 8;

		if (data[2] < 0x20)
			fake_python_set(&python, at, data[2]);
		else
			fake_python_set(&python, at, FAKE_PYTHON + (uint64_t)data[2] * 0x101 % WORDS * 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t version = size != 0 && data[0] & 1 ? 0x030c0000 : 0x030b0000;
	struct python_frame frame;
	struct python_walk walk;
	char name[PYTHON_NAME_BYTES];
	unsigned n = 0;

	fake_python_init(&python, version);
	memory_change(data, size);
	python.fake.reads = 0;
	python_walk_init(&walk, &python.process, &python.memory, FAKE_PYTHON_STACK);
	for (uint64_t sp = FAKE_PYTHON_STACK; sp < FAKE_PYTHON_STACK + 0x1000; sp += 0x100) {
		while (n < FRAMES_MAX && python_walk_next(&walk, &python.memory, sp, sp + 0x100, &frame)) {
			if (frame.ip <= frame.start || frame.ip > frame.end)
				abort();
			python_frame_name(&frame, &python.process, &python.memory, name);
			if (!g_str_has_prefix(name, "py::") || strlen(name) >= sizeof(name))
				abort();
			n++;
		}
	}
	if (python.fake.reads > READS_MAX)
		abort();
	return 0;
}
