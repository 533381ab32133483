// SPDX-License-Identifier: BSD-2-Clause
/* Programs of probes, and their maps: what they compute, what they keep, and what is refused. */
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "probe/program.h"
#include "run_suite.h"

static struct program_map *maps[2];
static uint64_t sent[VPROF_PROGRAM_SENT_WORDS];
static size_t n_sent;
static uint32_t last_action;
static bool exited;

/* ---- a place that knows a little ---- */

static uint64_t number(struct program_place *place G_GNUC_UNUSED, enum vprof_program_number which)
{
	return 100 + which;
}

static void comm(struct program_place *place G_GNUC_UNUSED, uint64_t *words)
{
	memcpy(words, "init", 4);
}

static void stack(struct program_place *place G_GNUC_UNUSED, bool user, unsigned frames, uint64_t *words)
{
	words[0] = user;
	for (unsigned i = 0; i < frames; i++)
		words[1 + i] = 0x1000 + i;
}

static bool field(struct program_place *place G_GNUC_UNUSED, unsigned which, uint64_t *words)
{
	if (which == 0)
		words[0] = 7;
	if (which == 1)
		memcpy(words, "a field", 7);
	return which < 2;
}

/* Each byte is the lower half of its address; nothing is at 0x1000 and above. */
static bool read_memory(struct program_place *place G_GNUC_UNUSED, uint64_t address, void *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)(address + i);
	return address + n <= 0x1000;
}

static void send(struct program_place *place G_GNUC_UNUSED, uint32_t action, const uint64_t *words, size_t n)
{
	last_action = action;
	n_sent = n;
	for (size_t i = 0; i < n; i++)
		sent[i] = words[i];
}

static void leave(struct program_place *place G_GNUC_UNUSED)
{
	exited = true;
}

static unsigned n_events;

static void event(struct program_place *place G_GNUC_UNUSED)
{
	n_events++;
}

static const struct program_place_calls calls = {number, comm, stack, field, read_memory, send, leave, event};
static const uint64_t arguments[] = {11, 22};

static void setup(void)
{
	n_sent = n_events = 0;
	exited = false;
}

static void teardown(void)
{
	for (size_t i = 0; i < G_N_ELEMENTS(maps); i++)
		program_map_free(g_steal_pointer(&maps[i]));
}

static struct program_map *add_map(unsigned i, struct program_map_spec spec)
{
	g_autoptr(GError) error = NULL;

	maps[i] = program_map_new(&spec, &error);
	ck_assert_msg(maps[i] != NULL, "%s", error ? error->message : "");
	return maps[i];
}

static bool check(const struct vprof_instruction *program, size_t n, GError **error)
{
	const struct program_facts facts = {.n_arguments = 2,
	                                    .n_fields = 3,
	                                    .texts = 2,
	                                    .maps = maps,
	                                    .n_maps = maps[1]   ? 2
	                                              : maps[0] ? 1
	                                                        : 0};

	return program_check(program, n, &facts, error);
}

static void run(const struct vprof_instruction *program, size_t n)
{
	struct program_place place = {.calls = &calls, .arguments = arguments, .maps = maps};
	g_autoptr(GError) error = NULL;

	ck_assert_msg(check(program, n, &error), "%s", error ? error->message : "");
	program_run(program, n, &place);
}

#define OP(name) .operation = VPROF_PROGRAM_##name
#define RUN(...)                                                          \
	do {                                                              \
		const struct vprof_instruction program[] = {__VA_ARGS__}; \
		run(program, G_N_ELEMENTS(program));                      \
	} while (0)

