// SPDX-License-Identifier: BSD-2-Clause
/* Chains of user space by tables of call frame information, over stacks made by hand. */
#include <check.h>
#include <linux/perf_event.h>

#include "fake_guest_memory.h"
#include "guest/unwind.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/os_linux.h"
#include "run_suite.h"

#define KERNEL UINT64_C(0xffffffff80000000) /* maps the RAM, first 2 MiB, for kernel and user alike */
#define USER UINT64_C(0x400000)
#define TEXT (USER + 0x10000) /* 0x1000 of its file */
#define STACK (USER + 0x4000)
#define AT(offset) (TEXT + (offset))

static struct fake_guest fake;
static struct guest_regs regs;

/* What the functions at TEXT + 0x100, 0x200, ... do. */
enum function {
	GAP,      /* without call frame information */
	LEAF,     /* CFA = rsp + 8 */
	SAVES,    /* has pushed rbp and rbx: CFA = rsp + 24 */
	FRAME,    /* CFA = rbp + 16 */
	ALIGNED,  /* CFA = *(rbp - 8) */
	BY_RBX,   /* CFA = rbx + 8 */
	START,    /* no return address */
	RESTORER, /* of a signal: rsp, rip and rbx are on the stack, at rsp + 0, 8 and 16 */
	STUCK,    /* CFA = rsp */
	UNKNOWN,
	FUNCTIONS,
};

#define RA_AT_CFA                                      \
	{                                              \
		CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0 \
	}

static const struct {
	char magic[4];
	uint32_t n_rows, n_cells, n_index;
	struct cfi_row rows[FUNCTIONS];
	struct cfi_cell cells[28];
} block = {
	.magic = {'C', 'F', 'I', '1'},
	.n_rows = FUNCTIONS,
	.n_cells = 28,
	.rows =
		{
			{0x1000, CFI_NONE},
			{0x1100, 0},
			{0x1200, 3},
			{0x1300, 8},
			{0x1400, 12},
			{0x1500, 16},
			{0x1600, 19},
			{0x1700, 21},
			{0x1800, 25},
			{0x1900, CFI_UNKNOWN},
		},
	.cells =
		{
			[0] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
			RA_AT_CFA,
			[3] = {CFI_CFA, CFI_VALUE, CFI_RSP, 4, 24, 0},
			{CFI_RBX, CFI_MEMORY, CFI_CFA, 0, -24, 0},
			{CFI_RBP, CFI_MEMORY, CFI_CFA, 0, -16, 0},
			RA_AT_CFA,
			[8] = {CFI_CFA, CFI_VALUE, CFI_RBP, 3, 16, 0},
			{CFI_RBP, CFI_MEMORY, CFI_CFA, 0, -16, 0},
			RA_AT_CFA,
			[12] = {CFI_CFA, CFI_MEMORY, CFI_RBP, 3, -8, 0},
			{CFI_RBP, CFI_MEMORY, CFI_RBP, 0, 0, 0},
			RA_AT_CFA,
			[16] = {CFI_CFA, CFI_VALUE, CFI_RBX, 2, 8, 0},
			RA_AT_CFA,
			[19] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
			{CFI_RIP, CFI_UNDEFINED, 0, 0, 0, 0},
			[21] = {CFI_CFA_SIGNAL, CFI_MEMORY, CFI_RSP, 3, 0, 0},
			{CFI_RBX, CFI_MEMORY, CFI_RSP, 0, 16, 0},
			{CFI_RIP, CFI_MEMORY, CFI_RSP, 0, 8, 0},
			[25] = {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 0, 0},
			RA_AT_CFA,
		},
};

static struct cfi_table table;
static struct user_code code;

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true, .cpl = 3, .all = true};
	fake_map(&fake, regs.cr3, 4, KERNEL, 0, 2);
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
	ck_assert(cfi_table_open(&block, sizeof(block), &table));
	code = (struct user_code){.n = 2,
	                          .ranges = {{USER, USER + 0x1000, 0, NULL}, {TEXT, TEXT + 0xa00, 0x1000, &table}}};
	regs.rsp = STACK;
}

