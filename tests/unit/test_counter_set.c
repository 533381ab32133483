// SPDX-License-Identifier: BSD-2-Clause
/* Counter sets: the schedule of their overflows, on a counter that the test moves, and the deliveries, on real clocks.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "counter/counter_priv.h"
#include "lib/record/record.h"
#include "run_suite.h"

static struct counter_event parse(const char *text)
{
	struct counter_event event;
	GError *error = NULL;

	ck_assert_msg(counter_event_parse(text, &event, &error), "%s: %s", text, error ? error->message : "");
	return event;
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

/*
 * A counter with events that the test makes itself: a backend and a delivery for sets. Values and times are the test's,
 * so the schedule is exact.
 */
static struct {
	uint64_t value, running_ns, period;
	unsigned armings, overflows;
	int ring; /* memfd */
} bench;

/* An empty ring, as perf's is for a mapping of two pages. */
static void bench_ring_open(struct counter *counter)
{
	const struct perf_event_mmap_page page = {.data_offset = VPROF_RING_HEADER_BYTES,
	                                          .data_size = VPROF_RING_DATA_BYTES_MIN};

	bench.ring = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(bench.ring, VPROF_RING_HEADER_BYTES + VPROF_RING_DATA_BYTES_MIN), 0);
	ck_assert_int_eq(pwrite(bench.ring, &page, sizeof(page), 0), sizeof(page));
	counter->ring = ring_reader_open(bench.ring, NULL);
	ck_assert_ptr_nonnull(counter->ring);
}

static void bench_ring_close(struct counter *counter)
{
	ring_reader_free(counter->ring);
	close(bench.ring);
}

/* The host's kernel writes a record. */
static void bench_write(const void *record, size_t bytes)
{
	const off_t at_head = offsetof(struct perf_event_mmap_page, data_head);
	uint64_t head;

	ck_assert_int_eq(pread(bench.ring, &head, sizeof(head), at_head), sizeof(head));
	ck_assert_int_eq(pwrite(bench.ring, record, bytes, (off_t)(VPROF_RING_HEADER_BYTES + head)), (ssize_t)bytes);
	head += bytes;
	ck_assert_int_eq(pwrite(bench.ring, &head, sizeof(head), at_head), sizeof(head));
}

static void bench_throttle(bool ends, uint64_t time_ns)
{
	const struct perf_event_header sample = {PERF_RECORD_SAMPLE, 0, sizeof(sample)};
	uint64_t record[8];

	bench_write(&sample, sizeof(sample));
	bench_write(record, record_throttle_encode(&(struct record_throttle){ends, time_ns, 1}, &(struct record_id){0},
	                                           record, sizeof(record)));
}

static bool bench_open(struct counter *counter, const struct counter_delivery *delivery,
                       const struct perf_event_attr *attr, GError **error)
{
	(void)delivery;
	(void)error;
	bench.period = attr->sample_period;
	bench_ring_open(counter);
	return true;
}

static void bench_nothing(struct counter *counter)
{
	(void)counter;
}

static void bench_set_period(struct counter *counter, uint64_t period)
{
	(void)counter;
	bench.period = period;
	bench.armings++;
}

static bool bench_read(struct counter *counter, struct counter_reading *reading)
{
	(void)counter;
	*reading = (struct counter_reading){.value = bench.value, .running_ns = bench.running_ns};
	return true;
}

static const struct counter_backend_ops bench_backend_ops = {
	.open = bench_open,
	.close = bench_ring_close,
	.enable = bench_nothing,
	.set_period = bench_set_period,
	.read = bench_read,
};

static const struct counter_backend bench_events = {.name = "bench", .guest_only = true, .ops = &bench_backend_ops};
static const struct counter_backend bench_clock = {.name = "bench", .counts_time = true, .ops = &bench_backend_ops};
static const struct counter_backend bench_timer = {
	.name = "bench", .counts_time = true, .ticks_when_idle = true, .ops = &bench_backend_ops};

static bool bench_attach(struct counter_set *set, GError **error)
{
	(void)set;
	(void)error;
	return true;
}

static void bench_detach(struct counter_set *set)
{
	(void)set;
}

