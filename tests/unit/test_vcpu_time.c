// SPDX-License-Identifier: BSD-2-Clause
/* Time is conserved: exits on a clock made by hand, and the parts that a vCPU's clocks are split into. */
#include <check.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "kvm/vcpu/exit_account.h"
#include "lib/profile/vcpu_time.h"
#include "run_suite.h"

#define PORT(port) vprof_exit_ip(KVM_EXIT_IO, (port))
#define EXIT_REASONS UINT64_C(44) /* in Linux 6.18 */

static struct exit_account account;
static struct guest_vcpu_time reading;

static const struct guest_exit *exit_of(uint64_t ip)
{
	for (size_t i = 0; i < reading.n_exits; i++)
		if (reading.exits[i].ip == ip)
			return &reading.exits[i];
	ck_abort_msg("no exit 0x%llx", (unsigned long long)ip);
	return NULL;
}

static void assert_exit(uint64_t ip, uint64_t count, uint64_t ns)
{
	ck_assert_uint_eq(exit_of(ip)->count, count);
	ck_assert_uint_eq(exit_of(ip)->ns, ns);
}

START_TEST(a_run_loop_is_cut_at_its_exits)
{
	exit_account_begin(&account, 1000);
	exit_account_returned(&account, 1700, false);
	exit_account_handled(&account, 1710, PORT(0x3f8), 1);
	exit_account_returned(&account, 1800, false);
	exit_account_handled(&account, 1830, PORT(0x3f8), 1);
	exit_account_returned(&account, 1900, true);
	exit_account_handled(&account, 1950, vprof_exit_ip(KVM_EXIT_HLT, 0), 1);
	exit_account_handled(&account, 2000, vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0), 1);
	exit_account_read(&account, &reading);

	ck_assert_uint_eq(reading.time.wall_ns, 1000);
	ck_assert_uint_eq(reading.time.run_ns, 700 + 90 + 70);
	ck_assert_uint_eq(reading.time.offline_ns, 70);
	ck_assert_uint_eq(reading.time.vmm_ns, 10 + 30 + 50 + 50);
	ck_assert_uint_eq(reading.n_exits, 3);
	assert_exit(PORT(0x3f8), 2, 40);
	assert_exit(vprof_exit_ip(KVM_EXIT_HLT, 0), 1, 50);
	ck_assert_uint_eq(reading.exits[2].ip, PORT(0x3f8)); /* the shortest last */
}
END_TEST

START_TEST(what_is_no_exit_has_time_but_no_count)
{
	const uint64_t run_loop = vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0);

	exit_account_begin(&account, 0);
	exit_account_handled(&account, 5, run_loop, 0);
	exit_account_read(&account, &reading);
	ck_assert_uint_eq(reading.time.vmm_ns, 5);
	assert_exit(run_loop, 0, 5);
}
END_TEST

START_TEST(a_new_beginning_forgets)
{
	exit_account_begin(&account, 0);
	exit_account_handled(&account, 5, PORT(1), 1);
	exit_account_begin(&account, 7);
	exit_account_returned(&account, 9, false);
	exit_account_read(&account, &reading);
	ck_assert_uint_eq(reading.time.wall_ns, 2);
	ck_assert_uint_eq(reading.time.run_ns, 2);
	ck_assert_uint_eq(reading.n_exits, 0);
}
END_TEST

START_TEST(any_number_of_details_is_counted)
{
	uint64_t count = 0, ns = 0, now_ns = 0;

	exit_account_begin(&account, 0);
	for (uint64_t i = 0; i < 10000; i++)
		exit_account_handled(&account, now_ns += 3, vprof_exit_ip(KVM_EXIT_MMIO, 0x1000 * (i + 1)), 1);
	for (uint64_t reason = 1; reason < EXIT_REASONS; reason++) {
		exit_account_handled(&account, now_ns += 3, vprof_exit_ip(reason, 0), 1);
		exit_account_handled(&account, now_ns += 3, vprof_exit_ip(reason, 7), 1);
	}
	exit_account_read(&account, &reading);
	for (size_t i = 0; i < reading.n_exits; i++) {
		count += reading.exits[i].count;
		ns += reading.exits[i].ns;
	}
	ck_assert_uint_eq(count, 10000 + 2 * (EXIT_REASONS - 1));
	ck_assert_uint_eq(ns, reading.time.vmm_ns);
	ck_assert_uint_eq(ns, reading.time.wall_ns);
	ck_assert_uint_gt(exit_of(vprof_exit_ip(KVM_EXIT_MMIO, VPROF_EXIT_DETAIL_MASK))->count, 9000);
}
END_TEST

