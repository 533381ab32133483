// SPDX-License-Identifier: BSD-2-Clause
/* Frame-pointer chains over stacks made by hand. ORC's are in test_orc.c. */
#include <check.h>
#include <linux/perf_event.h>

#include "fake_guest_memory.h"
#include "guest/unwind.h"
#include "linux/os_linux.h"
#include "run_suite.h"

#define KERNEL UINT64_C(0xffffffff80000000) /* maps the RAM, first 2 MiB, for kernel and user alike */
#define USER UINT64_C(0x0000000000400000)

static struct fake_guest fake;
static struct guest_regs regs;
static uint64_t chain[UNWIND_CHAIN_MAX];

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true};
	fake_map(&fake, regs.cr3, 4, KERNEL, 0, 2);
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
}

/* A frame at stack offset `at`: the caller's rbp and the return address. */
static void frame_put(uint64_t at, uint64_t bp, uint64_t ip)
{
	fake_write(&fake, at, bp);
	fake_write(&fake, at + 8, ip);
}

static void expect(const struct unwind_config *config, const uint64_t *words, unsigned n, enum unwind_end why)
{
	enum unwind_end end;

	ck_assert_uint_eq(unwind(config, &fake.guest, &regs, NULL, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

static const struct unwind_config kernel_only = {.system = &linux_unwinding, .depth = UNWIND_DEPTH_DEFAULT};
static const struct unwind_config with_user = {.system = &linux_unwinding, .depth = UNWIND_DEPTH_DEFAULT, .user = true};

START_TEST(kernel_chain_to_the_end)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100, KERNEL + 0x200, KERNEL + 0x300};

	regs.rip = KERNEL + 0x100;
	regs.rbp = KERNEL + 0x2000;
	frame_put(0x2000, KERNEL + 0x2040, KERNEL + 0x200);
	frame_put(0x2040, 0, KERNEL + 0x300);
	expect(&kernel_only, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

/* pt_regs (21 words) at 0x2100, marked by an odd frame pointer; cs is word 17, ip word 16, bp word 4. */
static void pt_regs_put(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp, uint64_t bp)
{
	fake_write(&fake, at + 4 * 8, bp);
	fake_write(&fake, at + 16 * 8, ip);
	fake_write(&fake, at + 17 * 8, cs);
	fake_write(&fake, at + 19 * 8, sp);
}

static void code_put(uint64_t at, const uint8_t *code, size_t n)
{
	memcpy(fake.ram + at, code, n);
}

static const uint8_t makes_frame[] = {0x55, 0x48, 0x89, 0xe5};

START_TEST(through_an_interrupt_and_into_user_space)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100, KERNEL + 0x200,
	                                (uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x500, KERNEL + 0x600,
	                                (uint64_t)PERF_CONTEXT_USER,   USER + 0x10,    USER + 0x20};

	regs.rip = KERNEL + 0x100;
	regs.rbp = KERNEL + 0x2000;
	frame_put(0x2000, (KERNEL + 0x2100) | 1, KERNEL + 0x200);
	pt_regs_put(0x2100, KERNEL + 0x500, 0x10, KERNEL + 0x2300, KERNEL + 0x2300);
	frame_put(0x2300, (KERNEL + 0x2400) | 1, KERNEL + 0x600);
	pt_regs_put(0x2400, USER + 0x10, 0x33, USER + 0x3000, USER + 0x3000);
	frame_put(0x3000, 0, USER + 0x20);
	code_put(0x1c, makes_frame, sizeof(makes_frame));
	expect(&with_user, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
	expect(&kernel_only, want, 6, UNWIND_END_OF_STACK);
}
END_TEST

/* Before the frame is made and after it is given up, the return address is where rsp says. */
START_TEST(callers_of_a_function_without_its_frame)
{
	static const uint8_t with_endbr[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3, 0x90};

	static const struct {
		uint64_t ip;
		uint64_t pushed; /* above the return address */
		bool no_frame;
	} cases[] = {{0, 0, true}, {4, 0, true}, {5, 8, true}, {8, 0, false}, {9, 0, false}, {10, 0, true}};
	static const uint64_t want[] = {KERNEL + 0x200, KERNEL + 0x300};

	code_put(0x100, with_endbr, sizeof(with_endbr));
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		enum unwind_end end;
		unsigned skipped = cases[i].no_frame ? 0 : 1; /* rbp is taken for the function's own */

		regs.rip = KERNEL + 0x100 + cases[i].ip;
		regs.rsp = KERNEL + 0x1ff0 - cases[i].pushed;
		regs.rbp = KERNEL + 0x2000;
		fake_write(&fake, 0x1ff0, KERNEL + 0x200);
		frame_put(0x2000, 0, KERNEL + 0x300);
		ck_assert_uint_eq(unwind(&kernel_only, &fake.guest, &regs, NULL, chain, &end), 4 - skipped);
		ck_assert_uint_eq(chain[1], regs.rip);
		for (unsigned frame = skipped; frame < G_N_ELEMENTS(want); frame++)
			ck_assert_uint_eq(chain[2 + frame - skipped], want[frame]);
		ck_assert_int_eq(end, UNWIND_END_OF_STACK);
	}
}
END_TEST

/* Where the stack cannot be read, rbp still may. */
START_TEST(no_frame_and_no_stack)
{
	static const uint8_t ret[] = {0xc3};
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100, KERNEL + 0x300};

	code_put(0x100, ret, sizeof(ret));
	regs.rip = KERNEL + 0x100;
	regs.rsp = 8;
	regs.rbp = KERNEL + 0x2000;
	frame_put(0x2000, 0, KERNEL + 0x300);
	expect(&kernel_only, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

#define CALLER UINT64_C(0x800) /* of the function at 0x1000: where its call returns to */
#define LEAF UINT64_C(0x1000)

/* The instruction `at` bytes into a function of no-operations, which was called as `call` says, and rbp of its caller.
 */
static void leaf_put(const uint8_t call[5], uint64_t at)
{
	memset(fake.ram + LEAF, 0x90, 0x800);
	code_put(CALLER - 5, call, 5);
	regs.rip = KERNEL + LEAF + at;
	regs.rsp = KERNEL + 0x1ff0;
	regs.rbp = KERNEL + 0x2000;
	fake_write(&fake, 0x1ff0, KERNEL + CALLER);
	frame_put(0x2000, 0, KERNEL + 0x300);
}

static const uint8_t leaf_call[5] = {0xe8, (LEAF - CALLER) & 0xff, (LEAF - CALLER) >> 8, 0, 0};

static void expect_caller(bool found)
{
	static const uint64_t with[] = {KERNEL + CALLER, KERNEL + 0x300}, without[] = {KERNEL + 0x300};
	uint64_t want[4] = {(uint64_t)PERF_CONTEXT_KERNEL, regs.rip};

	memcpy(want + 2, found ? with : without, found ? sizeof(with) : sizeof(without));
	expect(&kernel_only, want, found ? 4 : 3, UNWIND_END_OF_STACK);
}

/* memcpy of the kernel, leaf functions of GCC, and what comes before a frame that is made late. */
START_TEST(callers_of_code_that_makes_no_frame)
{
	static const uint64_t inside[] = {0, 1, 0x100, 1023};

	for (size_t i = 0; i < G_N_ELEMENTS(inside); i++) {
		leaf_put(leaf_call, inside[i]);
		expect_caller(true);
	}
	leaf_put(leaf_call, 0x10);
	code_put(LEAF + 0x11, makes_frame, sizeof(makes_frame));
	expect_caller(true);
	leaf_put(leaf_call, 0x20);
	code_put(LEAF + 0x10, makes_frame, sizeof(makes_frame));
	expect_caller(false);
}
END_TEST

/* What lies at rsp may be anything: it is a return address only if the call before it is of this very code. */
START_TEST(no_caller_is_invented)
{
	static const uint8_t other_way[5] = {0xff, 0x15}, behind[5] = {0xe8, 0x20, 8},
			     backwards[5] = {0xe8, 0, 0xf8, 0xff, 0xff};
	static const uint64_t words[] = {0,
	                                 4,
	                                 KERNEL + CALLER - 1,
	                                 KERNEL + CALLER + 1,
	                                 KERNEL + 0x7ffffff0,
	                                 UINT64_C(0x7fffffffffffffff),
	                                 UINT64_MAX,
	                                 KERNEL - (UINT64_C(1) << 33)};

	leaf_put(other_way, 0x10);
	expect_caller(false);
	leaf_put(behind, 0x10);
	expect_caller(false);
	leaf_put(backwards, 0x10);
	expect_caller(false);
	leaf_put(leaf_call, 1024);
	expect_caller(false);
	for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
		leaf_put(leaf_call, 0x10);
		fake_write(&fake, 0x1ff0, words[i]);
		expect_caller(false);
	}
	leaf_put(leaf_call, 0x10);
	regs.rsp = 8;
	expect_caller(false);
}
END_TEST

START_TEST(kernel_thread_ends_at_its_empty_pt_regs)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100};

	regs.rip = KERNEL + 0x100;
	regs.rbp = (KERNEL + 0x2100) | 1;
	expect(&with_user, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

START_TEST(user_sample_starts_in_user_space)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x10, USER + 0x20};

	regs.rip = USER + 0x10;
	regs.cpl = 3;
	regs.rbp = USER + 0x3000;
	frame_put(0x3000, 0, USER + 0x20);
	code_put(0x1c, makes_frame, sizeof(makes_frame));
	expect(&with_user, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
	expect(&kernel_only, want, 2, UNWIND_END_OF_STACK);
}
END_TEST

/* A frame pointer, or the return address above it, is 0: whether that is the end, the function there tells. */
START_TEST(a_frame_pointer_of_0)
{
	static const struct {
		unsigned before; /* bytes to the code from RIP, or the return address, back; -4: 4 behind it */
		uint8_t code[4];
		enum unwind_end interrupted, called;
	} cases[] = {
		{0x100, {0x90, 0x90, 0x90, 0x90}, UNWIND_BAD_FRAME, UNWIND_BAD_FRAME},
		{0x100, {0x55, 0x48, 0x89, 0xe5}, UNWIND_END_OF_STACK, UNWIND_END_OF_STACK},
		{(unsigned)-4, {0x55, 0x48, 0x89, 0xe5}, UNWIND_END_OF_STACK, UNWIND_END_OF_STACK},
		{0x401, {0x55, 0x48, 0x89, 0xe5}, UNWIND_BAD_FRAME, UNWIND_BAD_FRAME},
		/* _start, clone: XOR %EBP,%EBP. Elsewhere that makes 0 of a register like any other. */
		{0x20, {0xf3, 0x31, 0xed, 0x90}, UNWIND_BAD_FRAME, UNWIND_END_OF_STACK},
		{0x48, {0xf3, 0x31, 0xed, 0x90}, UNWIND_BAD_FRAME, UNWIND_BAD_FRAME},
		/* The dynamic linker's: MOV %RSP,%RDI and CALL. */
		{8, {0x48, 0x89, 0xe7, 0xe8}, UNWIND_BAD_FRAME, UNWIND_END_OF_STACK},
		{9, {0x48, 0x89, 0xe7, 0xe8}, UNWIND_BAD_FRAME, UNWIND_BAD_FRAME},
	};
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x1800, USER + 0x800};

	regs.cpl = 3;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		memset(fake.ram + 0x400, 0, 0x1800);
		code_put(0x800 - cases[i].before, cases[i].code, sizeof(cases[i].code));
		code_put(0x1800 - cases[i].before, cases[i].code, sizeof(cases[i].code));
		regs.rip = USER + 0x1800;
		regs.rbp = 0;
		expect(&with_user, want, 2, cases[i].interrupted);
		regs.rbp = USER + 0x3000;
		frame_put(0x3000, USER + 0x3040, 0);
		expect(&with_user, want, 2, cases[i].interrupted);
		frame_put(0x3000, 0, USER + 0x800);
		expect(&with_user, want, 3, cases[i].called);
		frame_put(0x3000, USER + 0x3040, USER + 0x800);
		frame_put(0x3040, 0, 0);
		expect(&with_user, want, 3, cases[i].called);
	}
}
END_TEST

