// SPDX-License-Identifier: BSD-2-Clause
/* What is kept of the host's call chains, of a process of our own: this one. */
#include <check.h>
#include <fcntl.h>
#include <unistd.h>

#include "attach/host_chain.h"
#include "run_suite.h"

#define KERNEL_IP UINT64_C(0xffffffff81000010)

static int memory;
static struct host_chain *chain;
static struct counter_sample sample;

static void setup(void)
{
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	chain = host_chain_new(memory);
	sample = (struct counter_sample){0};
}

static void teardown(void)
{
	host_chain_free(chain);
	close(memory);
}

START_TEST(calls_are_told_from_other_code)
{
	static const struct {
		uint8_t bytes[HOST_CHAIN_CALL_BYTES];
		bool is_call;
	} cases[] = {
#ifdef __aarch64__
		{{0, 0, 0, 0x10, 0, 0, 0x94}, true},        /* bl */
		{{0, 0, 0, 0xf0, 0xff, 0xff, 0x97}, true},  /* bl, backwards */
		{{0, 0, 0, 0x60, 0x02, 0x3f, 0xd6}, true},  /* blr x19 */
		{{0, 0, 0, 0x1f, 0x09, 0x3f, 0xd6}, true},  /* blraaz x8 */
		{{0, 0, 0, 0x11, 0x0a, 0x3f, 0xd7}, true},  /* blraa x16, x17 */
		{{0, 0, 0, 0x10, 0, 0, 0x14}, false},       /* b */
		{{0, 0, 0, 0xc0, 0x03, 0x5f, 0xd6}, false}, /* ret */
		{{0, 0, 0, 0x60, 0x02, 0x1f, 0xd6}, false}, /* br x19 */
		{{0x10, 0, 0, 0x94, 0, 0, 0}, false},       /* a call before */
#else
		{{0x90, 0x90, 0xe8, 1, 2, 3, 4}, true},             /* call rel32 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, true}, /* call *%rax */
		{{0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3}, true}, /* call *%r11 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x10}, true}, /* call *(%rax) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc3}, true}, /* call *(%rbx,%rax,8) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 8}, true},    /* call *8(%rax) */
		{{0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 8}, true},    /* call *8(%rsp) */
		{{0x90, 0xff, 0x15, 1, 2, 3, 4}, true},             /* call *rel32(%rip) */
		{{0x90, 0xff, 0x90, 1, 2, 3, 4}, true},             /* call *disp32(%rax) */
		{{0xff, 0x94, 0x24, 1, 2, 3, 4}, true},             /* call *disp32(%rsp) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, false},
		{{0x90, 0x90, 0xe9, 1, 2, 3, 4}, false},             /* jmp rel32 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, false}, /* jmp *%rax */
		{{0x90, 0x90, 0x90, 0xe8, 1, 2, 3}, false},          /* a call that goes on behind */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x15}, false}, /* the same, by a pointer */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0xd0, 0x90}, false}, /* something behind a call */
#endif
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_msg(host_chain_is_call(cases[i].bytes) == cases[i].is_call, "case %zu", i);
}
END_TEST

static void take(const uint64_t *words, uint32_t n)
{
	const struct record_sample record = {.ip = words[1], .chain = words, .n_chain = n};

	host_chain_take(chain, &record, &sample);
	ck_assert_uint_eq(sample.host_ip, words[1]);
}

/* Its caller calls it: it returns behind a call. */
static __attribute__((noinline)) uint64_t return_address(void)
{
	return (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0));
}

START_TEST(callers_in_the_process_end_where_none_called)
{
	const uint64_t real = return_address();
	const uint64_t words[] = {(uint64_t)PERF_CONTEXT_KERNEL,
	                          KERNEL_IP,
	                          KERNEL_IP + 16,
	                          (uint64_t)PERF_CONTEXT_USER,
	                          0x1234,
	                          real,
	                          real,
	                          0x198,
	                          real};
	const size_t whole = 7; /* where the process was may be anything; 0x198 is nothing */

	take(words, G_N_ELEMENTS(words));
	ck_assert_uint_eq(sample.n_host_chain, whole);
	for (size_t i = 0; i < whole; i++)
		ck_assert_uint_eq(sample.host_chain[i], words[i]);
	const uint64_t text[] = {(uint64_t)PERF_CONTEXT_USER, real, UINT64_C(0x70632d34365f3638)};

	take(text, G_N_ELEMENTS(text));
	ck_assert_uint_eq(sample.n_host_chain, 2);
}
END_TEST

START_TEST(the_guests_own_samples_have_none)
{
	const struct record_sample record = {.ip = KERNEL_IP};

	sample.in_guest = true;
	host_chain_take(chain, &record, &sample);
	ck_assert_uint_eq(sample.host_ip, 0);
	ck_assert_ptr_null(sample.host_chain);
}
END_TEST

START_TEST(a_long_chain_is_cut)
{
	uint64_t words[1000];

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		words[i] = i == 0 ? (uint64_t)PERF_CONTEXT_KERNEL : KERNEL_IP + i;
	take(words, G_N_ELEMENTS(words));
	ck_assert_uint_gt(sample.n_host_chain, 127);
	ck_assert_uint_lt(sample.n_host_chain, 200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_chain");
	TCase *tc = tcase_create("host_chain");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, calls_are_told_from_other_code);
	tcase_add_test(tc, callers_in_the_process_end_where_none_called);
	tcase_add_test(tc, the_guests_own_samples_have_none);
	tcase_add_test(tc, a_long_chain_is_cut);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