static bool bench_take(struct counter_set *set, bool interrupted, bool after_exit, unsigned taken[COUNTER_EVENTS_MAX])
{
	(void)set;
	(void)interrupted;
	(void)after_exit;
	taken[0] = bench.overflows;
	bench.overflows = 0;
	return taken[0] != 0;
}

static const struct counter_delivery_ops bench_delivery_ops = {
	.attach = bench_attach, .detach = bench_detach, .take = bench_take};
static const struct counter_delivery bench_delivery = {.name = "bench", .ops = &bench_delivery_ops};

static struct counter_set *bench_set(const struct counter_backend *backend, struct counter_rate rate)
{
	static const struct vcpu_port port = {.vcpu_fd = -1};
	struct counter_event event = {
		.name = "bench", .config = PERF_COUNT_HW_CPU_CYCLES, .user = true, .kernel = true, .backend = backend};

	memset(&bench, 0, sizeof(bench));
	struct counter_set *set = counter_set_open(&bench_delivery, &port, &event, 1, &rate, NULL);
	ck_assert_ptr_nonnull(set);
	return set;
}

/* The counter stands at `value`, after `running_ns`, and one overflow has come; returns its sample's period. */
static uint64_t bench_overflow_at(struct counter_set *set, uint64_t value, uint64_t running_ns)
{
	struct counter_overflow overflows[COUNTER_EVENTS_MAX] = {0};
	uint64_t counted = value - bench.value;

	bench.value = value;
	bench.running_ns = running_ns;
	bench.overflows = 1;
	ck_assert_uint_eq(counter_set_collect(set, true, false, overflows), 1);
	ck_assert_uint_eq(overflows[0].event, 0);
	ck_assert_uint_eq(overflows[0].period, counted);
	return counted;
}

/* The counter runs on to its next overflow and `late` further, at so many events a nanosecond. */
static uint64_t bench_overflow(struct counter_set *set, uint64_t late, double events_per_ns)
{
	uint64_t counted = bench.period + late;

	return bench_overflow_at(set, bench.value + counted,
	                         bench.running_ns + (uint64_t)((double)counted / events_per_ns));
}

START_TEST(periods_are_jittered_around_what_was_asked)
{
	struct counter_set *set = bench_set(&bench_events, (struct counter_rate){.period = 100000});
	uint64_t least = UINT64_MAX, most = 0, sum = 0;

	for (unsigned i = 0; i < 8000; i++) {
		uint64_t period = bench_overflow(set, 0, 1);

		least = MIN(least, period);
		most = MAX(most, period);
		sum += period;
	}
	ck_assert_uint_ge(least, 95000);
	ck_assert_uint_le(most, 105000);
	/* 1000 draws, uniform over 10 %: both ends are met but with a probability of 2 x 0.9^1000. */
	ck_assert_uint_le(least, 96000);
	ck_assert_uint_ge(most, 104000);
	/* Mean of 1000 draws with a deviation of 2887: 6.5 standard errors are 600. */
	ck_assert_uint_ge(sum / 8000, 99400);
	ck_assert_uint_le(sum / 8000, 100600);
	/* Every eighth overflow costs the system call. */
	ck_assert_uint_eq(bench.armings, 8000 / 8);
	counter_set_close(set);
}
END_TEST

START_TEST(lateness_does_not_lower_the_rate)
{
	struct counter_set *set = bench_set(&bench_clock, (struct counter_rate){.frequency_hz = 10000});

	/* Every arming starts 20 us late: without the schedule that would be 2.5 % fewer. */
	for (unsigned i = 0; i < 8000; i++)
		bench_overflow(set, i % 8 == 7 ? 20000 : 0, 1);
	ck_assert_uint_ge(bench.value / 8000, 99400);
	ck_assert_uint_le(bench.value / 8000, 100600);
	counter_set_close(set);
}
END_TEST