/* What code without frame pointers has in rbp leads to anything. */
START_TEST(a_word_that_is_no_address_is_no_caller)
{
	static const uint64_t words[] = {UINT64_C(0x206c61746f740a39), UINT64_C(0x1500000000), 8};

	regs.rip = USER + 0x10;
	regs.cpl = 3;
	regs.rbp = USER + 0x3000;
	for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x10};

		frame_put(0x3000, 0, words[i]);
		expect(&with_user, want, G_N_ELEMENTS(want), UNWIND_BAD_FRAME);
	}
}
END_TEST

START_TEST(hostile_frames_end_the_chain)
{
	static const struct {
		uint64_t bp; /* of the first frame */
		uint64_t saved_bp;
		uint8_t cpl;
		enum unwind_end end;
		unsigned words;
	} cases[] = {
		{KERNEL + 0x2004, 0, 0, UNWIND_BAD_FRAME, 2},
		{UINT64_C(0x0000800000000000), 0, 0, UNWIND_UNREADABLE, 2},
		{UINT64_C(0x12340000), 0, 0, UNWIND_UNREADABLE, 2},
		{KERNEL + 0x2000, KERNEL + 0x2000, 0, UNWIND_BAD_FRAME, 2},
		{USER + 0x2000, USER + 0x1000, 3, UNWIND_BAD_FRAME, 2},
		{UINT64_MAX, 0, 0, UNWIND_BAD_FRAME, 2},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		enum unwind_end end;

		frame_put(0x2000, cases[i].saved_bp, KERNEL + 0x200);
		regs.rip = KERNEL + 0x100;
		regs.rbp = cases[i].bp;
		regs.cpl = cases[i].cpl;
		ck_assert_uint_eq(unwind(&with_user, &fake.guest, &regs, NULL, chain, &end), cases[i].words);
		ck_assert_int_eq(end, cases[i].end);
	}
}
END_TEST

