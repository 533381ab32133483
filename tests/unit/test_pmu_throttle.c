// SPDX-License-Identifier: BSD-2-Clause
/* The share of a guest's time that its PMU's interrupts take, with a clock, a guest and overflows that the test makes.
 */
#include <check.h>

#include "pmu/x86/throttle.h"
#include "run_suite.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define ALARM_NS_MIN (20 * US) /* the host's timer is no finer */
#define RUN_NS (20000 * MS)

/* A guest whose interrupts take `handler_ns`, and whose counter overflows each `period_ns` of its time. */
struct machine {
	struct pmu_throttle throttle;
	uint64_t handler_ns, period_ns;
	bool says_nearly; /* writes to its PMU when four fifths of an interrupt are over */
	uint64_t now_ns, overflow_ns, began_ns, ends_ns;
	bool waits;
	uint64_t interrupts, handled_ns;
};

static bool handles(const struct machine *machine)
{
	return machine->now_ns < machine->ends_ns;
}

static uint64_t nearly_ns(const struct machine *machine)
{
	return machine->began_ns + machine->handler_ns / 5 * 4;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Runs to the next exit: an overflow, the guest's own write, or the alarm. */
static void run(struct machine *machine)
{
	uint64_t in_ns = pmu_throttle_in_ns(&machine->throttle, machine->now_ns, machine->waits);
	uint64_t until = machine->overflow_ns;

	if (in_ns != UINT64_MAX)
		until = earlier(until, machine->now_ns + (in_ns < ALARM_NS_MIN ? ALARM_NS_MIN : in_ns));
	if (machine->says_nearly && machine->now_ns < nearly_ns(machine))
		until = earlier(until, nearly_ns(machine));
	machine->now_ns = until;
	if (machine->says_nearly && handles(machine) && until == nearly_ns(machine))
		pmu_throttle_nearly(&machine->throttle, until);
}

static void deliver(struct machine *machine)
{
	pmu_throttle_delivered(&machine->throttle, machine->now_ns);
	machine->waits = false;
	machine->interrupts++;
	machine->handled_ns += machine->handler_ns;
	machine->began_ns = machine->now_ns;
	machine->ends_ns = machine->now_ns + machine->handler_ns;
}

static struct machine work(uint64_t handler_ns, uint64_t period_ns, bool says_nearly)
{
	struct machine machine = {
		.handler_ns = handler_ns, .period_ns = period_ns, .says_nearly = says_nearly, .overflow_ns = period_ns};

	while (machine.now_ns < RUN_NS) {
		run(&machine);
		if (machine.now_ns >= machine.overflow_ns) {
			machine.waits = true;
			machine.overflow_ns = machine.now_ns + machine.period_ns;
		}
		if (pmu_throttle_looks(&machine.throttle, machine.now_ns))
			pmu_throttle_found(&machine.throttle, machine.now_ns, handles(&machine));
		if (machine.waits && pmu_throttle_open(&machine.throttle, machine.now_ns))
			deliver(&machine);
	}
	return machine;
}

/* From a fast processor to one that emulates less than a million instructions a second. */
static const uint64_t handlers_ns[] = {10 * US, 60 * US, 500 * US, 2 * MS, 7 * MS, 40 * MS, 640 * MS};
static const uint64_t periods_ns[] = {20 * US, 100 * US, MS, 3 * MS, 10 * MS, 100 * MS};

START_TEST(half_of_the_time_is_the_guests_at_any_rate_and_speed)
{
	for (unsigned i = 0; i < sizeof(handlers_ns) / sizeof(handlers_ns[0]); i++) {
		for (unsigned j = 0; j < sizeof(periods_ns) / sizeof(periods_ns[0]); j++) {
			struct machine machine = work(handlers_ns[i], periods_ns[j], _i == 1);
			uint64_t not_over = handles(&machine) ? machine.handler_ns : 0;

			ck_assert_uint_gt(machine.interrupts, 0);
			ck_assert_msg((machine.handled_ns - not_over) * 2 <= RUN_NS, "%lu interrupts of %lu ns",
			              (unsigned long)machine.interrupts, (unsigned long)machine.handler_ns);
		}
	}
}
END_TEST

START_TEST(interrupts_that_leave_half_of_the_time_are_all_delivered)
{
	for (unsigned i = 1; i < 6; i++) {
		/* A look is late by a quarter of the interrupt, and counts as its end. */
		uint64_t period_ns = handlers_ns[i] / 2 * 5 + 100 * US;
		struct machine machine = work(handlers_ns[i], period_ns, true);
		ck_assert_uint_ge(machine.interrupts + 1, RUN_NS / period_ns);
	}
}
END_TEST

START_TEST(what_is_too_often_takes_two_fifths_at_least)
{
	for (unsigned i = 1; i < 6; i++) {
		struct machine machine = work(handlers_ns[i], 20 * US, true);

		ck_assert_uint_ge(machine.handled_ns * 10, RUN_NS * (i == 1 ? 3 : 4));
	}
}
END_TEST

START_TEST(no_alarm_without_an_interrupt)
{
	struct pmu_throttle throttle = {0};

	ck_assert(pmu_throttle_open(&throttle, 0));
	ck_assert_uint_eq(pmu_throttle_in_ns(&throttle, 5 * MS, false), UINT64_MAX);
	pmu_throttle_delivered(&throttle, 5 * MS);
	ck_assert(!pmu_throttle_open(&throttle, 100 * MS));
	ck_assert_uint_ne(pmu_throttle_in_ns(&throttle, 5 * MS, false), UINT64_MAX);
	pmu_throttle_found(&throttle, 6 * MS, false);
	ck_assert_uint_eq(pmu_throttle_in_ns(&throttle, 6 * MS, false), UINT64_MAX);
	ck_assert_uint_eq(pmu_throttle_in_ns(&throttle, 6 * MS, true), MS);
	ck_assert(!pmu_throttle_open(&throttle, 7 * MS - 1));
	ck_assert(pmu_throttle_open(&throttle, 7 * MS));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmu_throttle");
	TCase *test = tcase_create("pmu_throttle");
	tcase_set_timeout(test, 60);
	tcase_add_loop_test(test, half_of_the_time_is_the_guests_at_any_rate_and_speed, 0, 2);
	tcase_add_test(test, interrupts_that_leave_half_of_the_time_are_all_delivered);
	tcase_add_test(test, what_is_too_often_takes_two_fifths_at_least);
	tcase_add_test(test, no_alarm_without_an_interrupt);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