START_TEST(withheld_periods_are_counted_and_not_made_up_for)
{
	struct counter_statistics statistics;
	struct counter_set *set = bench_set(&bench_clock, (struct counter_rate){.frequency_hz = 10000});

	for (unsigned i = 0; i < 8; i++)
		bench_overflow(set, i == 7 ? 10 * bench.period : 0, 1);
	/* The next run is no shorter than jitter makes it. */
	ck_assert_uint_ge(bench.period, 95000);
	counter_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.overflows, 8);
	ck_assert_uint_eq(statistics.throttled, 10);
	ck_assert_uint_ge(statistics.expected, 17);
	ck_assert_uint_le(statistics.expected, 18);
	counter_set_close(set);
}
END_TEST

START_TEST(expected_overflows_have_a_cause)
{
	struct counter_statistics statistics;
	struct counter_set *set = bench_set(&bench_clock, (struct counter_rate){.frequency_hz = 10000});

	/* Each run is armed one and a half periods late: the whole one is throttled. */
	for (unsigned i = 0; i < 800; i++)
		bench_overflow(set, i % 8 == 7 ? 150000 : 0, 1);
	counter_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.overflows, 800);
	ck_assert_uint_ge(statistics.throttled, 95);
	ck_assert_uint_le(statistics.throttled, 105);
	/* The sum of 100 draws, uniform over 0.8 periods: 6.5 standard deviations are 15. */
	const uint64_t explained = statistics.overflows + statistics.throttled + statistics.late;

	ck_assert_uint_ge(explained + 15, statistics.expected);
	ck_assert_uint_le(explained, statistics.expected + 15);
	ck_assert_uint_ge(statistics.late, 35);
	counter_set_close(set);
}
END_TEST

START_TEST(frequency_finds_its_period)
{
	/* Per nanosecond, up and down again; the first guess is 1. */
	static const double rates_per_ns[] = {0.001, 0.1, 1, 4, 0.01, 2};
	struct counter_set *set = bench_set(&bench_events, (struct counter_rate){.frequency_hz = 1000});

	for (size_t i = 0; i < G_N_ELEMENTS(rates_per_ns); i++) {
		double wanted = MAX(rates_per_ns[i] * 1e6, 1000);

		for (unsigned j = 0; j < 100; j++)
			bench_overflow(set, 0, rates_per_ns[i]);
		ck_assert_double_le((double)bench.period, wanted * 1.06);
		ck_assert_double_ge((double)bench.period, wanted * 0.94);
	}
	counter_set_close(set);
}
END_TEST

/* The event stands for longer than it counts; the frequency is that of the time in which it counts. */
START_TEST(what_the_host_stops_is_told_and_says_nothing_of_the_rate)
{
	struct counter_set *set = bench_set(&bench_events, (struct counter_rate){.frequency_hz = 1000});
	struct counter_throttle throttle;

	for (unsigned i = 0; i < 100; i++)
		bench_overflow(set, 0, 4);
	const uint64_t period = bench.period;

	ck_assert(!counter_set_throttle(set, &throttle));
	/* As often as the ring has room for. */
	for (unsigned i = 0; i < 25; i++) {
		bench_throttle(false, 1000 + i);
		ck_assert(counter_set_throttle(set, &throttle));
		ck_assert_uint_eq(throttle.event, 0);
		ck_assert(!throttle.ends);
		ck_assert_uint_eq(throttle.time_ns, 1000 + i);
		ck_assert(!counter_set_throttle(set, &throttle));
		bench.running_ns += 3000000;
		bench_throttle(true, 2000 + i);
		bench_overflow(set, 0, 4);
		ck_assert(counter_set_throttle(set, &throttle));
		ck_assert(throttle.ends);
		ck_assert_uint_eq(throttle.time_ns, 2000 + i);
	}
	ck_assert_uint_ge(bench.period, period * 9 / 10);
	ck_assert_uint_le(bench.period, period * 11 / 10);
	counter_set_close(set);
}
END_TEST