START_TEST(two_frames_that_call_each_other_end_at_the_depth)
{
	for (unsigned depth = 1; depth <= UNWIND_DEPTH_MAX; depth += 42) {
		struct unwind_config config = {.system = &linux_unwinding, .depth = depth, .user = true};
		enum unwind_end end;

		regs.rip = KERNEL + 0x100;
		regs.rbp = KERNEL + 0x2000;
		frame_put(0x2000, KERNEL + 0x2040, KERNEL + 0x200);
		frame_put(0x2040, KERNEL + 0x2000, KERNEL + 0x300);
		ck_assert_uint_eq(unwind(&config, &fake.guest, &regs, NULL, chain, &end), depth + 1);
		ck_assert_int_eq(end, UNWIND_DEPTH);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwind");
	TCase *tcase = tcase_create("frame pointers");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, kernel_chain_to_the_end);
	tcase_add_test(tcase, through_an_interrupt_and_into_user_space);
	tcase_add_test(tcase, callers_of_a_function_without_its_frame);
	tcase_add_test(tcase, no_frame_and_no_stack);
	tcase_add_test(tcase, callers_of_code_that_makes_no_frame);
	tcase_add_test(tcase, no_caller_is_invented);
	tcase_add_test(tcase, kernel_thread_ends_at_its_empty_pt_regs);
	tcase_add_test(tcase, user_sample_starts_in_user_space);
	tcase_add_test(tcase, a_frame_pointer_of_0);
	tcase_add_test(tcase, a_word_that_is_no_address_is_no_caller);
	tcase_add_test(tcase, hostile_frames_end_the_chain);
	tcase_add_test(tcase, two_frames_that_call_each_other_end_at_the_depth);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