static uint64_t sum(const struct vcpu_time_parts *parts)
{
	return parts->guest_ns + parts->kvm_ns + parts->vmm_ns + parts->halted_ns + parts->offline_ns +
	       parts->runnable_ns + (uint64_t)parts->residual_ns;
}

static const struct {
	struct vcpu_time time;
	struct vcpu_time_parts parts;
} splits[] = {
	/* all clocks agree */
	{{.wall_ns = 1000,
          .run_ns = 900,
          .vmm_ns = 100,
          .cpu_ns = 500,
          .halt_wait_ns = 300,
          .halt_poll_ns = 20,
          .offline_ns = 150,
          .runnable_ns = 50},
         {.wall_ns = 1000, .guest_ns = 380, .vmm_ns = 100, .halted_ns = 320, .offline_ns = 150, .runnable_ns = 50}},
	/* asleep for a reason without a clock */
	{{.wall_ns = 1000, .run_ns = 900, .vmm_ns = 100, .cpu_ns = 700, .halt_wait_ns = 200},
         {.wall_ns = 1000, .guest_ns = 600, .vmm_ns = 100, .halted_ns = 200, .residual_ns = 100}},
	/* woken up, and 40 ns later on a CPU */
	{{.wall_ns = 1000, .run_ns = 1000, .cpu_ns = 300, .halt_wait_ns = 700, .runnable_ns = 40},
         {.wall_ns = 1000, .guest_ns = 300, .halted_ns = 660, .runnable_ns = 40}},
	{{.wall_ns = 1000, .run_ns = 1000, .cpu_ns = 0, .offline_ns = 1000, .runnable_ns = 40},
         {.wall_ns = 1000, .offline_ns = 960, .runnable_ns = 40}},
	/* the VMM was preempted for 30 ns */
	{{.wall_ns = 200, .run_ns = 20, .vmm_ns = 180, .cpu_ns = 150, .runnable_ns = 50},
         {.wall_ns = 200, .vmm_ns = 180, .runnable_ns = 20}},
	/* by trace points, which the scheduler's clocks have no part in */
	{{.wall_ns = 1000,
          .run_ns = 950,
          .vmm_ns = 50,
          .cpu_ns = 777,
          .guest_ns = 400,
          .kvm_ns = 100,
          .vmm_traced_ns = 60,
          .halt_wait_ns = 300,
          .halt_poll_ns = 20,
          .runnable_ns = 115},
         {.wall_ns = 1000,
          .guest_ns = 400,
          .kvm_ns = 100,
          .vmm_ns = 60,
          .halted_ns = 320,
          .runnable_ns = 115,
          .residual_ns = 5}},
	/* clocks that differ */
	{{.wall_ns = 100, .run_ns = 100, .cpu_ns = 103}, {.wall_ns = 100, .guest_ns = 103, .residual_ns = -3}},
};

START_TEST(parts_sum_to_the_wall_time)
{
	const struct vcpu_modes none = {0};
	const struct vcpu_time_parts parts = vcpu_time_split(&splits[_i].time, &none), *expected = &splits[_i].parts;

	ck_assert_uint_eq(parts.wall_ns, expected->wall_ns);
	ck_assert_uint_eq(parts.guest_ns, expected->guest_ns);
	ck_assert_uint_eq(parts.kvm_ns, expected->kvm_ns);
	ck_assert_uint_eq(parts.vmm_ns, expected->vmm_ns);
	ck_assert_uint_eq(parts.halted_ns, expected->halted_ns);
	ck_assert_uint_eq(parts.offline_ns, expected->offline_ns);
	ck_assert_uint_eq(parts.runnable_ns, expected->runnable_ns);
	ck_assert_int_eq(parts.residual_ns, expected->residual_ns);
	ck_assert_uint_eq(parts.guest_unknown_ns, parts.guest_ns);
	ck_assert_uint_eq(sum(&parts), parts.wall_ns);
}
END_TEST