START_TEST(ticks_of_a_sleeping_thread_are_no_samples)
{
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];
	struct counter_statistics statistics;
	struct counter_set *set = bench_set(&bench_timer, (struct counter_rate){.frequency_hz = 1000});

	for (unsigned i = 0; i < 50; i++) {
		bench.value += 2000; /* what waking up for the signal costs the thread */
		bench.overflows = 1;
		ck_assert_uint_eq(counter_set_collect(set, true, false, overflows), 0);
	}
	counter_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.idle, 50);
	ck_assert_uint_eq(statistics.overflows, 0);
	/* Nothing of it is forgotten: the next sample counts it. */
	bench.value += 900000;
	bench.overflows = 1;
	ck_assert_uint_eq(counter_set_collect(set, true, false, overflows), 1);
	ck_assert_uint_eq(overflows[0].period, 1000000);
	counter_set_close(set);
}
END_TEST

START_TEST(late_overflows_are_not_throttled_ones)
{
	struct counter_statistics statistics;
	struct counter_set *set = bench_set(&bench_clock, (struct counter_rate){.frequency_hz = 10000});

	/* Every other one is seen 85 % of a period late, as when an exit is handled for long. */
	for (unsigned run = 0; run < 10; run++) {
		uint64_t armed_at = bench.value, period = bench.period;

		for (unsigned i = 1; i <= 8; i++) {
			uint64_t seen_at = armed_at + i * period + period * (i % 2 ? 85 : 15) / 100;

			bench_overflow_at(set, seen_at, seen_at);
		}
	}
	counter_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.overflows, 80);
	ck_assert_uint_eq(statistics.throttled, 0);
	counter_set_close(set);
}
END_TEST

START_TEST(coalesced_overflows_are_one_sample)
{
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];
	struct counter_statistics statistics;
	struct counter_set *set = bench_set(&bench_events, (struct counter_rate){.period = 100000});

	bench.value = 3 * bench.period;
	bench.overflows = 3;
	ck_assert_uint_eq(counter_set_collect(set, false, true, overflows), 1);
	ck_assert_uint_eq(overflows[0].period, bench.value);
	counter_set_finish(set);
	counter_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.overflows, 1);
	ck_assert_uint_eq(statistics.throttled, 2);
	ck_assert_uint_eq(counter_set_collect(set, false, true, overflows), 0);
	counter_set_close(set);
}
END_TEST

START_TEST(probe_finds_a_delivery)
{
	g_autoptr(GError) error = NULL;

	for (size_t i = 0; counter_deliveries[i]; i++)
		ck_assert_ptr_eq(counter_delivery_probe(counter_deliveries[i]->name, NULL), counter_deliveries[i]);
	ck_assert_ptr_eq(counter_delivery_probe(NULL, NULL), counter_deliveries[0]);
	ck_assert_ptr_null(counter_delivery_probe("pigeon", &error));
	ck_assert_msg(strstr(error->message, "unknown delivery \"pigeon\""), "%s", error->message);
}
END_TEST

/* An old kernel: sigtrap is an unknown bit. */
static int no_sigtrap_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	if (!attr->sigtrap)
		return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
	errno = EINVAL;
	return -1;
}

START_TEST(probe_passes_over_what_does_not_work)
{
	g_autoptr(GError) error = NULL;

	counter_perf_event_open = no_sigtrap_open;
	ck_assert_str_eq(counter_delivery_probe(NULL, NULL)->name, "setsig");
	ck_assert_ptr_null(counter_delivery_probe("sigtrap", &error));
	ck_assert_msg(strstr(error->message, "sigtrap: cannot count task-clock"), "%s", error->message);
	/* Without perf, timers still show how a signal arrives. */
	counter_perf_event_open = nothing_open;
	ck_assert_ptr_nonnull(counter_delivery_probe(NULL, NULL));
}
END_TEST

START_TEST(sigtrap_leaves_events_without_the_kernel_to_setsig)
{
	struct perf_event_attr all = {0}, user = {.exclude_kernel = 1};

	counter_delivery_sigtrap.ops->prepare(&all, 3);
	ck_assert_uint_eq(all.sigtrap, 1);
	ck_assert_uint_eq(all.remove_on_exec, 1);
	ck_assert_uint_eq(all.sig_data, 3);
	counter_delivery_sigtrap.ops->prepare(&user, 3);
	ck_assert_uint_eq(user.sigtrap, 0);
}
END_TEST

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#define SET_PERIOD_NS UINT64_C(500000)
#define SET_OVERFLOWS 100u

/* In the order of the events below. */
enum { TASK_CLOCK, CPU_CLOCK, TIMER };

