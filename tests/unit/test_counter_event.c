// SPDX-License-Identifier: BSD-2-Clause
/* Event names, rates and attributes. The PMU is a fake: perf_event_open is ours here. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vprof/recording.h>

#include "counter/counter_priv.h"
#include "run_suite.h"

/* What the fake PMU was asked for, and what it answers: an errno, or 0 and a descriptor of nothing. */
static struct perf_event_attr asked;
static int answer;

static int fake_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	ck_assert_int_eq(pid, 0);
	ck_assert_int_eq(cpu, -1);
	ck_assert_int_eq(group, -1);
	ck_assert_uint_eq(flags, PERF_FLAG_FD_CLOEXEC);
	asked = *attr;
	if (answer == 0)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	errno = answer;
	return -1;
}

/* Answers for events of the hardware as a host without a PMU does, and passes the clocks on. */
static int no_pmu_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	if (attr->type == PERF_TYPE_SOFTWARE)
		return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
	errno = ENOENT;
	return -1;
}

static int nothing_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	(void)attr;
	(void)pid;
	(void)cpu;
	(void)group;
	(void)flags;
	errno = EACCES;
	return -1;
}

static void fake_pmu(int errnum)
{
	answer = errnum;
	counter_perf_event_open = fake_open;
}

static struct counter_event parse(const char *text)
{
	struct counter_event event;
	GError *error = NULL;

	ck_assert_msg(counter_event_parse(text, &event, &error), "%s: %s", text, error ? error->message : "");
	return event;
}

static const struct name_case {
	const char *text;
	const struct counter_backend *backend;
	uint32_t type;
	uint64_t config;
	bool user, kernel;
} names[] = {
	{"cycles", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, true},
	{"cycles:u", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, false},
	{"cycles:k", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, true},
	{"cycles:uk", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, true},
	{"cycles:ku", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, true},
	{"instructions", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, true},
	{"ref-cycles", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, true, true},
	{"branches", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, true, true},
	{"branch-misses", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, true, true},
	{"cache-references", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, true, true},
	{"cache-misses", &counter_backend_hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, true, true},
	{"r01c2", &counter_backend_hardware, PERF_TYPE_RAW, 0x1c2, true, true},
	{"rC0:u", &counter_backend_hardware, PERF_TYPE_RAW, 0xc0, true, false},
	{"rffffffffffffffff", &counter_backend_hardware, PERF_TYPE_RAW, UINT64_MAX, true, true},
	{"task-clock", &counter_backend_clock, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true, true},
	{"cpu-clock:k", &counter_backend_clock, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, true},
	{"timer", &counter_backend_timer, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true, true},
	{"steps:k", &counter_backend_step, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, true},
};

START_TEST(names_are_understood)
{
	const struct name_case *want = &names[_i];

	fake_pmu(0);
	struct counter_event event = parse(want->text);

	ck_assert_str_eq(event.name, want->text);
	ck_assert_ptr_eq(event.backend, want->backend);
	ck_assert_uint_eq(event.type, want->type);
	ck_assert_uint_eq(event.config, want->config);
	ck_assert(event.user == want->user);
	ck_assert(event.kernel == want->kernel);
}
END_TEST

static const struct {
	const char *text, *says;
} strangers[] = {
	{"cycle", "near names: cycles"},
	{"cycels", "near names: cycles"},
	{"instruction", "near names: instructions"},
	{"branch", "near names: branches, branch-misses"},
	{"clock", "near names: task-clock, cpu-clock"},
	{"tmer", "near names: timer"},
	{"zebra", "known are cycles, instructions"},
	{"", "known are cycles"},
	{"r", "known are cycles"},
	{"rxyz", "known are cycles"},
	{"r0x1c2", "rNNN"},
	{"r1ffffffffffffffff", "rNNN"},
	{"cycles:", "unknown modifier \":\""},
	{"cycles:x", "unknown modifier \":x\""},
	{"cycles:uu", "unknown modifier \":uu\""},
	{"cycles:u:k", "unknown modifier \":u:k\""},
	{"cycles:pp", "guest user"},
	{"a-name-that-is-so-long-that-no-event-could-ever-have-one-like-it-in-any-pmu", "at most 63 bytes"},
};