static void assert_guest(const struct vcpu_time_parts *parts, uint64_t kernel_ns, uint64_t user_ns, uint64_t unknown_ns)
{
	ck_assert_uint_eq(parts->guest_kernel_ns, kernel_ns);
	ck_assert_uint_eq(parts->guest_user_ns, user_ns);
	ck_assert_uint_eq(parts->guest_unknown_ns, unknown_ns);
	ck_assert_uint_eq(kernel_ns + user_ns + unknown_ns, parts->guest_ns);
}

START_TEST(looks_tell_kernel_and_user_apart)
{
	const struct vcpu_time time = {.wall_ns = 1000, .run_ns = 1000, .cpu_ns = 1000};
	/* A product of both exceeds 64 bits. */
	const struct vcpu_time years = {
		.wall_ns = UINT64_C(1) << 60, .run_ns = UINT64_C(1) << 60, .cpu_ns = UINT64_C(1) << 60};
	const struct vcpu_modes thirds = {.kernel = 1, .user = 2}, kernel = {.kernel = 5}, none = {0},
				many = {.kernel = UINT64_C(3) << 30, .user = UINT64_C(1) << 30};
	struct vcpu_time_parts parts = vcpu_time_split(&time, &thirds), other = vcpu_time_split(&time, &kernel);

	assert_guest(&parts, 333, 667, 0);
	assert_guest(&other, 1000, 0, 0);
	/* Each vCPU's time goes by its own looks, however many they were. */
	vcpu_time_parts_add(&parts, &other);
	assert_guest(&parts, 1333, 667, 0);
	other = vcpu_time_split(&time, &none);
	vcpu_time_parts_add(&parts, &other);
	assert_guest(&parts, 1333, 667, 1000);
	ck_assert_uint_eq(sum(&parts), parts.wall_ns);
	parts = vcpu_time_split(&years, &many);
	assert_guest(&parts, UINT64_C(3) << 58, UINT64_C(1) << 58, 0);
}
END_TEST

START_TEST(readings_are_subtracted_and_added)
{
	const struct vcpu_time from = {.wall_ns = 100, .run_ns = 60, .cpu_ns = 50},
			       to = {.wall_ns = 300, .run_ns = 200, .cpu_ns = 90, .halt_wait_ns = 10};
	struct vcpu_time between = vcpu_time_between(&from, &to);

	ck_assert_uint_eq(between.wall_ns, 200);
	ck_assert_uint_eq(between.run_ns, 140);
	ck_assert_uint_eq(between.cpu_ns, 40);
	ck_assert_uint_eq(between.halt_wait_ns, 10);
	vcpu_time_add(&between, &from);
	ck_assert_uint_eq(between.wall_ns, 300);
	/* a reset between the readings */
	between = vcpu_time_between(&to, &from);
	ck_assert_uint_eq(between.wall_ns, 100);
	ck_assert_uint_eq(between.cpu_ns, 50);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vcpu_time");
	TCase *exits = tcase_create("exits"), *parts = tcase_create("parts");

	tcase_add_test(exits, a_run_loop_is_cut_at_its_exits);
	tcase_add_test(exits, what_is_no_exit_has_time_but_no_count);
	tcase_add_test(exits, a_new_beginning_forgets);
	tcase_add_test(exits, any_number_of_details_is_counted);
	tcase_add_loop_test(parts, parts_sum_to_the_wall_time, 0, sizeof(splits) / sizeof(splits[0]));
	tcase_add_test(parts, looks_tell_kernel_and_user_apart);
	tcase_add_test(parts, readings_are_subtracted_and_added);
	suite_add_tcase(suite, exits);
	suite_add_tcase(suite, parts);
	return run_suite(suite);
}
