// SPDX-License-Identifier: BSD-2-Clause
/* The stack pointer in user space found on stacks made by hand, by calls in code made by hand. */
#include <check.h>

#include "fake_guest_memory.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/unwind_search.h"
#include "run_suite.h"

#define USER UINT64_C(0x400000) /* maps the RAM */
#define TEXT (USER + 0x40000)   /* 0x1000 of its file */
#define POINTER (USER + 0x60000)
#define STACK (USER + 0x30000)
#define NEAR (STACK + 0x800)

/* Functions, each with a gap behind it. */
#define LEAF (TEXT + 0x100)   /* nothing on the stack but its return address */
#define CALLER (TEXT + 0x200) /* the same up to its fourth byte, then 16 bytes more */
#define START (TEXT + 0x300)  /* it has no caller */
#define JUMPER (TEXT + 0x400)
#define LINKAGE (TEXT + 0x500) /* an entry of the procedure linkage table */
#define OTHER (TEXT + 0x600)
#define COLD (TEXT + 0x700) /* a part of CALLER */

#define RA_AT_CFA                                      \
	{                                              \
		CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0 \
	}

static const struct {
	char magic[4];
	uint32_t n_rows, n_cells, n_index;
	struct cfi_row rows[15];
	struct cfi_cell cells[6];
} block = {
	.magic = {'C', 'F', 'I', '1'},
	.n_rows = 15,
	.n_cells = 6,
	.rows = {{0x1100, 0},
                 {0x1180, CFI_NONE},
                 {0x1200, 0},
                 {0x1204, 2},
                 {0x1280, CFI_NONE},
                 {0x1300, 4},
                 {0x1380, CFI_NONE},
                 {0x1400, 0},
                 {0x1480, CFI_NONE},
                 {0x1500, 0},
                 {0x1580, CFI_NONE},
                 {0x1600, 0},
                 {0x1680, CFI_NONE},
                 {0x1700, 2},
                 {0x1780, CFI_NONE}},
	.cells = {[0] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
                  RA_AT_CFA,
                  [2] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 24, 0},
                  RA_AT_CFA,
                  [4] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
                  {CFI_RIP, CFI_UNDEFINED, 0, 0, 0, 0}},
};

static struct fake_guest fake;
static struct guest_regs regs;
static struct cfi_table table;
static struct user_code code;
static struct user_text *text;

static void put(uint64_t at, uint64_t word)
{
	fake_write(&fake, at - USER, word);
}

/* CALL (e8) or JMP (e9) of `to` at `at`; returns where it returns to. */
static uint64_t put_branch(uint8_t opcode, uint64_t at, uint64_t to)
{
	const int32_t distance = (int32_t)((int64_t)to - (int64_t)at - 5);

	fake.ram[at - USER] = opcode;
	memcpy(fake.ram + (at - USER) + 1, &distance, sizeof(distance));
	return at + 5;
}

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true, .cpl = 3, .all = true, .rip = LEAF + 4};
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
	ck_assert(cfi_table_open(&block, sizeof(block), &table));
	code = (struct user_code){.n = 1, .ranges = {{TEXT, TEXT + 0x1000, 0x1000, &table}}};
	text = user_text_new();
}

static void teardown(void)
{
	user_text_free(text);
}

/* Code that was read is kept: before it changes. */
static void forget(void)
{
	user_text_free(text);
	text = user_text_new();
}

static enum unwind_search_result search(void)
{
	const struct unwind_config config = {.depth = UNWIND_DEPTH_DEFAULT, .user = true, .code = &code, .text = text};
	const struct unwind_stacks stacks = {.user = NEAR};
	struct page_walk memory;

	regs.rsp = 0;
	page_walk_init_regs(&memory, &fake.guest, &regs);
	return unwind_search_user(&config, &stacks, &memory, &regs);
}

static void expect(enum unwind_search_result want, uint64_t rsp)
{
	/* What was read once is kept. */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(search(), want);
		ck_assert_uint_eq(regs.rsp, rsp);
	}
}

/* The frames of CALLER, at `at`, and START; the call at CALLER + 0x10 is of `callee`. */
static void put_frames(uint64_t at, uint64_t callee)
{
	put(at, put_branch(0xe8, CALLER + 0x10, callee));
	put(at + 24, put_branch(0xe8, START + 0x10, CALLER));
}

START_TEST(a_call_of_the_function)
{
	put_frames(NEAR - 0x100, LEAF);
	expect(UNWIND_SEARCH_FOUND, NEAR - 0x100);
	/* Further from the last entry than is searched. */
	fake_guest_init(&fake);
	teardown();
	setup();
	put_frames(STACK - UNWIND_SEARCH_USER_BELOW - 0x100, LEAF);
	expect(UNWIND_SEARCH_NONE, 0);
}
END_TEST

START_TEST(a_call_of_another_function)
{
	put_frames(NEAR, OTHER);
	expect(UNWIND_SEARCH_NONE, 0);
}
END_TEST

/* It may be, and need not: a sure call of LEAF makes it sure that CALLER ran. */
START_TEST(a_call_of_a_function_that_jumps_there)
{
	put_frames(NEAR, JUMPER);
	put_branch(0xe9, JUMPER + 0x20, LEAF);
	expect(UNWIND_SEARCH_NONE, 0);
	forget();
	put_branch(0xe9, OTHER + 0x20, CALLER);
	put_frames(NEAR, LEAF);
	put(NEAR + 24, put_branch(0xe8, START + 0x10, OTHER));
	expect(UNWIND_SEARCH_FOUND, NEAR);
}
END_TEST

