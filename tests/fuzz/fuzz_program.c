// SPDX-License-Identifier: BSD-2-Clause
/* Programs of anything: refused, or they run and stay in their frame, with maps of all kinds. */
#include <string.h>

#include "fuzz_target.h"
#include "probe/program.h"

static uint64_t number(struct program_place *place G_GNUC_UNUSED, enum vprof_program_number which)
{
	g_assert(which < VPROF_PROGRAM_NUMBER_COUNT);
	return UINT64_MAX - which;
}

static void comm(struct program_place *place G_GNUC_UNUSED, uint64_t *words)
{
	memset(words, 'c', VPROF_PROGRAM_TEXT_BYTES);
}

static void stack(struct program_place *place G_GNUC_UNUSED, bool user, unsigned frames, uint64_t *words)
{
	g_assert(frames < VPROF_PROGRAM_STACK_WORDS);
	memset(words, user, (1 + frames) * sizeof(*words));
}

static bool field(struct program_place *place G_GNUC_UNUSED, unsigned which, uint64_t *words)
{
	g_assert(which < 4);
	memset(words, 'f', which == 1 ? VPROF_PROGRAM_TEXT_BYTES : sizeof(*words));
	return which != 3;
}

static bool read_memory(struct program_place *place G_GNUC_UNUSED, uint64_t address, void *bytes, unsigned n)
{
	memset(bytes, (int)address, n);
	return address % 3 != 0;
}

static volatile uint64_t sent; /* so that all words are read */

static void send(struct program_place *place G_GNUC_UNUSED, uint32_t action G_GNUC_UNUSED, const uint64_t *words,
                 size_t n)
{
	for (size_t i = 0; i < n; i++)
		sent += words[i];
}

static void leave(struct program_place *place G_GNUC_UNUSED)
{
}

static void event(struct program_place *place G_GNUC_UNUSED)
{
	sent++;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct program_place_calls calls = {number, comm, stack, field, read_memory, send, leave, event};
	static const uint64_t arguments[3] = {1, UINT64_MAX, 3};
	static const struct program_map_spec specs[] = {
#define X(id, name, words) \
	{.kind = VPROF_MAP_##id, .key_words = VPROF_MAP_##id % 3, .entries = 3, .low = -5, .high = 20, .range = 4},
		VPROF_MAP_KINDS(X)
#undef X
	};
	struct program_map *maps[G_N_ELEMENTS(specs)];
	const struct program_facts facts = {
		.n_arguments = 3, .n_fields = 4, .texts = 2, .maps = maps, .n_maps = G_N_ELEMENTS(specs)};
	struct program_place place = {.calls = &calls, .arguments = arguments, .maps = maps};
	const size_t n = size / sizeof(struct vprof_instruction);
	g_autofree struct vprof_instruction *program = g_memdup2(bytes, n * sizeof(*program));
	uint64_t words[VPROF_MAP_POWERS + 2];

	for (size_t i = 0; i < G_N_ELEMENTS(specs); i++)
		maps[i] = program_map_new(&specs[i], NULL);
	for (unsigned i = 0; i < 3 && program_check(program, n, &facts, NULL); i++)
		program_run(program, n, &place);
	for (size_t i = 0; i < G_N_ELEMENTS(specs); i++) {
		size_t place_of = 0, found = 0;

		while (program_map_next(maps[i], &place_of, words))
			found++;
		g_assert(found <= 3);
		program_map_free(maps[i]);
	}
	return 0;
}