START_TEST(arithmetic)
{
	static const struct {
		uint8_t operation;
		int64_t a, b, result;
	} cases[] = {
		{VPROF_PROGRAM_ADD, 2, 3, 5},
		{VPROF_PROGRAM_SUBTRACT, 2, 3, -1},
		{VPROF_PROGRAM_MULTIPLY, -2, 3, -6},
		{VPROF_PROGRAM_DIVIDE, -7, 2, -3},
		{VPROF_PROGRAM_DIVIDE, 7, 0, 0},
		{VPROF_PROGRAM_DIVIDE, INT64_MIN, -1, INT64_MIN},
		{VPROF_PROGRAM_DIVIDE_UNSIGNED, -1, 2, INT64_MAX},
		{VPROF_PROGRAM_MODULO, -7, 2, -1},
		{VPROF_PROGRAM_MODULO, INT64_MIN, -1, 0},
		{VPROF_PROGRAM_MODULO, 7, 0, 0},
		{VPROF_PROGRAM_MODULO_UNSIGNED, -1, 10, 5},
		{VPROF_PROGRAM_AND, 6, 3, 2},
		{VPROF_PROGRAM_OR, 6, 3, 7},
		{VPROF_PROGRAM_XOR, 6, 3, 5},
		{VPROF_PROGRAM_SHIFT_LEFT, 1, 65, 2},
		{VPROF_PROGRAM_SHIFT_RIGHT, -8, 1, -4},
		{VPROF_PROGRAM_SHIFT_RIGHT_UNSIGNED, -1, 63, 1},
		{VPROF_PROGRAM_EQUAL, 4, 4, 1},
		{VPROF_PROGRAM_LESS, -1, 0, 1},
		{VPROF_PROGRAM_LESS_UNSIGNED, -1, 0, 0},
		{VPROF_PROGRAM_NEGATE, 5, 0, -5},
		{VPROF_PROGRAM_NOT, 5, 0, 0},
		{VPROF_PROGRAM_COMPLEMENT, 0, 0, -1},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const bool unary =
			cases[i].operation >= VPROF_PROGRAM_NEGATE && cases[i].operation <= VPROF_PROGRAM_COMPLEMENT;

		RUN({OP(CONSTANT), .dst = 1, .constant = cases[i].a}, {OP(CONSTANT), .dst = 2, .constant = cases[i].b},
		    {.operation = cases[i].operation, .dst = 1023, .a = 1, .b = unary ? 0 : 2},
		    {OP(SEND), .a = 1023, .b = 1, .constant = (int)i});
		ck_assert_uint_eq(last_action, i);
		ck_assert_msg((int64_t)sent[0] == cases[i].result, "%zu: %" PRId64, i, (int64_t)sent[0]);
	}
}
END_TEST

START_TEST(what_a_place_knows)
{
	char text[VPROF_PROGRAM_TEXT_BYTES + 1] = {0};

	RUN({OP(BUILTIN), .dst = 0, .constant = VPROF_PROGRAM_TID}, {OP(ARGUMENT), .dst = 1, .constant = 1},
	    {OP(FIELD), .dst = 2}, {OP(FIELD), .dst = 3, .constant = 2}, {OP(CONSTANT), .dst = 4, .constant = 0xfe},
	    {OP(READ), .dst = 5, .a = 4, .constant = -2}, {OP(READ), .dst = 6, .a = 4, .constant = 2},
	    {OP(CONSTANT), .dst = 7, .constant = 0x1000}, {OP(READ), .dst = 7, .a = 7, .constant = 8},
	    {OP(SEND), .b = 8, .constant = 3});
	const uint64_t expected[] = {101, 22, 7, 0, 0xfe, (uint64_t)-2, 0xfffe, 0};
	ck_assert_uint_eq(n_sent, 8);
	ck_assert_mem_eq(sent, expected, sizeof(expected));

	RUN({OP(CONSTANT), .constant = 'a'}, {OP(READ_TEXT), .dst = 0, .a = 0, .constant = 5}, {OP(COMM), .dst = 8},
	    {OP(FIELD_TEXT), .dst = 16, .constant = 1}, {OP(COPY_TEXT), .dst = 20, .a = 16},
	    {OP(DIFFERS), .dst = 30, .a = 8, .b = 8, .constant = 64},
	    {OP(DIFFERS), .dst = 31, .a = 0, .b = 20, .constant = 64},
	    {OP(DIFFERS), .dst = 32, .a = 0, .b = 20, .constant = 1}, {OP(SEND), .b = 33});
	memcpy(text, sent, VPROF_PROGRAM_TEXT_BYTES);
	ck_assert_str_eq(text, "abcde");
	ck_assert_str_eq((const char *)&sent[8], "init");
	ck_assert_str_eq((const char *)&sent[20], "a field");
	ck_assert_uint_eq(sent[30], 0);
	ck_assert_uint_eq(sent[31], 1);
	ck_assert_uint_eq(sent[32], 0);

	RUN({OP(USER_STACK), .dst = 2, .constant = 3}, {OP(SEND), .a = 2, .b = 6});
	const uint64_t frames[] = {1, 0x1000, 0x1001, 0x1002, 0, 0};
	ck_assert_mem_eq(sent, frames, sizeof(frames));
}
END_TEST

