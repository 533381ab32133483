// SPDX-License-Identifier: BSD-2-Clause
/* The stack pointer found on stacks made by hand, and what leads to no answer. */
#include <check.h>

#include "fake_calls.h"
#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/os_linux.h"
#include "linux/unwind_search.h"
#include "linux/x86/code_place.h"
#include "linux/x86/orc_entry.h"
#include "run_suite.h"

#define MEMORY UINT64_C(0xffff888000000000) /* maps the fake guest's RAM */
#define TASK_END (MEMORY + 0x8000)
#define IRQ_END (MEMORY + 0xc000)
#define ENTRY_END (MEMORY + 0xd000)
#define MODULE (FAKE_TEXT + 0x800000)
#define MODULE_TABLES (MODULE + 0x1000)
#define MODULE_GPA UINT64_C(0x40000)
#define MODULE_TO_INNER 0x165u
#define MODULE_TO_MODULE 0x145u
#define MODULE_INDIRECT 0x182u
#define PT_REGS 168u
#define USER_REGS (TASK_END - PT_REGS)

static struct fake_guest fake;
static struct guest_regs regs;
static struct unwind_tables *orc;
static struct call_sites *sites;
static struct unwind_stacks stacks;
static struct module_table *modules; /* NULL: none */

static void put(uint64_t at, uint64_t value)
{
	fake_write(&fake, at - MEMORY, value);
}

/* Behind a call. */
static void put_return(uint64_t at, uint32_t after)
{
	put(at, FAKE_TEXT + after);
}

static void put_regs(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp, uint64_t ss)
{
	put(at + 128, ip);
	put(at + 136, cs);
	put(at + 144, 0x202);
	put(at + 152, sp);
	put(at + 160, ss);
}

/* A system call, in which outer runs. */
static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .rip = FAKE_TEXT + FAKE_INNER + 0x10, .valid = true};
	fake_map(&fake, regs.cr3, 4, MEMORY, 0, 2);
	stacks = (struct unwind_stacks){.task = TASK_END};
	ck_assert(fake_calls_load(&orc, &sites));
	put_regs(USER_REGS, 0x401000, 0x33, 0x7fff0000, 0x2b);
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_OUTER);
}

static void teardown(void)
{
	orc_free(orc);
	call_sites_free(sites);
	g_clear_pointer(&modules, g_free);
}

static enum unwind_search_result search(void)
{
	const struct unwind_config config = {.system = &linux_unwinding,
	                                     .tables = orc,
	                                     .sites = sites,
	                                     .modules = modules,
	                                     .depth = UNWIND_DEPTH_DEFAULT};
	struct page_walk memory;

	page_walk_init(&memory, &fake.guest, regs.cr3, false);
	return unwind_search(&config, &stacks, &memory, &regs);
}

static void expect(uint64_t rsp)
{
	ck_assert_int_eq(search(), UNWIND_SEARCH_FOUND);
	ck_assert_uint_eq(regs.rsp, rsp);
}

static void expect_none(enum unwind_search_result why)
{
	ck_assert_int_eq(search(), why);
	ck_assert_uint_eq(regs.rsp, 0);
}

static enum call_link link_to(uint64_t return_address, uint32_t function)
{
	struct callee callee;

	callee_init(&callee, function);
	return call_sites_link(sites, return_address, &callee);
}