static void expect(const uint64_t *words, unsigned n, enum unwind_end why)
{
	const struct unwind_config config = {
		.system = &linux_unwinding, .depth = UNWIND_DEPTH_DEFAULT, .user = true, .code = &code};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert_uint_eq(unwind(&config, &fake.guest, &regs, NULL, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

/* Words of the stack, from its top on. */
static void stack_put(const uint64_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fake_write(&fake, STACK - USER + i * 8, words[i]);
}

#define EXPECT(why, ...)                                                             \
	do {                                                                         \
		const uint64_t words[] = {(uint64_t)PERF_CONTEXT_USER, __VA_ARGS__}; \
		expect(words, G_N_ELEMENTS(words), why);                             \
	} while (0)
#define PUT(...)                                           \
	do {                                               \
		const uint64_t stacked[] = {__VA_ARGS__};  \
		stack_put(stacked, G_N_ELEMENTS(stacked)); \
	} while (0)

/* A leaf without a frame, its caller, which has saved the frame pointer of a function that has one, and _start. */
START_TEST(registers_come_back_for_their_functions)
{
	PUT(AT(0x210), 7, STACK + 0x40, AT(0x310));
	fake_write(&fake, STACK + 0x40 - USER, 0);
	fake_write(&fake, STACK + 0x48 - USER, AT(0x610));
	regs.rip = AT(0x110);
	regs.rbp = 0x123; /* not a frame pointer */
	EXPECT(UNWIND_END_OF_STACK, AT(0x110), AT(0x210), AT(0x310), AT(0x610));
}
END_TEST

/* A call that does not return is the last instruction of its function. */
START_TEST(a_return_address_belongs_to_the_call_before_it)
{
	PUT(AT(0x200), AT(0x610));
	regs.rip = AT(0x110);
	EXPECT(UNWIND_END_OF_STACK, AT(0x110), AT(0x200), AT(0x610));
}
END_TEST

START_TEST(a_stack_that_was_aligned)
{
	regs.rip = AT(0x410);
	regs.rbp = STACK + 0x10;
	PUT(0, STACK + 0x40, 0x77);
	fake_write(&fake, STACK + 0x38 - USER, AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, AT(0x410), AT(0x610));
}
END_TEST

START_TEST(the_frame_may_be_in_any_preserved_register)
{
	PUT(AT(0x510), AT(0x610));
	regs.rip = AT(0x110);
	regs.rbx = STACK + 8;
	EXPECT(UNWIND_END_OF_STACK, AT(0x110), AT(0x510), AT(0x610));
	regs.all = false;
	EXPECT(UNWIND_BAD_FRAME, AT(0x110), AT(0x510));
}
END_TEST

/* What returns from a signal is not called: its information begins a byte before it. */
START_TEST(a_signal_gives_back_what_it_interrupted)
{
	PUT(AT(0x701), STACK + 0x100, AT(0x510), STACK + 0x100);
	fake_write(&fake, STACK + 0x100 - USER, AT(0x610));
	regs.rip = AT(0x110);
	EXPECT(UNWIND_END_OF_STACK, AT(0x110), AT(0x701), (uint64_t)PERF_CONTEXT_USER, AT(0x510), AT(0x610));
}
END_TEST

START_TEST(no_table_is_no_end)
{
	/* By frame pointers, from code without a table and without a row, and of an unknown form. */
	static const uint64_t ips[] = {USER + 0x10, AT(0x10), AT(0x910), TEXT + 0x5000};

	regs.rip = ips[_i];
	regs.rbp = STACK + 0x20;
	fake_write(&fake, STACK + 0x20 - USER, STACK + 0x60);
	fake_write(&fake, STACK + 0x28 - USER, AT(0x310));
	fake_write(&fake, STACK + 0x60 - USER, 0);
	fake_write(&fake, STACK + 0x68 - USER, AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, ips[_i], AT(0x310), AT(0x610));
}
END_TEST

/* As __do_global_dtors_aux of GCC's crtstuff.c: its caller uses rbp for a number. */
START_TEST(one_frame_pointer_leads_back_to_a_table)
{
	regs.rip = AT(0x10);
	regs.rbp = STACK + 0x20;
	fake_write(&fake, STACK + 0x20 - USER, 1);
	fake_write(&fake, STACK + 0x28 - USER, AT(0x110));
	fake_write(&fake, STACK + 0x30 - USER, AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, AT(0x10), AT(0x110), AT(0x610));
	fake_write(&fake, STACK + 0x28 - USER, AT(0x11)); /* code without information */
	EXPECT(UNWIND_NO_ENTRY, AT(0x10));
}
END_TEST

/* Where frame pointers lead nowhere, it says why there was nothing else. */
START_TEST(chains_end_for_the_reason_that_they_have)
{
	regs.rbp = 3;
	regs.rip = USER + 0x10;
	EXPECT(UNWIND_NO_ENTRY, USER + 0x10);
	regs.rip = AT(0x10);
	EXPECT(UNWIND_NO_ENTRY, AT(0x10));
	regs.rip = AT(0x910);
	EXPECT(UNWIND_NO_FORM, AT(0x910));
	regs.rip = TEXT + 0x5000;
	EXPECT(UNWIND_BAD_FRAME, TEXT + 0x5000);
	regs.rip = AT(0x910);
	regs.rbp = UINT64_C(0x7fff00000000);
	EXPECT(UNWIND_NO_FORM, AT(0x910));
}
END_TEST

/* vfork(2) keeps it in a register, and its frame is that of its caller. */
START_TEST(a_return_address_may_be_off_the_stack)
{
	regs.rip = AT(0x810);
	fake_write(&fake, STACK - 8 - USER, AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, AT(0x810), AT(0x610));
}
END_TEST

START_TEST(chains_of_bad_stacks_end)
{
	PUT(AT(0x810));
	regs.rip = AT(0x110);
	EXPECT(UNWIND_BAD_FRAME, AT(0x110), AT(0x810));
	regs.rip = AT(0x310);
	regs.rbp = UINT64_C(0x7fff00000000);
	EXPECT(UNWIND_UNREADABLE, AT(0x310));
	regs.rip = AT(0x110);
	PUT(0);
	EXPECT(UNWIND_BAD_FRAME, AT(0x110));
}
END_TEST

/* As _init of crti.S, before and behind its SUB $8,%rsp, with a number in rbp, or 0 as in the dynamic linker. */
START_TEST(code_of_the_start_has_a_caller)
{
	const uint64_t rbp = _i % 2 == 0 ? 0 : 12345;

	fake_write(&fake, AT(0x10) - USER, 0x058b480008ec8348);
	regs.rbp = rbp;
	regs.rip = AT(0x10);
	PUT(AT(0x110), AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, AT(0x10), AT(0x110), AT(0x610));
	regs.rip = AT(0x14);
	PUT(AT(0x210), AT(0x110), AT(0x610));
	EXPECT(UNWIND_END_OF_STACK, AT(0x14), AT(0x110), AT(0x610));
}
END_TEST

/* In a system call: the kernel's frame pointer leads to pt_regs, which has all registers. */
static void call_system(uint64_t from)
{
	const uint64_t at = 0x2100;

	regs.cpl = 0;
	regs.rip = KERNEL + 0x100;
	regs.rbp = (KERNEL + at) | 1;
	regs.all = false;
	fake_write(&fake, at + 5 * 8, STACK); /* rbx */
	fake_write(&fake, at + 16 * 8, from);
	fake_write(&fake, at + 17 * 8, 0x33);
	fake_write(&fake, at + 19 * 8, STACK);
}

/* execve(2) has taken the program away: nothing is where it was called from, unless the mappings say otherwise. */
START_TEST(a_program_that_is_gone_has_no_chain)
{
	const uint64_t gone = UINT64_C(0x7f1234567000), in_kernel[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100};
	const uint64_t paged_out[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100, (uint64_t)PERF_CONTEXT_USER, gone};

	call_system(gone);
	expect(in_kernel, G_N_ELEMENTS(in_kernel), UNWIND_END_OF_STACK);
	code.ranges[code.n++] = (struct user_range){gone, gone + 0x1000, 0, NULL};
	fake_write(&fake, 0x2100 + 4 * 8, 3); /* rbp */
	expect(paged_out, G_N_ELEMENTS(paged_out), UNWIND_NO_ENTRY);
}
END_TEST

START_TEST(a_system_call_begins_at_pt_regs)
{
	const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x100, (uint64_t)PERF_CONTEXT_USER, AT(0x510),
	                         AT(0x610)};

	call_system(AT(0x510));
	PUT(AT(0x610));
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwind_user");
	TCase *tables = tcase_create("tables");

	tcase_add_checked_fixture(tables, setup, NULL);
	tcase_add_test(tables, registers_come_back_for_their_functions);
	tcase_add_test(tables, a_return_address_belongs_to_the_call_before_it);
	tcase_add_test(tables, a_stack_that_was_aligned);
	tcase_add_test(tables, the_frame_may_be_in_any_preserved_register);
	tcase_add_test(tables, a_signal_gives_back_what_it_interrupted);
	tcase_add_loop_test(tables, no_table_is_no_end, 0, 4);
	tcase_add_test(tables, one_frame_pointer_leads_back_to_a_table);
	tcase_add_test(tables, a_return_address_may_be_off_the_stack);
	tcase_add_test(tables, chains_of_bad_stacks_end);
	tcase_add_test(tables, chains_end_for_the_reason_that_they_have);
	tcase_add_loop_test(tables, code_of_the_start_has_a_caller, 0, 2);
	tcase_add_test(tables, a_program_that_is_gone_has_no_chain);
	tcase_add_test(tables, a_system_call_begins_at_pt_regs);
	suite_add_tcase(suite, tables);
	return run_suite(suite);
}