/* What came of one event: the number of its samples, and the sum of their periods. */
struct arrival {
	uint64_t samples, period;
};

static void arrive(struct arrival *arrivals, const struct counter_overflow *overflows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		arrivals[overflows[i].event].samples++;
		arrivals[overflows[i].event].period += overflows[i].period;
	}
}

static bool all_arrived(const struct arrival arrivals[3], unsigned samples)
{
	return arrivals[0].samples >= samples && arrivals[1].samples >= samples && arrivals[2].samples >= samples;
}

/*
 * An overflow takes at least the shortest jittered period, whatever the host does to the thread: of perf's clocks in
 * what they count, of the timer in wall time. With the signals of the two others, an event would have three times as
 * many.
 */
static void assert_own_signals(const struct arrival *arrival, unsigned event, uint64_t wall_ns)
{
	uint64_t counted = event == TIMER ? wall_ns : arrival->period;
	uint64_t most = counted / (SET_PERIOD_NS / 100 * 95) + 2; /* the last ones of two runs may come late */

	ck_assert_msg(arrival->samples <= most, "event %u: %lu samples in %lu ns", event,
	              (unsigned long)arrival->samples, (unsigned long)counted);
}

/* Two clocks and a timer at once on one thread: every signal finds its event. */
static void *three_events_run(void *data)
{
	const struct counter_delivery *delivery = data;
	const struct counter_rate rate = {.period = SET_PERIOD_NS};
	volatile uint8_t immediate_exit = 0;
	const struct vcpu_port port = {.vcpu_fd = -1, .immediate_exit = &immediate_exit};
	struct counter_event events[3] = {parse("task-clock"), parse("cpu-clock"), parse("timer")};
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];
	struct arrival arrivals[3] = {0};
	uint64_t begin = clock_of(CLOCK_MONOTONIC);
	struct counter_set *set = counter_set_open(delivery, &port, events, 3, &rate, NULL);

	ck_assert_ptr_nonnull(set);
	while (!all_arrived(arrivals, SET_OVERFLOWS))
		arrive(arrivals, overflows, counter_set_collect(set, true, false, overflows));
	counter_set_close(set);
	for (unsigned i = 0; i < 3; i++)
		assert_own_signals(&arrivals[i], i, clock_of(CLOCK_MONOTONIC) - begin);
	return NULL;
}

START_TEST(signals_find_their_event)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, three_events_run, (void *)(uintptr_t)counter_deliveries[_i]), 0);
	pthread_join(thread, NULL);
}
END_TEST

/* Collects from the sets that are open until each has that many samples. */
static void collect_until(struct counter_set *const sets[3], struct arrival arrivals[3], unsigned samples)
{
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];

	while (!all_arrived(arrivals, samples)) {
		for (unsigned i = 0; i < 3; i++) {
			if (sets[i])
				arrive(&arrivals[i], overflows, counter_set_collect(sets[i], true, false, overflows));
			else
				arrivals[i].samples = MAX(arrivals[i].samples, samples);
		}
	}
}

/* Sets that come and go on one thread do not disturb each other. */
static void *three_sets_run(void *data)
{
	static const char *const names[3] = {"task-clock", "cpu-clock", "timer"};
	const struct counter_delivery *delivery = data;
	const struct counter_rate rate = {.period = SET_PERIOD_NS};
	volatile uint8_t immediate_exit = 0;
	const struct vcpu_port port = {.vcpu_fd = -1, .immediate_exit = &immediate_exit};
	struct counter_set *sets[3];
	struct arrival arrivals[3] = {0};
	uint64_t begin = clock_of(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < 3; i++) {
		struct counter_event event = parse(names[i]);

		sets[i] = counter_set_open(delivery, &port, &event, 1, &rate, NULL);
		ck_assert_ptr_nonnull(sets[i]);
	}
	collect_until(sets, arrivals, SET_OVERFLOWS);
	assert_own_signals(&arrivals[CPU_CLOCK], CPU_CLOCK, clock_of(CLOCK_MONOTONIC) - begin);
	counter_set_close(g_steal_pointer(&sets[CPU_CLOCK]));
	collect_until(sets, arrivals, 2 * SET_OVERFLOWS);
	for (unsigned i = 0; i < 3; i += 2) {
		counter_set_close(sets[i]);
		assert_own_signals(&arrivals[i], i, clock_of(CLOCK_MONOTONIC) - begin);
	}
	return NULL;
}

