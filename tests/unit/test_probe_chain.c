// SPDX-License-Identifier: BSD-2-Clause
/* Call chains of probes at the first instruction of a function, in memory laid out by hand. */
#include <check.h>
#include <linux/perf_event.h>

#include "fake_guest_memory.h"
#include "linux/os_linux.h"
#include "probe/placement_priv.h"
#include "run_suite.h"

#define KERNEL UINT64_C(0xffffffff80000000) /* maps the RAM, first 2 MiB, for kernel and user alike */
#define USER UINT64_C(0x0000000000400000)
#define STACK UINT64_C(0x2000)

static struct fake_guest fake;
static struct guest_regs regs;
static struct probe_hub hub;
static struct probe_set set;
static struct probe probe;

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true};
	fake_map(&fake, regs.cr3, 4, KERNEL, 0, 2);
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
	hub = (struct probe_hub){.guest = &fake.guest};
	set = (struct probe_set){.hub = &hub, .unwind = {.system = &linux_unwinding, .depth = UNWIND_DEPTH_DEFAULT}};
	probe = (struct probe){.set = &set, .options.stack = true};
}

/* leaf at 0x100 was called by middle, which was called by work: rbp is that of middle. */
static void calls_put(uint64_t base)
{
	regs.rip = base + 0x100;
	regs.rsp = base + STACK;
	regs.rbp = base + STACK + 0x40;
	fake_write(&fake, STACK, base + 0x200);
	fake_write(&fake, STACK + 0x40, 0);
	fake_write(&fake, STACK + 0x48, base + 0x300);
}

static void assert_chain(bool at_entry, const uint64_t *words, unsigned n)
{
	const struct firing firing = {.probe = &probe, .regs = &regs, .at_entry = at_entry};
	uint64_t chain[PROBE_CHAIN_MAX];

	ck_assert_uint_eq(probe_event_fill_chain(&firing, chain), n);
	ck_assert_mem_eq(chain, words, n * sizeof(*words));
}

/* 0: the kernel, 1: a program. */
START_TEST(a_function_without_a_frame_has_its_caller)
{
	const uint64_t base = _i == 0 ? KERNEL : USER;
	const uint64_t context = (uint64_t)(_i == 0 ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
	const uint64_t entry[] = {context, base + 0x100, base + 0x200, base + 0x300};
	const uint64_t inside[] = {context, base + 0x100, base + 0x300};

	regs.cpl = _i == 0 ? 0 : 3;
	/* push %rbp is further on: nothing here says that the frame is not made yet. */
	memset(fake.ram + 0x80, 0x90, 0x300);
	calls_put(base);
	assert_chain(true, entry, G_N_ELEMENTS(entry));
	assert_chain(false, inside, G_N_ELEMENTS(inside));
}
END_TEST

START_TEST(a_stack_that_cannot_be_read_leaves_the_function_alone)
{
	const uint64_t alone[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x100};

	regs.cpl = 3;
	calls_put(USER);
	regs.rsp = UINT64_C(0x700000000000);
	regs.rbp = 0;
	assert_chain(true, alone, G_N_ELEMENTS(alone));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe_chain");
	TCase *tc = tcase_create("chains");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, a_function_without_a_frame_has_its_caller, 0, 2);
	tcase_add_test(tc, a_stack_that_cannot_be_read_leaves_the_function_alone);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
