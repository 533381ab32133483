// SPDX-License-Identifier: BSD-2-Clause
/* What drives an emulated PMU on the host: the clock of the thread, and perf events in the place of the host's PMU. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counter/counter_priv.h"
#include "pmu/x86/host.h"
#include "run_suite.h"

#define KHZ 2000000u /* cycles per ms */
#define CYCLES_PER_NS 2
#define NS_PER_MS UINT64_C(1000000)

static volatile sig_atomic_t alarms;
static struct pmu_host_events events;
static struct pmu_host host;
static const struct pmu_counting both = {.event = PMU_EVENT_CYCLES, .user = true, .kernel = true};
static const struct pmu_counting user = {.event = PMU_EVENT_REF_CYCLES, .user = true};
static const struct pmu_counting kernel = {.event = PMU_EVENT_CYCLES, .kernel = true};

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static void set_up(void)
{
	GError *error = NULL;

	events = (struct pmu_host_events){.all = 5};
	pmu_host_init(&host, &events, KHZ);
	signal(SIGUSR1, on_alarm);
	alarms = 0;
	ck_assert_msg(pmu_host_attach(&host, SIGUSR1, &error), "%s", error ? error->message : "");
}

static void tear_down(void)
{
	pmu_host_detach(&host);
}

static uint64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return time_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void burn(uint64_t ns)
{
	uint64_t begin = cpu_ns();

	while (cpu_ns() - begin < ns)
		;
}

static void burn_until_alarm(void)
{
	uint64_t begin = cpu_ns();

	while (alarms == 0 && cpu_ns() - begin < 10000 * NS_PER_MS)
		;
	ck_assert_int_gt(alarms, 0);
	alarms = 0;
}

static bool start(unsigned counter, const struct pmu_counting *what, uint64_t left)
{
	return host.source.ops->start(&host.source, counter, what, left);
}

static uint64_t take(unsigned counter)
{
	return host.source.ops->take(&host.source, counter);
}

START_TEST(guest_time_is_cycles)
{
	ck_assert(start(0, &both, UINT64_C(1) << 48));
	uint64_t begin = cpu_ns();
	pmu_host_enter(&host, UINT64_MAX);
	burn(3 * NS_PER_MS);
	pmu_host_left(&host, false, false);
	uint64_t most = (cpu_ns() - begin) * CYCLES_PER_NS, counted = take(0);
	ck_assert_uint_ge(counted, 3 * NS_PER_MS * CYCLES_PER_NS);
	ck_assert_uint_le(counted, most);
	burn(NS_PER_MS); /* outside the guest */
	ck_assert_uint_eq(take(0), 0);
	ck_assert(!pmu_host_due(&host, true));
}
END_TEST

START_TEST(the_alarm_comes_at_the_overflow)
{
	ck_assert(start(3, &both, 5 * NS_PER_MS * CYCLES_PER_NS));
	uint64_t begin = cpu_ns();
	do {
		pmu_host_enter(&host, UINT64_MAX);
		burn_until_alarm();
		pmu_host_left(&host, true, true);
	} while (!pmu_host_due(&host, true));
	ck_assert_uint_ge(cpu_ns() - begin, 5 * NS_PER_MS);
	ck_assert_uint_ge(take(3), 5 * NS_PER_MS * CYCLES_PER_NS);
	host.source.ops->aim(&host.source, 3, UINT64_C(1) << 48);
	ck_assert(!pmu_host_due(&host, true));
}
END_TEST

START_TEST(modes_get_the_time_of_their_ticks)
{
	ck_assert(start(0, &user, UINT64_C(1) << 48));
	ck_assert(start(1, &kernel, UINT64_C(1) << 48));
	ck_assert(start(2, &both, UINT64_C(1) << 48));
	uint64_t split = 0;
	for (unsigned mode = 0; mode < 2; mode++) {
		for (unsigned i = 0; i < 10; i++) {
			pmu_host_enter(&host, UINT64_MAX);
			burn_until_alarm();
			pmu_host_left(&host, true, mode == 0);
		}
		uint64_t its_own = take(mode);
		ck_assert_uint_gt(its_own, 0);
		ck_assert_uint_eq(take(!mode), 0);
		split += its_own;
	}
	uint64_t all = take(2);
	ck_assert_uint_le(split, all + 1); /* each is rounded down */
	ck_assert_uint_ge(split, all / 2);
}
END_TEST

START_TEST(exits_of_the_guest_are_no_ticks)
{
	ck_assert(start(0, &user, UINT64_C(1) << 48));
	pmu_host_enter(&host, UINT64_MAX);
	burn(2 * NS_PER_MS);
	pmu_host_left(&host, false, true);
	ck_assert_uint_eq(take(0), 0);
}
END_TEST