START_TEST(strangers_are_refused)
{
	struct counter_event event = {.config = 77};
	g_autoptr(GError) error = NULL;

	fake_pmu(0);
	ck_assert(!counter_event_parse(strangers[_i].text, &event, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_UNKNOWN_EVENT));
	ck_assert_msg(strstr(error->message, strangers[_i].says), "%s", error->message);
	ck_assert_uint_eq(event.config, 77);
}
END_TEST

START_TEST(every_name_has_a_summary)
{
	size_t n = 0;

	fake_pmu(0);
	for (const char *const *name = counter_event_names(); *name; name++, n++) {
		parse(*name);
		ck_assert_ptr_nonnull(counter_event_summary(*name));
	}
	ck_assert_uint_eq(n, 11);
	ck_assert_ptr_null(counter_event_summary("zebra"));
}
END_TEST

static const struct {
	int errnum;
	const char *says;
} refusals[] = {
	{ENOENT, "no PMU that counts it; take task-clock"},
	{EOPNOTSUPP, "enable_mediated_pmu"},
	{EACCES, "sysctl kernel.perf_event_paranoid=1"},
	{EPERM, "CAP_PERFMON"},
	{EBUSY, "in exclusive use"},
	{EMFILE, "ulimit -n"},
	{EINVAL, "refuses it"},
	{ENOSYS, "no perf events; take timer"},
	{ENOMEM, "Cannot allocate memory"},
};

START_TEST(refusals_say_what_to_do)
{
	struct counter_event event;
	g_autoptr(GError) error = NULL;

	fake_pmu(refusals[_i].errnum);
	ck_assert(!counter_event_parse("cycles", &event, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE));
	ck_assert_msg(strstr(error->message, "cannot count cycles: "), "%s", error->message);
	ck_assert_msg(strstr(error->message, refusals[_i].says), "%s", error->message);
}
END_TEST

START_TEST(default_is_the_best_there_is)
{
	struct counter_event event;
	const char *why;

	fake_pmu(0);
	counter_event_default(&event, &why);
	ck_assert_str_eq(event.name, "cycles");

	counter_perf_event_open = no_pmu_open;
	counter_event_default(&event, &why);
	ck_assert_str_eq(event.name, "task-clock");
	ck_assert_msg(strstr(why, "task-clock: cannot count cycles: this host has no PMU"), "%s", why);

	counter_perf_event_open = nothing_open;
	counter_event_default(&event, &why);
	ck_assert_str_eq(event.name, "timer");
	ck_assert_msg(strstr(why, "perf_event_paranoid"), "%s", why);
}
END_TEST

/* Everything an attr says, so that a bit more or less is a failure. */
static void assert_attr(const char *text, uint64_t sample_period, bool exclude_host, bool exclude_user,
                        bool exclude_kernel)
{
	const struct counter_rate rate = {.frequency_hz = 1000};
	struct counter_event event = parse(text);
	struct perf_event_attr attr,
		want = {
			.type = event.type,
			.size = 128,
			.config = event.config,
			.sample_period = sample_period,
			.sample_type = VPROF_SAMPLE_TYPE,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
			.disabled = 1,
			.sample_id_all = 1,
			.wakeup_events = 1,
			.use_clockid = 1,
			.clockid = CLOCK_MONOTONIC,
			.exclude_host = exclude_host,
			.exclude_user = exclude_user,
			.exclude_kernel = exclude_kernel,
		};

	counter_event_attr(&event, &rate, &attr);
	ck_assert_msg(memcmp(&attr, &want, sizeof(attr)) == 0, "%s", text);
	ck_assert_uint_eq(attr.precise_ip, 0);
}