START_TEST(signals_find_their_set)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, three_sets_run, (void *)(uintptr_t)counter_deliveries[_i]), 0);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(meters_count_without_overflows)
{
	static const char *const names[] = {"task-clock", "timer"};
	struct counter_event event = parse(names[_i]);
	struct counter_meter *meter = counter_meter_open(&event, NULL);
	struct counter_reading before, after;

	/* Time that a hypervisor steals from the host is in perf's clock, and not in the thread's. */
	clockid_t longest = _i == 0 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;

	ck_assert_ptr_nonnull(meter);
	uint64_t begin = clock_of(longest);
	ck_assert(counter_meter_read(meter, &before));
	uint64_t read = clock_of(CLOCK_THREAD_CPUTIME_ID), end = read;
	while (end < read + 20000000)
		end = clock_of(CLOCK_THREAD_CPUTIME_ID);
	ck_assert(counter_meter_read(meter, &after));
	uint64_t least = (end - read) / 100, most = (clock_of(longest) - begin) / 100;
	/* perf's clock stands still during some of its own work. */
	ck_assert_uint_ge(after.value - before.value, least * 98);
	ck_assert_uint_le(after.value - before.value, most * 102);
	/* The kernel reads its own clocks one after the other. */
	ck_assert_uint_ge(after.running_ns - before.running_ns, least * 95);
	counter_meter_close(meter);
}
END_TEST

START_TEST(meters_refuse_what_a_clock_cannot_tell_apart)
{
	static const char *const names[] = {"task-clock:u", "timer:k"};
	struct counter_event event = parse(names[_i]);
	g_autoptr(GError) error = NULL;

	ck_assert(!counter_meter_check(&event, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE));
	ck_assert_msg(strstr(error->message, "whatever the guest's mode"), "%s", error->message);
}
END_TEST

START_TEST(failed_open_leaves_nothing)
{
	const struct counter_rate rate = {.period = SET_PERIOD_NS};
	const struct vcpu_port port = {.vcpu_fd = -1};
	struct counter_event events[2] = {parse("timer"), parse("task-clock")};
	g_autoptr(GError) error = NULL;

	counter_perf_event_open = nothing_open;
	ck_assert_ptr_null(counter_set_open(&counter_delivery_setsig, &port, events, 2, &rate, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE));
	ck_assert_msg(strstr(error->message, "cannot count task-clock: not permitted"), "%s", error->message);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("counter_set");
	TCase *tc = tcase_create("counter_set");

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, periods_are_jittered_around_what_was_asked);
	tcase_add_test(tc, lateness_does_not_lower_the_rate);
	tcase_add_test(tc, withheld_periods_are_counted_and_not_made_up_for);
	tcase_add_test(tc, expected_overflows_have_a_cause);
	tcase_add_test(tc, frequency_finds_its_period);
	tcase_add_test(tc, what_the_host_stops_is_told_and_says_nothing_of_the_rate);
	tcase_add_test(tc, ticks_of_a_sleeping_thread_are_no_samples);
	tcase_add_test(tc, late_overflows_are_not_throttled_ones);
	tcase_add_test(tc, coalesced_overflows_are_one_sample);
	tcase_add_test(tc, probe_finds_a_delivery);
	tcase_add_test(tc, probe_passes_over_what_does_not_work);
	tcase_add_test(tc, sigtrap_leaves_events_without_the_kernel_to_setsig);
	tcase_add_loop_test(tc, signals_find_their_event, 0, 3);
	tcase_add_loop_test(tc, signals_find_their_set, 0, 3);
	tcase_add_loop_test(tc, meters_count_without_overflows, 0, 2);
	tcase_add_loop_test(tc, meters_refuse_what_a_clock_cannot_tell_apart, 0, 2);
	tcase_add_test(tc, failed_open_leaves_nothing);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