START_TEST(a_function_in_two_parts)
{
	put(NEAR, put_branch(0xe8, COLD + 0x10, LEAF));
	put(NEAR + 24, put_branch(0xe8, START + 0x10, CALLER));
	if (_i == 0) {
		expect(UNWIND_SEARCH_NONE, 0);
		return;
	}
	put_branch(0xe9, CALLER + 0x20, COLD + 8);
	expect(UNWIND_SEARCH_FOUND, NEAR);
}
END_TEST

START_TEST(a_call_through_the_linkage_table)
{
	const int32_t distance = (int32_t)(POINTER - (LINKAGE + 6));

	put_frames(NEAR, LINKAGE);
	fake.ram[LINKAGE - USER] = 0xff;
	fake.ram[LINKAGE - USER + 1] = 0x25;
	memcpy(fake.ram + (LINKAGE - USER) + 2, &distance, sizeof(distance));
	put(POINTER, LEAF);
	expect(UNWIND_SEARCH_FOUND, NEAR);
	put(POINTER, OTHER);
	expect(UNWIND_SEARCH_NONE, 0);
	/* A pointer that leads back to itself. */
	put(POINTER, LINKAGE);
	expect(UNWIND_SEARCH_NONE, 0);
	/* Another entry runs, for which there is the same information. */
	regs.rip = LINKAGE;
	expect(UNWIND_SEARCH_FOUND, NEAR);
	regs.rip = LINKAGE + 0x10;
	expect(UNWIND_SEARCH_NONE, 0);
}
END_TEST

/* CALL *%rax, which may call any function, and JMP *%rax in a function that is called. */
START_TEST(a_call_by_a_register)
{
	static const uint8_t by_register[] = {0x90, 0x90, 0x90, 0xff, 0xd0};

	put_frames(NEAR, LEAF);
	memcpy(fake.ram + (CALLER + 0x10 - USER), by_register, sizeof(by_register));
	expect(UNWIND_SEARCH_NONE, 0);
	forget();
	put_frames(NEAR, LEAF);
	memcpy(fake.ram + (START + 0x10 - USER), by_register, sizeof(by_register));
	expect(UNWIND_SEARCH_FOUND, NEAR);
	forget();
	fake.ram[OTHER + 0x20 - USER] = 0xff;
	fake.ram[OTHER + 0x21 - USER] = 0xe0;
	put(NEAR + 24, put_branch(0xe8, START + 0x10, OTHER));
	expect(UNWIND_SEARCH_FOUND, NEAR);
	forget();
	put_frames(NEAR, OTHER);
	expect(UNWIND_SEARCH_NONE, 0);
}
END_TEST

/* LEAF runs twice: CALLER was called by a register, in something that the first LEAF has called. */
START_TEST(a_function_that_calls_itself)
{
	put_frames(NEAR + 32, LEAF);
	put(NEAR + 24, put_branch(0xe8, LEAF + 0x20, OTHER));
	expect(UNWIND_SEARCH_FOUND, NEAR + 32);
	forget();
	put(NEAR, put_branch(0xe8, CALLER + 0x30, LEAF));
	fake.ram[OTHER + 0x20 - USER] = 0xff;
	fake.ram[OTHER + 0x21 - USER] = 0xe0;
	expect(UNWIND_SEARCH_AMBIGUOUS, 0);
}
END_TEST

START_TEST(two_chains)
{
	const uint64_t after = put_branch(0xe8, CALLER + 0x30, LEAF);

	put_frames(NEAR, LEAF);
	put_frames(NEAR + 0x100, LEAF);
	/* By the same addresses: it does not matter which. */
	expect(UNWIND_SEARCH_FOUND, NEAR);
	put(NEAR + 0x100, after);
	expect(UNWIND_SEARCH_AMBIGUOUS, 0);
	put(NEAR + 0x118, 0);
	expect(UNWIND_SEARCH_FOUND, NEAR);
}
END_TEST

START_TEST(where_nothing_can_be_searched)
{
	put_frames(NEAR, LEAF);
	regs.rip = LEAF + 0x80;
	expect(UNWIND_SEARCH_NO_TABLE, 0);
	regs.rip = TEXT - 1;
	expect(UNWIND_SEARCH_NO_TABLE, 0);
}
END_TEST

/* A stack full of return addresses, of a function that calls itself. */
START_TEST(work_is_bounded)
{
	const uint64_t after = put_branch(0xe8, CALLER + 0x10, CALLER);

	for (uint64_t at = STACK - UNWIND_SEARCH_USER_BELOW; at < STACK + 0x5000; at += 8)
		put(at, after);
	regs.rip = CALLER + 8;
	expect(UNWIND_SEARCH_WORK, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("unwind_search_user");
	Suite *suite = suite_create("unwind_search_user");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_call_of_the_function);
	tcase_add_test(tcase, a_call_of_another_function);
	tcase_add_test(tcase, a_call_of_a_function_that_jumps_there);
	tcase_add_test(tcase, a_call_through_the_linkage_table);
	tcase_add_loop_test(tcase, a_function_in_two_parts, 0, 2);
	tcase_add_test(tcase, a_call_by_a_register);
	tcase_add_test(tcase, a_function_that_calls_itself);
	tcase_add_test(tcase, two_chains);
	tcase_add_test(tcase, where_nothing_can_be_searched);
	tcase_add_test(tcase, work_is_bounded);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
