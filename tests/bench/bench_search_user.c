// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs to find a stack pointer in user space (unwind_search_user), against walking the same chain by unwind
 * tables from the stack pointer in the same run.
 *
 * The program is made: functions all over its text, each with a call of the next. Its stack has one chain that leads to
 * the first function of a thread, and return addresses without a chain all around.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/unwind_search.h"

#define USER UINT64_C(0x400000) /* maps the RAM */
#define TEXT (USER + 0x28000)
#define STACK (USER + 0x18000)
#define STACK_BYTES 0xc000u
#define FUNCTIONS 1200u
#define FUNCTION_BYTES 256u
#define CODE_BYTES 160u /* the rest is a gap */
#define PUSHES_AT 4u
#define CALL_AT 8u
#define CALL_BYTES 5u
#define RETURN_AT (CALL_AT + CALL_BYTES)
#define FRAME_BYTES 16u
#define STRIDE 997u /* a prime: from one frame's function to the next */
#define FIRST (FUNCTIONS - 1)
#define ROWS (3 * FUNCTIONS)
#define TURNS 500u
#define SLICES 9u

static const unsigned depths[] = {4, 16, 64};

static struct {
	char magic[4];
	uint32_t n_rows, n_cells, n_index;
	struct cfi_row rows[ROWS];
	struct cfi_cell cells[6];
} block = {
	.magic = {'C', 'F', 'I', '1'},
	.n_rows = ROWS,
	.n_cells = 6,
	.cells = {[0] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
                  {CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},
                  [2] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, FRAME_BYTES, 0},
                  {CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},
                  [4] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
                  {CFI_RIP, CFI_UNDEFINED, 0, 0, 0, 0}},
};

static struct fake_guest fake;
static struct guest_regs regs;
static struct cfi_table table;

static void must(bool done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "bench_search_user: cannot %s\n", what);
	exit(EXIT_FAILURE);
}

/* ---- the program ---- */

/* The function that is `level` calls above the one that runs. */
static unsigned function_at(unsigned level)
{
	return level * STRIDE % FIRST;
}

static uint64_t return_address(unsigned function)
{
	return TEXT + (uint64_t)function * FUNCTION_BYTES + RETURN_AT;
}

static void put_call(unsigned from, unsigned to)
{
	uint8_t *code = fake.ram + (TEXT - USER) + (size_t)from * FUNCTION_BYTES + CALL_AT;
	const int32_t distance = (int32_t)(to * FUNCTION_BYTES) - (int32_t)(from * FUNCTION_BYTES + RETURN_AT);

	code[0] = 0xe8;
	memcpy(code + 1, &distance, sizeof(distance));
}

static void program_make(unsigned depth)
{
	memset(fake.ram + (TEXT - USER), 0x90, FUNCTIONS * FUNCTION_BYTES);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct cfi_row *rows = &block.rows[3 * i];

		rows[0] = (struct cfi_row){i * FUNCTION_BYTES, i == FIRST ? 4 : 0};
		rows[1] = (struct cfi_row){i * FUNCTION_BYTES + PUSHES_AT, i == FIRST ? 4 : 2};
		rows[2] = (struct cfi_row){i * FUNCTION_BYTES + CODE_BYTES, CFI_NONE};
		if (i != FIRST)
			put_call(i, (i + FIRST - STRIDE) % FIRST);
	}
	put_call(FIRST, function_at(depth - 1));
	must(cfi_table_open(&block, sizeof(block), &table), "make a table");
}

static void put(uint64_t at, uint64_t value)
{
	fake_write(&fake, at - USER, value);
}

/* Returns the stack pointer. */
static uint64_t stack_fill(unsigned depth)
{
	const uint64_t rsp = STACK + STACK_BYTES / 2;

	for (uint64_t at = STACK; at < STACK + STACK_BYTES; at += sizeof(uint64_t))
		put(at, at % 32 == 0 ? return_address((unsigned)(at / 32) % FIRST) : 0);
	for (unsigned i = 0; i < depth; i++)
		put(rsp + sizeof(uint64_t) + (uint64_t)i * FRAME_BYTES,
		    return_address(i == depth - 1 ? FIRST : function_at(i + 1)));
	return rsp;
}

/* ---- what is measured ---- */

static double elapsed_ns(const struct timespec *start)
{
	struct timespec end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - start->tv_sec) * 1e9 + (double)(end.tv_nsec - start->tv_nsec)) / TURNS;
}

static double walk_ns(const struct unwind_config *config, uint64_t rsp)
{
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct timespec start;
	enum unwind_end end;

	regs.rsp = rsp;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		unwind(config, &fake.guest, &regs, NULL, chain, &end);
		must(end == UNWIND_END_OF_STACK, "walk the chain");
	}
	return elapsed_ns(&start);
}

static double search_ns(const struct unwind_config *config, uint64_t rsp)
{
	const struct unwind_stacks stacks = {.user = rsp};
	struct timespec start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		struct page_walk memory;

		regs.rsp = 0;
		page_walk_init(&memory, &fake.guest, regs.cr3, false);
		must(unwind_search_user(config, &stacks, &memory, &regs) == UNWIND_SEARCH_FOUND && regs.rsp == rsp,
		     "find the stack pointer");
	}
	return elapsed_ns(&start);
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static double median(double values[SLICES])
{
	qsort(values, SLICES, sizeof(values[0]), compare);
	return values[SLICES / 2];
}

static void bench(unsigned depth)
{
	double walk[SLICES], search[SLICES];

	program_make(depth);
	const struct user_code code = {.n = 1, .ranges = {{TEXT, TEXT + FUNCTIONS * FUNCTION_BYTES, 0, &table}}};
	const struct unwind_config config = {
		.user = true, .code = &code, .text = user_text_new(), .depth = UNWIND_DEPTH_MAX};
	const uint64_t rsp = stack_fill(depth);

	regs.rip = TEXT + CODE_BYTES / 2;
	for (unsigned i = 0; i < SLICES; i++) {
		walk[i] = walk_ns(&config, rsp);
		search[i] = search_ns(&config, rsp);
	}
	double one = median(walk), other = median(search);

	printf("user search %4u  %6.0f ns   walk from RSP %6.0f ns   ratio %4.1f\n", depth, other, one, other / one);
	user_text_free(config.text);
}

int main(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true, .cpl = 3, .all = true};
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
	for (size_t i = 0; i < G_N_ELEMENTS(depths); i++)
		bench(depths[i]);
	return 0;
}