START_TEST(jumps_lead_forward)
{
	RUN({OP(JUMP_IF_ZERO), .constant = 2}, {OP(CONSTANT), .dst = 0, .constant = 1},
	    {OP(CONSTANT), .dst = 1, .constant = 2}, {OP(JUMP_IF_ZERO), .a = 1, .constant = 5},
	    {OP(CONSTANT), .dst = 2, .constant = 3}, {OP(SEND), .b = 3}, {OP(JUMP), .constant = 8}, {OP(EXIT)});
	const uint64_t expected[] = {0, 2, 3};
	ck_assert_mem_eq(sent, expected, sizeof(expected));
	ck_assert(!exited);
	RUN({OP(EXIT), .constant = 9}, {OP(SEND), .b = 1, .constant = 10});
	ck_assert(exited);
	ck_assert_uint_eq(last_action, 9);
}
END_TEST

static size_t entries_of(const struct program_map *map, uint64_t *words)
{
	size_t place = 0, n = 0;

	while (program_map_next(map, &place, words))
		n++;
	return n;
}

START_TEST(maps_aggregate)
{
	static const int64_t numbers[] = {5, -3, 0, 8, 1000};
	static const struct {
		struct program_map_spec spec;
		uint64_t first, second;
	} cases[] = {
		{{.kind = VPROF_MAP_COUNT}, 5, 0},
		{{.kind = VPROF_MAP_SUM}, 1010, 0},
		{{.kind = VPROF_MAP_NUMBER}, 1010, 0},
		{{.kind = VPROF_MAP_MIN}, (uint64_t)-3, 0},
		{{.kind = VPROF_MAP_MAX}, 1000, 0},
		{{.kind = VPROF_MAP_AVG}, 5, 1010},
		{{.kind = VPROF_MAP_STATS}, 5, 1010},
		{{.kind = VPROF_MAP_HIST}, 1, 1},                                    /* below 0, and 0 */
		{{.kind = VPROF_MAP_LHIST, .low = 0, .high = 10, .range = 4}, 1, 1}, /* below 0, and 0 to 3 */
	};
	uint64_t words[VPROF_MAP_POWERS] = {0};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct program_map *map = add_map(0, cases[i].spec);

		for (size_t j = 0; j < G_N_ELEMENTS(numbers); j++)
			ck_assert(program_map_add(map, NULL, numbers[j]));
		ck_assert_uint_eq(entries_of(map, words), 1);
		ck_assert_uint_eq(words[0], cases[i].first);
		ck_assert(program_map_value_words(map) == 1 || words[1] == cases[i].second);
		if (cases[i].spec.kind == VPROF_MAP_HIST) {
			ck_assert_uint_eq(words[1 + 3], 1); /* 4 to 7 */
			ck_assert_uint_eq(words[1 + 4], 1);
			ck_assert_uint_eq(words[1 + 10], 1);
		}
		if (cases[i].spec.kind == VPROF_MAP_LHIST) {
			ck_assert_uint_eq(program_map_value_words(map), 4);
			ck_assert_uint_eq(words[2], 2); /* 4 to 9 */
			ck_assert_uint_eq(words[3], 1);
		}
		teardown();
	}
}
END_TEST

START_TEST(maps_have_a_size)
{
	struct program_map *map =
		add_map(0, (struct program_map_spec){.kind = VPROF_MAP_COUNT, .key_words = 2, .entries = 1000});
	uint64_t words[3], value;

	for (uint64_t i = 0; i < 1500; i++) {
		const uint64_t key[] = {i % 1200, 1};

		ck_assert(program_map_add(map, key, 0) == (i % 1200 < 1000));
	}
	ck_assert_uint_eq(program_map_dropped(map), 200);
	ck_assert_uint_eq(entries_of(map, words), 1000);
	ck_assert(program_map_get(map, (const uint64_t[]){299, 1}, &value));
	ck_assert_uint_eq(value, 2);
	ck_assert(!program_map_get(map, (const uint64_t[]){299, 2}, &value));
	ck_assert_uint_eq(value, 0);
	/* What is deleted makes room; a thousand times. */
	for (uint64_t i = 0; i < 1000; i++) {
		program_map_delete(map, (const uint64_t[]){i == 0 ? 7 : 5000 + i - 1, 1});
		ck_assert(program_map_add(map, (const uint64_t[]){5000 + i, 1}, 0));
	}
	ck_assert_uint_eq(entries_of(map, words), 1000);
	program_map_clear(map, true);
	ck_assert(program_map_get(map, (const uint64_t[]){299, 1}, &value));
	ck_assert_uint_eq(value, 0);
	program_map_clear(map, false);
	ck_assert_uint_eq(entries_of(map, words), 0);
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert(program_map_set(map, (const uint64_t[]){i, 3}, (const uint64_t[]){i}));
}
END_TEST