START_TEST(links)
{
	static const struct {
		uint32_t after, function;
		enum call_link link;
	} cases[] = {
		{FAKE_OUTER_TO_INNER, FAKE_INNER, CALL_LINK_DIRECT},
		{FAKE_OUTER_TO_INNER, FAKE_OUTER, CALL_LINK_NONE},
		{FAKE_OUTER_TO_INNER + 1, FAKE_INNER, CALL_LINK_NONE},
		{FAKE_INNER_TO_JUMPER, FAKE_INNER, CALL_LINK_TAIL},
		{FAKE_OTHER_INDIRECT, FAKE_TAKEN, CALL_LINK_INDIRECT},
		{FAKE_OTHER_INDIRECT, FAKE_CALLED, CALL_LINK_NONE},
		{FAKE_OTHER_INDIRECT, FAKE_THREAD, CALL_LINK_INDIRECT}, /* no code leads there */
		{FAKE_COLD_TO_CALLED, FAKE_CALLED, CALL_LINK_DIRECT},
		{FAKE_COLD_TO_BEFORE, FAKE_WITHIN, CALL_LINK_TAIL},
		{FAKE_COLD_TO_BEFORE, FAKE_ARRIVAL, CALL_LINK_NONE},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_int_eq(
			link_to(FAKE_TEXT + cases[i].after, call_sites_function(sites, FAKE_TEXT + cases[i].function)),
			cases[i].link);
	ck_assert_uint_eq(call_sites_function(sites, FAKE_TEXT + FAKE_COLD + 3),
	                  call_sites_function(sites, FAKE_TEXT + FAKE_INNER));
	ck_assert_uint_eq(call_sites_function(sites, FAKE_TEXT - 1), CALL_SITES_NO_FUNCTION);
	ck_assert_uint_eq(call_sites_function(sites, FAKE_TEXT + FAKE_TEXT_BYTES), CALL_SITES_NO_FUNCTION);
	ck_assert_int_eq(link_to(FAKE_TEXT, 0), CALL_LINK_NONE);
	/* Of a module. */
	ck_assert_int_eq(link_to(FAKE_TEXT + FAKE_OUTER_TO_INNER, CALL_SITES_NO_FUNCTION), CALL_LINK_NONE);
	ck_assert_int_eq(link_to(FAKE_TEXT + FAKE_OTHER_INDIRECT, CALL_SITES_NO_FUNCTION), CALL_LINK_INDIRECT);
}
END_TEST

START_TEST(one_chain_from_user_space)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	put_return(TASK_END - 0x800, FAKE_OUTER_TO_INNER); /* left there by an earlier call */
	expect(USER_REGS - 40);
}
END_TEST

/* From 6.9 on, stacks may end with room for FRED. */
START_TEST(padding_at_the_end)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	stacks.task += 16;
	expect(USER_REGS - 40);
	regs.rsp = 0;
	stacks.task += 16;
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

/* Of user space's system call, and of a thread. */
static void put_two_chains(void)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	put_return(USER_REGS - 88, FAKE_THREAD_TO_OUTER);
	put_return(USER_REGS - 104, FAKE_OUTER_TO_INNER);
}

START_TEST(two_chains_that_are_as_sure)
{
	put_two_chains();
	expect_none(UNWIND_SEARCH_AMBIGUOUS);
}
END_TEST

/* A call that the function has made left its return address just below where its stack begins. */
START_TEST(the_one_from_where_a_call_was_made)
{
	put_two_chains();
	put_return(USER_REGS - 128, FAKE_INNER_TO_JUMPER);
	expect(USER_REGS - 120);
	regs.rsp = 0;
	put_return(USER_REGS - 128, FAKE_OUTER_TO_INNER);
	expect_none(UNWIND_SEARCH_AMBIGUOUS);
	put(USER_REGS - 128, FAKE_TEXT + FAKE_INNER + 0x10);
	expect_none(UNWIND_SEARCH_AMBIGUOUS);
}
END_TEST

START_TEST(the_surer_one_of_two)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	put_return(USER_REGS - 48, FAKE_INNER_TO_JUMPER);
	expect(USER_REGS - 40);
}
END_TEST

static void put_pushed(uint64_t at, uint64_t ip, uint64_t cs, uint64_t sp, uint64_t ss)
{
	put(at, ip);
	put(at + 8, cs);
	put(at + 16, 0x202);
	put(at + 24, sp);
	put(at + 32, ss);
}