START_TEST(attributes_are_exact)
{
	fake_pmu(0);
	assert_attr("cycles", 1000000, true, false, false);
	assert_attr("cycles:u", 1000000, true, false, true);
	assert_attr("cycles:k", 1000000, true, true, false);
	assert_attr("instructions:uk", 1000000, true, false, false);
	assert_attr("branch-misses", 1000, true, false, false);
	assert_attr("r01c2:k", 1000, true, true, false);
	/* A clock would exclude by the host's mode: never. */
	assert_attr("task-clock", 1000000, false, false, false);
	assert_attr("task-clock:u", 1000000, false, false, false);
	assert_attr("cpu-clock:k", 1000000, false, false, false);
	assert_attr("timer", 1000000, false, false, false);
}
END_TEST

START_TEST(period_is_taken_as_it_is)
{
	const struct counter_rate rate = {.period = 1234567};
	struct perf_event_attr attr;

	fake_pmu(0);
	struct counter_event event = parse("instructions");
	counter_event_attr(&event, &rate, &attr);
	ck_assert_uint_eq(attr.sample_period, 1234567);
	ck_assert_uint_eq(attr.freq, 0);
}
END_TEST

START_TEST(probe_asks_for_what_is_opened)
{
	const struct counter_rate rate = {.frequency_hz = 1};
	struct perf_event_attr attr;

	fake_pmu(0);
	struct counter_event event = parse("cycles:u");
	counter_event_attr(&event, &rate, &attr);
	ck_assert_mem_eq(&asked, &attr, sizeof(attr));
}
END_TEST

static const struct {
	const char *event;
	struct counter_rate rate;
	const char *says; /* NULL: right */
} rates[] = {
	{"cycles", {.frequency_hz = 1}, NULL},
	{"cycles", {.frequency_hz = 0, .period = 0}, "needs a frequency (1 to 50000 Hz) or a period"},
	{"cycles", {.frequency_hz = 999, .period = 5000}, "and not both"},
	{"timer", {.frequency_hz = 50000}, NULL},
	{"timer", {.frequency_hz = 50001}, "1 to 50000 Hz"},
	{"timer", {.frequency_hz = UINT32_MAX}, "4294967295 Hz"},
	{"steps", {.period = 1}, NULL},
	{"steps", {.period = 2}, "no period but 1"},
	{"steps", {.frequency_hz = 999}, "no frequency"},
	{"task-clock", {.period = 20000}, NULL},
	{"task-clock", {.period = 19999}, "20000 to 72057594037927936 ns"},
	{"cycles", {.period = 1000}, NULL},
	{"cycles", {.period = 999}, "1000 to 72057594037927936"},
	{"cycles", {.period = UINT64_C(1) << 56}, NULL},
	{"cycles", {.period = (UINT64_C(1) << 56) + 1}, "out of range"},
	{"cycles", {.period = UINT64_MAX}, "out of range"},
};

START_TEST(rates_are_checked)
{
	g_autoptr(GError) error = NULL;

	fake_pmu(0);
	struct counter_event event = parse(rates[_i].event);
	bool right = counter_rate_check(&rates[_i].rate, &event, &error);

	ck_assert(right == (!rates[_i].says));
	if (right)
		return;
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_RANGE));
	ck_assert_msg(strstr(error->message, rates[_i].says), "%s", error->message);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("counter_event");
	TCase *tc = tcase_create("counter_event");

	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, names_are_understood, 0, G_N_ELEMENTS(names));
	tcase_add_loop_test(tc, strangers_are_refused, 0, G_N_ELEMENTS(strangers));
	tcase_add_test(tc, every_name_has_a_summary);
	tcase_add_loop_test(tc, refusals_say_what_to_do, 0, G_N_ELEMENTS(refusals));
	tcase_add_test(tc, default_is_the_best_there_is);
	tcase_add_test(tc, attributes_are_exact);
	tcase_add_test(tc, period_is_taken_as_it_is);
	tcase_add_test(tc, probe_asks_for_what_is_opened);
	tcase_add_loop_test(tc, rates_are_checked, 0, G_N_ELEMENTS(rates));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