static void *count_keys(void *data)
{
	for (uint64_t i = 0; i < 200000; i++)
		program_map_add(data, &(const uint64_t){i % 100}, 1);
	return NULL;
}

START_TEST(several_threads_lose_nothing)
{
	struct program_map *map =
		add_map(0, (struct program_map_spec){.kind = VPROF_MAP_COUNT, .key_words = 1, .entries = 400});
	pthread_t threads[3];
	uint64_t words[2], sum = 0;
	size_t place = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count_keys, map), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		pthread_join(threads[i], NULL);
	while (program_map_next(map, &place, words))
		sum += words[1];
	ck_assert_uint_eq(sum, 3 * 200000);
}
END_TEST

START_TEST(programs_use_maps)
{
	add_map(0, (struct program_map_spec){.kind = VPROF_MAP_NUMBER, .key_words = 1, .entries = 10});
	add_map(1, (struct program_map_spec){.kind = VPROF_MAP_TEXT});
	for (int i = 0; i < 2; i++)
		RUN({OP(CONSTANT), .dst = 0, .constant = 40}, {OP(CONSTANT), .dst = 1, .constant = 3},
		    {OP(MAP_ADD), .a = 0, .b = 1}, {OP(COMM), .dst = 8}, {OP(MAP_SET), .map = 1, .b = 8},
		    {OP(MAP_GET), .dst = 16, .a = 0}, {OP(MAP_GET), .dst = 17, .map = 1}, {OP(SEND), .a = 16, .b = 2});
	ck_assert_uint_eq(sent[0], 6);
	ck_assert_str_eq((const char *)&sent[1], "init");
	RUN({OP(CONSTANT), .dst = 0, .constant = 40}, {OP(MAP_DELETE), .a = 0}, {OP(MAP_GET), .dst = 16, .a = 0},
	    {OP(SEND), .a = 16, .b = 1});
	ck_assert_uint_eq(sent[0], 0);
}
END_TEST