START_TEST(an_entry_from_the_kernel)
{
	const uint64_t at = USER_REGS - 80, sp = at + 40;

	regs.rip = FAKE_TEXT + FAKE_ARRIVAL;
	stacks.in_kernel = true;
	put_pushed(at, FAKE_TEXT + FAKE_INNER, 0x10, sp, 0x18);
	put_return(sp + 16, FAKE_OUTER_TO_INNER);
	expect(at - 8);
	regs.rsp = 0;
	put_pushed(at, 0x401000, 0x33, sp, 0x2b);
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

/* It is on a stack of its own, and what the task's has does not count. */
START_TEST(an_entry_from_user_space)
{
	const uint64_t pushed = ENTRY_END - 40;

	regs.rip = FAKE_TEXT + FAKE_ARRIVAL;
	expect_none(UNWIND_SEARCH_SWITCHING);
	stacks.entry = ENTRY_END;
	expect_none(UNWIND_SEARCH_SWITCHING);
	put_pushed(pushed, 0x401000, 0x33, 0x7fff0000, 0x2b);
	expect(pushed - 8);
	regs.rsp = 0;
	put(pushed + 8, 0x10);
	expect_none(UNWIND_SEARCH_SWITCHING);
}
END_TEST

/* The flags that execve gives a program lack the bit that the processor always sets. */
START_TEST(a_program_that_has_not_started)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	put(USER_REGS + 144, 0x200);
	expect(USER_REGS - 40);
	regs.rsp = 0;
	put(USER_REGS + 144, 0x002);
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

START_TEST(indirect_calls_of_functions_with_an_address)
{
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_OTHER);
	put_return(USER_REGS - 24, FAKE_OTHER_INDIRECT);
	regs.rip = FAKE_TEXT + FAKE_TAKEN + 4;
	expect(USER_REGS - 24);
	regs.rsp = 0;
	regs.rip = FAKE_TEXT + FAKE_CALLED + 4;
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

/* The kernel's own registers of an interrupt, in a chain. */
START_TEST(an_interrupted_kernel)
{
	const uint64_t at = USER_REGS - 16 - PT_REGS;

	put_regs(at, FAKE_TEXT + FAKE_OUTER + 0x30, 0x10, at + PT_REGS, 0x18);
	put_return(at - 8, FAKE_ENTRY_TO_OUTER);
	put_return(at - 24, FAKE_OUTER_TO_INNER);
	expect(at - 40);
	regs.rsp = 0;
	put_regs(at, FAKE_TEXT + FAKE_OUTER + 0x30, 0x10, at + PT_REGS + 64, 0x18);
	expect_none(UNWIND_SEARCH_NONE);
	put_regs(at, FAKE_TEXT + FAKE_OUTER + 0x30, 0x18, at + PT_REGS, 0x18);
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

/* User space's registers count only where the stack ends. */
START_TEST(user_registers_elsewhere)
{
	const uint64_t at = USER_REGS - 0x200;

	put_regs(at, 0x401000, 0x33, 0x7fff0000, 0x2b);
	put_return(at - 8, FAKE_ENTRY_TO_OUTER);
	put_return(at - 24, FAKE_OUTER_TO_INNER);
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

START_TEST(a_kernel_thread)
{
	put_return(TASK_END - 16, FAKE_THREAD_TO_OUTER);
	put_return(TASK_END - 32, FAKE_OUTER_TO_INNER);
	expect(TASK_END - 48);
	put_return(TASK_END - 32, 0);
	put_return(TASK_END - 0x410, FAKE_THREAD_TO_OUTER);
	put_return(TASK_END - 0x420, FAKE_OUTER_TO_INNER);
	regs.rsp = 0;
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

START_TEST(an_interrupt_stack_in_use)
{
	put_return(USER_REGS - 24, FAKE_OUTER_TO_INNER);
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_ON_IRQ);
	put(IRQ_END - 8, USER_REGS - 8);
	put_return(IRQ_END - 16, FAKE_ON_IRQ_TO_INNER);
	stacks.interrupt = IRQ_END;
	expect(IRQ_END - 32);
}
END_TEST

START_TEST(code_that_changes_stacks)
{
	regs.rip = FAKE_TEXT + FAKE_SWITCH;
	expect_none(UNWIND_SEARCH_SWITCHING);
	regs.rip = FAKE_TEXT + FAKE_INNER;
	put_return(USER_REGS - 24, FAKE_SWITCH_TO_INNER);
	expect_none(UNWIND_SEARCH_SWITCHING);
}
END_TEST

START_TEST(code_without_tables)
{
	regs.rip = FAKE_TEXT + FAKE_TEXT_BYTES + 0x1000;
	expect_none(UNWIND_SEARCH_NO_TABLE);
}
END_TEST

START_TEST(rsp_that_is_not_needed)
{
	regs.rip = FAKE_TEXT + FAKE_FRAMED + 8;
	regs.rbp = USER_REGS - 16;
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_FRAMED);
	expect(0);
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_OUTER);
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

/* A module that calls inner, itself, and by a register; all of its functions have 8 bytes on the stack. */
static void put_module(void)
{
	const int32_t distance = (int32_t)(MODULE - MODULE_TABLES);
	const int32_t to_inner = (int32_t)(FAKE_TEXT + FAKE_INNER - (MODULE + MODULE_TO_INNER));
	const uint8_t rule[] = {16, 0, 0, 0, ORC_REG_SP, 0};
	uint8_t code[0x300];

	memset(code, 0x90, sizeof(code));
	code[MODULE_TO_INNER - 5] = 0xe8;
	memcpy(code + MODULE_TO_INNER - 4, &to_inner, sizeof(to_inner));
	memcpy(code + MODULE_TO_MODULE - 5, "\xe8\x00\x00\x00\x00", 5);
	memcpy(code + MODULE_INDIRECT - 2, "\xff\xd0", 2);
	fake_map(&fake, regs.cr3, 4, MODULE, MODULE_GPA, 1);
	fake_map(&fake, regs.cr3, 4, MODULE_TABLES, MODULE_GPA + (MODULE_TABLES - MODULE), 1);
	memcpy(fake.ram + MODULE_GPA, code, sizeof(code));
	memcpy(fake.ram + MODULE_GPA + (MODULE_TABLES - MODULE), &distance, sizeof(distance));
	memcpy(fake.ram + MODULE_GPA + (MODULE_TABLES - MODULE) + 0x100, rule, sizeof(rule));
	modules = g_new0(struct module_table, 1);
	modules->n = modules->n_ranges = 1;
	modules->ranges[0] = (struct module_range){.start = MODULE, .bytes = 0x1000};
	modules->modules[0] = (struct module){.unwind_at = {MODULE_TABLES, MODULE_TABLES + 0x100}, .unwind_n = 1};
}

START_TEST(calls_of_modules)
{
	put_module();
	put_return(USER_REGS - 8, FAKE_ENTRY_TO_OTHER);
	put_return(USER_REGS - 24, FAKE_OTHER_INDIRECT);
	put(USER_REGS - 40, MODULE + MODULE_TO_INNER);
	expect(USER_REGS - 56);
	put(USER_REGS - 40, MODULE + MODULE_TO_MODULE);
	put(USER_REGS - 56, MODULE + MODULE_TO_INNER);
	expect(USER_REGS - 72);
	regs.rip = MODULE + MODULE_TO_MODULE + 0x20;
	put(USER_REGS - 56, 0);
	expect(USER_REGS - 32);
	g_clear_pointer(&modules, g_free);
	regs.rsp = 0;
	expect_none(UNWIND_SEARCH_NO_TABLE);
}
END_TEST

static enum call_link link_of_module(uint32_t after, uint64_t callee)
{
	const struct unwind_config config = {
		.system = &linux_unwinding, .tables = orc, .sites = sites, .modules = modules};
	struct code_place place;
	struct page_walk memory;

	page_walk_init(&memory, &fake.guest, regs.cr3, false);
	ck_assert(code_place_find(&config, callee, &place));
	return code_place_link(&config, &memory, MODULE + after, &place);
}

START_TEST(links_of_modules)
{
	put_module();
	ck_assert_int_eq(link_of_module(MODULE_TO_INNER, FAKE_TEXT + FAKE_INNER + 4), CALL_LINK_DIRECT);
	ck_assert_int_eq(link_of_module(MODULE_TO_INNER, FAKE_TEXT + FAKE_OUTER), CALL_LINK_NONE);
	ck_assert_int_eq(link_of_module(MODULE_TO_INNER, MODULE), CALL_LINK_NONE);
	ck_assert_int_eq(link_of_module(MODULE_TO_MODULE, MODULE + MODULE_TO_MODULE + 4), CALL_LINK_DIRECT);
	ck_assert_int_eq(link_of_module(MODULE_TO_MODULE, MODULE), CALL_LINK_TAIL);
	ck_assert_int_eq(link_of_module(MODULE_TO_MODULE, FAKE_TEXT + FAKE_TAKEN), CALL_LINK_THROUGH);
	ck_assert_int_eq(link_of_module(MODULE_TO_MODULE, FAKE_TEXT + FAKE_CALLED), CALL_LINK_NONE);
	/* By a register: what is in use by its address, and nothing else. */
	ck_assert_int_eq(link_of_module(MODULE_INDIRECT, FAKE_TEXT + FAKE_TAKEN), CALL_LINK_INDIRECT);
	ck_assert_int_eq(link_of_module(MODULE_INDIRECT, FAKE_TEXT + FAKE_CALLED), CALL_LINK_NONE);
	ck_assert_int_eq(link_of_module(MODULE_INDIRECT, MODULE), CALL_LINK_INDIRECT);
	ck_assert_int_eq(link_of_module(MODULE_INDIRECT + 1, MODULE), CALL_LINK_NONE);
	ck_assert_int_eq(link_of_module(0x1000, MODULE), CALL_LINK_NONE);
}
END_TEST

/* Every word leads on, and none to a root. */
START_TEST(bounded_work)
{
	for (uint64_t at = TASK_END - 0x4000; at < TASK_END; at += 8)
		put_return(at, FAKE_INNER_TO_INNER);
	fake.reads = 0;
	expect_none(UNWIND_SEARCH_WORK);
	ck_assert_uint_lt(fake.reads, 10 * UNWIND_SEARCH_STEPS_MAX);
}
END_TEST

START_TEST(stacks_that_cannot_be_read)
{
	stacks.task = 0;
	expect_none(UNWIND_SEARCH_NONE);
	stacks.task = 4096;
	expect_none(UNWIND_SEARCH_NONE);
	stacks.interrupt = UINT64_MAX;
	expect_none(UNWIND_SEARCH_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unwind_search");
	TCase *tc = tcase_create("search");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, links);
	tcase_add_test(tc, one_chain_from_user_space);
	tcase_add_test(tc, padding_at_the_end);
	tcase_add_test(tc, two_chains_that_are_as_sure);
	tcase_add_test(tc, the_surer_one_of_two);
	tcase_add_test(tc, the_one_from_where_a_call_was_made);
	tcase_add_test(tc, an_entry_from_the_kernel);
	tcase_add_test(tc, an_entry_from_user_space);
	tcase_add_test(tc, a_program_that_has_not_started);
	tcase_add_test(tc, indirect_calls_of_functions_with_an_address);
	tcase_add_test(tc, an_interrupted_kernel);
	tcase_add_test(tc, user_registers_elsewhere);
	tcase_add_test(tc, a_kernel_thread);
	tcase_add_test(tc, an_interrupt_stack_in_use);
	tcase_add_test(tc, code_that_changes_stacks);
	tcase_add_test(tc, code_without_tables);
	tcase_add_test(tc, rsp_that_is_not_needed);
	tcase_add_test(tc, calls_of_modules);
	tcase_add_test(tc, links_of_modules);
	tcase_add_test(tc, bounded_work);
	tcase_add_test(tc, stacks_that_cannot_be_read);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