START_TEST(the_clock_counts_nothing_but_cycles)
{
	struct pmu_counting what = {.user = true, .kernel = true};

	for (unsigned event = 0; event <= PMU_EVENT_RAW; event++) {
		what.event = (enum pmu_event)event;
		ck_assert_int_eq(start(0, &what, 100), event == PMU_EVENT_CYCLES || event == PMU_EVENT_REF_CYCLES);
	}
}
END_TEST

/* The thread's clock instead of the PMU's event, where a spinning test can be interrupted. */
static struct perf_event_attr asked;
static unsigned opened;

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	struct perf_event_attr clock = *attr;

	asked = *attr;
	opened++;
	clock.type = PERF_TYPE_SOFTWARE;
	clock.config = PERF_COUNT_SW_TASK_CLOCK;
	clock.exclude_host = clock.exclude_user = 0;
	clock.exclude_kernel = 1;
	return (int)syscall(SYS_perf_event_open, &clock, pid, cpu, group, flags);
}

static int no_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	(void)group;
	(void)flags;
	errno = ENOENT;
	return -1;
}

static const struct pmu_counting instructions = {.event = PMU_EVENT_INSTRUCTIONS, .user = true};

static void have_a_pmu(void)
{
	counter_perf_event_open = fake_open;
	opened = 0;
	events.hardware = 1u << PMU_EVENT_INSTRUCTIONS;
	events.event[PMU_EVENT_INSTRUCTIONS] = (struct counter_event){.name = "instructions",
	                                                              .type = PERF_TYPE_HARDWARE,
	                                                              .config = PERF_COUNT_HW_INSTRUCTIONS,
	                                                              .backend = &counter_backend_hardware};
}

START_TEST(hardware_counts_in_the_guest_only)
{
	have_a_pmu();
	uint64_t begin = time_ns(CLOCK_MONOTONIC);
	ck_assert(start(2, &instructions, 4 * NS_PER_MS));
	ck_assert_uint_eq(asked.type, PERF_TYPE_HARDWARE);
	ck_assert_uint_eq(asked.config, PERF_COUNT_HW_INSTRUCTIONS);
	ck_assert(asked.exclude_host && asked.exclude_kernel && !asked.exclude_user);
	burn_until_alarm();
	ck_assert(pmu_host_due(&host, true));
	ck_assert(!pmu_host_due(&host, false));
	uint64_t counted = take(2);
	ck_assert_uint_ge(counted, 4 * NS_PER_MS);
	host.source.ops->stop(&host.source, 2);
	uint64_t last = take(2);
	/* perf's clock runs on in time that a hypervisor steals from the host; the thread's does not. */
	ck_assert_uint_le(counted + last, time_ns(CLOCK_MONOTONIC) - begin);
	burn(NS_PER_MS);
	ck_assert_uint_eq(take(2), 0);
}
END_TEST

START_TEST(hardware_stays_open_for_the_same_event)
{
	struct pmu_counting in_kernel = instructions;

	in_kernel.kernel = true;
	have_a_pmu();
	for (unsigned i = 0; i < 5; i++) {
		ck_assert(start(0, &instructions, UINT64_C(1) << 48));
		host.source.ops->stop(&host.source, 0);
	}
	ck_assert_uint_eq(opened, 1);
	ck_assert(start(0, &in_kernel, UINT64_C(1) << 48));
	ck_assert_uint_eq(opened, 2);
	ck_assert(!asked.exclude_kernel);
}
END_TEST

START_TEST(hardware_that_refuses_counts_nothing)
{
	have_a_pmu();
	counter_perf_event_open = no_open;
	ck_assert(!start(0, &instructions, 100));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmu_host");
	TCase *test = tcase_create("pmu_host");
	tcase_set_timeout(test, 60);
	tcase_add_checked_fixture(test, set_up, tear_down);
	tcase_add_test(test, guest_time_is_cycles);
	tcase_add_test(test, the_alarm_comes_at_the_overflow);
	tcase_add_test(test, modes_get_the_time_of_their_ticks);
	tcase_add_test(test, exits_of_the_guest_are_no_ticks);
	tcase_add_test(test, the_clock_counts_nothing_but_cycles);
	tcase_add_test(test, hardware_counts_in_the_guest_only);
	tcase_add_test(test, hardware_stays_open_for_the_same_event);
	tcase_add_test(test, hardware_that_refuses_counts_nothing);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