/* What could not be read is counted, one value after the other; and events are recorded as often as is said. */
START_TEST(faults_and_events)
{
	RUN({OP(FIELD), .dst = 0, .constant = 0}, {OP(BUILTIN), .dst = 1, .constant = VPROF_PROGRAM_FAULTS},
	    {OP(FIELD), .dst = 0, .constant = 2}, {OP(BUILTIN), .dst = 2, .constant = VPROF_PROGRAM_FAULTS},
	    {OP(CONSTANT), .dst = 0, .constant = 0xff8}, {OP(READ), .dst = 8, .a = 0, .constant = 8},
	    {OP(BUILTIN), .dst = 3, .constant = VPROF_PROGRAM_FAULTS}, {OP(CONSTANT), .dst = 0, .constant = 0xff9},
	    {OP(READ), .dst = 8, .a = 0, .constant = 8}, {OP(READ_TEXT), .dst = 8, .a = 0, .constant = 64},
	    {OP(BUILTIN), .dst = 4, .constant = VPROF_PROGRAM_FAULTS}, {OP(EVENT)}, {OP(EVENT)},
	    {OP(SEND), .a = 1, .b = 4});
	ck_assert_uint_eq(sent[0], 0);
	ck_assert_uint_eq(sent[1], 1);
	ck_assert_uint_eq(sent[2], 1);
	ck_assert_uint_eq(sent[3], 3);
	ck_assert_uint_eq(n_events, 2);
	/* Arguments that are not known are faults, too. */
	const struct vprof_instruction program[] = {{OP(ARGUMENT), .dst = 0, .constant = 1},
	                                            {OP(BUILTIN), .dst = 1, .constant = VPROF_PROGRAM_FAULTS},
	                                            {OP(SEND), .a = 1, .b = 1}};
	struct program_place place = {.calls = &calls, .arguments = arguments, .maps = maps, .bare = true};

	ck_assert(check(program, G_N_ELEMENTS(program), NULL));
	program_run(program, G_N_ELEMENTS(program), &place);
	ck_assert_uint_eq(sent[0], 1);
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		struct vprof_instruction instruction;
		const char *why;
	} cases[] = {
		{{.operation = VPROF_PROGRAM_OPERATION_COUNT}, "none that there is"},
		{{OP(CONSTANT), .dst = 1024}, "beyond the frame"},
		{{OP(COPY_TEXT), .dst = 1017}, "beyond the frame"},
		{{OP(NEGATE), .b = 1}, "an operand too many"},
		{{OP(KERNEL_STACK), .dst = 960, .constant = 1}, "beyond the frame"},
		{{OP(KERNEL_STACK), .constant = 65}, "too many frames"},
		{{OP(SEND), .a = 1000, .b = 25}, "beyond the frame"},
		{{OP(SEND), .b = 257}, "too many words"},
		{{OP(SEND), .b = 1, .constant = -1}, "no action"},
		{{OP(JUMP), .constant = 0}, "jumps backward"},
		{{OP(JUMP), .constant = 2}, "too far"},
		{{OP(BUILTIN), .constant = VPROF_PROGRAM_NUMBER_COUNT}, "no such number"},
		{{OP(ARGUMENT), .constant = 2}, "no such argument"},
		{{OP(FIELD), .constant = 1}, "no such field"},
		{{OP(FIELD), .constant = 3}, "no such field"},
		{{OP(FIELD_TEXT), .constant = 0}, "no such text"},
		{{OP(READ), .constant = 3}, "no size"},
		{{OP(READ_TEXT), .constant = 65}, "too long"},
		{{OP(MAP_ADD), .map = 2}, "no such map"},
		{{OP(MAP_ADD), .map = 0, .a = 1023}, "beyond the frame"},
		{{OP(MAP_SET), .map = 1}, "sets what"},
		{{OP(MAP_GET), .map = 1}, "gets what"},
	};
	const struct program_map_spec wrong[] = {
		{.kind = VPROF_MAP_COUNT, .key_words = 1},
		{.kind = VPROF_MAP_COUNT, .key_words = 1, .entries = VPROF_MAP_ENTRIES_MAX + 1},
		{.kind = VPROF_MAP_COUNT, .key_words = VPROF_MAP_KEY_WORDS_MAX + 1, .entries = 1},
		{.kind = VPROF_MAP_LHIST, .low = 0, .high = 10},
		{.kind = VPROF_MAP_LHIST, .low = 10, .high = 10, .range = 1},
		{.kind = VPROF_MAP_LHIST, .low = 0, .high = 10000, .range = 1},
		{.kind = VPROF_MAP_LHIST, .low = INT64_MIN, .high = INT64_MAX, .range = INT64_MAX},
	};

	add_map(0, (struct program_map_spec){.kind = VPROF_MAP_NUMBER, .key_words = 2, .entries = 10});
	add_map(1, (struct program_map_spec){.kind = VPROF_MAP_HIST});
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;

		ck_assert_msg(!check(&cases[i].instruction, 1, &error), "%zu", i);
		ck_assert_msg(strstr(error->message, cases[i].why), "%zu: %s", i, error->message);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
		g_autoptr(GError) error = NULL;

		ck_assert_ptr_null(program_map_new(&wrong[i], &error));
		ck_assert(g_error_matches(error, PROGRAM_ERROR, PROGRAM_ERROR_LIMIT));
	}
	g_autofree struct vprof_instruction *many =
		g_new0(struct vprof_instruction, VPROF_PROGRAM_INSTRUCTIONS_MAX + 1);
	ck_assert(check(many, VPROF_PROGRAM_INSTRUCTIONS_MAX, NULL));
	ck_assert(!check(many, VPROF_PROGRAM_INSTRUCTIONS_MAX + 1, NULL));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("program");
	TCase *all = tcase_create("program");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, arithmetic);
	tcase_add_test(all, what_a_place_knows);
	tcase_add_test(all, jumps_lead_forward);
	tcase_add_test(all, maps_aggregate);
	tcase_add_test(all, maps_have_a_size);
	tcase_add_test(all, several_threads_lose_nothing);
	tcase_add_test(all, programs_use_maps);
	tcase_add_test(all, faults_and_events);
	tcase_add_test(all, refusals);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
