// SPDX-License-Identifier: BSD-2-Clause
/* Sessions on a fake guest, with the host's real clocks and signals, read back by the real ring reader. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <vprof/exit.h>
#include <vprof/ring.h>

#include "fake_guest.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"
#include "sample/session.h"

#define MS UINT64_C(1000000)
#define EXIT_IP vprof_exit_ip(2, 0x3f8)
/*
 * Standard deviations for shares: a false alarm in 5e10 assertions. Samples may be less independent than that where
 * the period and the turns of the fake guest meet, never more spread.
 */
#define SIGMAS 6.5

static struct fake_guest fake;
static struct session *session;
static struct fake_span session_begin[FAKE_VCPUS_MAX];

static void guest_make(unsigned vcpus)
{
	fake_guest_init(&fake, vcpus);
	session = session_new(&fake.guest, NULL);
	ck_assert_ptr_nonnull(session);
	fake_guest_start(&fake);
}

static void guest_unmake(void)
{
	fake_guest_end(&fake);
	session_free(session);
}

static struct session_config config_make(const char *event, uint32_t frequency_hz)
{
	struct session_config config = {.n_events = 1, .rate.frequency_hz = frequency_hz};
	GError *error = NULL;

	ck_assert_msg(counter_event_parse(event, &config.events[0], &error), "%s", error ? error->message : "");
	return config;
}

static void session_start_ok(const struct session_config *config)
{
	GError *error = NULL;

	for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++)
		session_begin[vcpu] = fake_span_so_far(&fake, vcpu);
	ck_assert_msg(session_start(session, config, &error), "%s", error ? error->message : "");
}

/* How long the vCPU ran in the session, which has stopped. */
static struct fake_span session_span(unsigned vcpu)
{
	return fake_span_since(&fake, vcpu, &session_begin[vcpu]);
}

/* What a ring held. */
struct tally {
	uint64_t kernel, user, hypervisor, period, lost, lost_samples, first_period;
};

static void tally_sample(struct tally *tally, const struct perf_event_header *record, size_t bytes, unsigned vcpu)
{
	struct record_sample sample;

	ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
	ck_assert_uint_eq(sample.id, session_event_id(0, vcpu));
	ck_assert_uint_eq(sample.cpu, vcpu);
	ck_assert_uint_ne(sample.time_ns, 0);
	ck_assert_uint_ne(sample.period, 0);
	if (tally->kernel + tally->user + tally->hypervisor == 0)
		tally->first_period = sample.period;
	tally->period += sample.period;
	switch (sample.misc) {
	case PERF_RECORD_MISC_KERNEL:
		ck_assert_uint_eq(sample.ip, FAKE_KERNEL_RIP);
		tally->kernel++;
		break;
	case PERF_RECORD_MISC_USER:
		ck_assert_uint_eq(sample.ip, FAKE_USER_RIP);
		tally->user++;
		break;
	default:
		ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_HYPERVISOR);
		ck_assert_uint_eq(sample.ip, EXIT_IP);
		tally->hypervisor++;
	}
}

static void tally_drain(struct tally *tally, struct ring_reader *reader, unsigned vcpu)
{
	const struct perf_event_header *record;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes))) {
		if (record->type == PERF_RECORD_LOST)
			tally->lost += ((const uint64_t *)(record + 1))[1];
		else if (record->type == PERF_RECORD_LOST_SAMPLES)
			tally->lost_samples += ((const uint64_t *)(record + 1))[0];
		else
			tally_sample(tally, record, bytes, vcpu);
	}
	ck_assert(!ring_reader_corrupt(reader));
	ring_reader_release(reader);
}

static struct tally tally_ring(unsigned vcpu)
{
	struct tally tally = {0};
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, vcpu)), NULL);

	ck_assert_ptr_nonnull(reader);
	tally_drain(&tally, reader, vcpu);
	ring_reader_free(reader);
	return tally;
}

static struct session_statistics statistics(unsigned vcpu)
{
	struct session_statistics figures;

	session_statistics_read(session, vcpu, &figures);
	/* Nothing is lost without a name. */
	ck_assert_uint_eq(figures.overflow, figures.sample + figures.dropbuf_sample + figures.filtered + figures.quirk);
	return figures;
}

static void assert_share(uint64_t hits, uint64_t of, double share)
{
	double spread = SIGMAS * sqrt((double)of * share * (1 - share)) + 1;

	ck_assert_msg(fabs((double)hits - (double)of * share) <= spread, "%lu of %lu is not a share of %g",
	              (unsigned long)hits, (unsigned long)of, share);
}

/* Overflows, with those that a busy host put together, are as many as the vCPU's time amounts to. */
static void assert_complete(const struct session_statistics *figures, unsigned vcpu)
{
	struct fake_span span = session_span(vcpu);
	uint64_t period_ns = UINT64_C(1000000000) / session_configuration(session)->rate.frequency_hz;
	uint64_t seen = figures->overflow + figures->throttled;
	uint64_t least = span.least_ns / period_ns, most = span.most_ns / period_ns, slack = 3 + most / 20;

	ck_assert_msg(seen + slack >= least && seen <= most + slack, "%lu seen of %lu to %lu", (unsigned long)seen,
	              (unsigned long)least, (unsigned long)most);
	ck_assert_msg(figures->expected + slack >= least && figures->expected <= most + slack,
	              "%lu expected, should be %lu to %lu", (unsigned long)figures->expected, (unsigned long)least,
	              (unsigned long)most);
}

static void session_burn(const struct session_config *config, uint64_t cpu_ns)
{
	session_start_ok(config);
	fake_guest_burn(&fake, cpu_ns);
	ck_assert(session_stop(session, NULL));
}

START_TEST(every_delivery_hands_over_every_overflow)
{
	const struct counter_delivery *delivery = counter_deliveries[_i];
	struct session_config config = config_make("task-clock", 1000);

	guest_make(2);
	config.delivery = delivery->name;
	session_burn(&config, 250 * MS);
	ck_assert_str_eq(session_delivery(session), delivery->name);
	for (unsigned vcpu = 0; vcpu < 2; vcpu++) {
		struct session_statistics figures = statistics(vcpu);
		struct tally tally = tally_ring(vcpu);

		struct fake_span span = session_span(vcpu);

		assert_complete(&figures, vcpu);
		ck_assert_uint_eq(tally.kernel + tally.user, figures.sample);
		ck_assert_uint_eq(tally.hypervisor + tally.lost, 0);
		assert_share(tally.user, figures.sample, 0.25);
		/* Less than the first and the last period is missing from the sum, and the last may be several in one.
		 */
		ck_assert_uint_le(tally.period, span.most_ns + 10 * MS);
		ck_assert_uint_ge(tally.period + 15 * MS + figures.throttled * MS, span.least_ns);
	}
	guest_unmake();
}
END_TEST

/* The time of an exit's handling goes to the exit, by each delivery. */
START_TEST(exits_have_their_share)
{
	struct session_config config = config_make("task-clock", 5000);

	guest_make(1);
	fake.exit_every_ns = 230000;
	fake.exit_ns = 170000;
	fake.exit_ip = EXIT_IP;
	config.delivery = counter_deliveries[_i]->name;
	session_burn(&config, 200 * MS);
	struct session_statistics figures = statistics(0);
	struct tally tally = tally_ring(0);

	assert_complete(&figures, 0);
	ck_assert_uint_eq(tally.hypervisor, figures.in_hypervisor);
	ck_assert_uint_eq(tally.hypervisor + tally.kernel + tally.user, figures.sample);
	assert_share(tally.hypervisor, figures.sample, 0.425);
	guest_unmake();
}
END_TEST

/* A clock cannot leave a mode out, so the sampler does, and counts what it left. */
START_TEST(modifiers_filter_clocks)
{
	struct session_config config = config_make(_i == 0 ? "task-clock:u" : "timer:k", 2000);

	guest_make(1);
	fake.exit_every_ns = 230000;
	fake.exit_ns = 50000;
	fake.exit_ip = EXIT_IP;
	session_burn(&config, 150 * MS);
	struct session_statistics figures = statistics(0);
	struct tally tally = tally_ring(0);

	ck_assert_uint_eq(tally.hypervisor, 0);
	ck_assert_uint_eq(_i == 0 ? tally.kernel : tally.user, 0);
	ck_assert_uint_eq(_i == 0 ? tally.user : tally.kernel, figures.sample);
	ck_assert_uint_gt(figures.sample, 0);
	ck_assert_uint_gt(figures.filtered, 0);
	guest_unmake();
}
END_TEST

START_TEST(quirk_pages_are_counted_and_not_written)
{
	struct session_config config = config_make("task-clock", 1000);

	guest_make(1);
	fake.regs_invalid = true;
	session_burn(&config, 50 * MS);
	struct session_statistics figures = statistics(0);

	assert_complete(&figures, 0);
	ck_assert_uint_eq(figures.quirk, figures.overflow);
	ck_assert_uint_eq(figures.sample, 0);
	guest_unmake();
}
END_TEST

/* Nothing is left over from the session before, and the first period is whole. */
START_TEST(sessions_start_afresh)
{
	struct session_config config = config_make("task-clock", 200);

	guest_make(1);
	config.delivery = counter_deliveries[_i]->name;
	for (unsigned round = 0; round < 3; round++) {
		session_burn(&config, 53 * MS); /* ten periods, each of 4.75 to 5.25 ms */
		struct session_statistics figures = statistics(0);
		struct tally tally = tally_ring(0);
		struct fake_span span = session_span(0);
		uint64_t seen = figures.overflow + figures.throttled;

		ck_assert_msg(
			seen + 1 >= span.least_ns * 100 / (525 * MS) && seen <= span.most_ns * 100 / (475 * MS) + 1,
			"%lu + %lu in %lu to %lu ns, expected %lu, periods %lu first %lu",
			(unsigned long)figures.overflow, (unsigned long)figures.throttled, (unsigned long)span.least_ns,
			(unsigned long)span.most_ns, (unsigned long)figures.expected, (unsigned long)tally.period,
			(unsigned long)tally.first_period);
		ck_assert_uint_ge(tally.first_period, 4750000);
		ck_assert_uint_le(tally.period, span.most_ns + 15 * MS);
	}
	config.rate.frequency_hz = 20;
	session_burn(&config, 0);
	ck_assert_uint_eq(statistics(0).overflow, 0);
	ck_assert_uint_eq(tally_ring(0).period, 0);
	guest_unmake();
}
END_TEST

START_TEST(ended_guests_keep_their_samples)
{
	struct session_config config = config_make("task-clock", 1000);
	g_autoptr(GError) error = NULL;

	guest_make(2);
	session_start_ok(&config);
	fake_guest_burn(&fake, 50 * MS);
	fake_guest_end(&fake);
	ck_assert(session_running(session));
	ck_assert(session_stop(session, NULL));
	for (unsigned vcpu = 0; vcpu < 2; vcpu++) {
		struct session_statistics figures = statistics(vcpu);
		struct tally tally = tally_ring(vcpu);

		assert_complete(&figures, vcpu);
		ck_assert_uint_eq(tally.kernel + tally.user, figures.sample);
	}
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_STATE));
	ck_assert_str_eq(error->message, "cannot start a session: the guest has ended");
	/* And those rings are still there. */
	ck_assert_uint_eq(ring_statistics(session_ring(session, 0)).records, statistics(0).sample);
	guest_unmake();
}
END_TEST

/* A vCPU thread that sleeps for 100 ms is a halted guest: the timer ticks on, and there are no samples. */
START_TEST(halted_guests_give_no_timer_samples)
{
	const struct timespec halt = {.tv_nsec = 100000000};
	struct session_config config = config_make("timer", 1000);

	guest_make(1);
	config.delivery = counter_deliveries[_i]->name;
	session_start_ok(&config);
	nanosleep(&halt, NULL);
	fake_guest_burn(&fake, 20 * MS);
	nanosleep(&halt, NULL);
	ck_assert(session_stop(session, NULL));
	struct session_statistics figures = statistics(0);
	uint64_t most_ns = session_span(0).most_ns + 15 * MS;

	ck_assert_uint_ge(figures.skiptick, 50);
	/* A sample takes a quarter of a period at least, when others have the processor for the rest. */
	ck_assert_uint_le(figures.sample, 4 * most_ns / MS);
	ck_assert_uint_le(tally_ring(0).period, most_ns);
	guest_unmake();
}
END_TEST

START_TEST(full_rings_lose_with_a_count)
{
	struct session_config config = config_make("task-clock", 1000);

	config.ring_data_bytes = VPROF_RING_DATA_BYTES_MIN; /* 71 samples of 56 bytes, and what was lost */
	guest_make(1);
	session_start_ok(&config);
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);
	struct tally tally = {0};

	ck_assert_ptr_nonnull(reader);
	while (statistics(0).dropbuf_sample <= 20)
		fake_guest_burn(&fake, 50 * MS);
	tally_drain(&tally, reader, 0);
	ck_assert_uint_eq(tally.kernel + tally.user, 71);
	ck_assert_uint_eq(tally.lost, 0);
	while (statistics(0).sample == 71)
		fake_guest_burn(&fake, 20 * MS);
	ck_assert(session_stop(session, NULL));
	tally_drain(&tally, reader, 0);
	struct session_statistics figures = statistics(0);

	ck_assert_uint_eq(tally.lost, figures.dropbuf_sample);
	ck_assert_uint_eq(tally.lost_samples, figures.dropbuf_sample);
	ck_assert_uint_eq(tally.kernel + tally.user, figures.sample);
	ring_reader_free(reader);
	guest_unmake();
}
END_TEST

static const uint32_t frequencies[] = {100, 1000, 5000, 10000};

/* With a reader that drains, nothing is lost at any rate, and the rate is the one asked for. */
START_TEST(drained_rings_lose_nothing)
{
	const struct timespec while_waiting = {.tv_nsec = 5000000};
	struct session_config config = config_make("task-clock", frequencies[_i]);
	struct tally tallies[2] = {0};
	struct ring_reader *readers[2];

	config.ring_data_bytes = 1u << 18;
	guest_make(2);
	session_start_ok(&config);
	for (unsigned vcpu = 0; vcpu < 2; vcpu++)
		readers[vcpu] = ring_reader_open(ring_memfd(session_ring(session, vcpu)), NULL);
	fake_guest_burn_begin(&fake, 250 * MS);
	while (fake_guest_burning(&fake)) {
		nanosleep(&while_waiting, NULL);
		for (unsigned vcpu = 0; vcpu < 2; vcpu++)
			tally_drain(&tallies[vcpu], readers[vcpu], vcpu);
	}
	ck_assert(session_stop(session, NULL));
	for (unsigned vcpu = 0; vcpu < 2; vcpu++) {
		tally_drain(&tallies[vcpu], readers[vcpu], vcpu);
		struct session_statistics figures = statistics(vcpu);

		assert_complete(&figures, vcpu);
		ck_assert_uint_eq(figures.dropbuf_sample, 0);
		ck_assert_uint_eq(tallies[vcpu].kernel + tallies[vcpu].user, figures.sample);
		assert_share(tallies[vcpu].user, figures.sample, 0.25);
		ring_reader_free(readers[vcpu]);
	}
	guest_unmake();
}
END_TEST

START_TEST(what_is_left_open_has_defaults)
{
	struct session_config config = {.n_events = 0};

	guest_make(1);
	session_start_ok(&config);
	ck_assert_uint_eq(session_configuration(session)->n_events, 1);
	ck_assert_uint_eq(session_configuration(session)->rate.frequency_hz, 999);
	ck_assert_ptr_nonnull(session_event_why(session));
	ck_assert(session_stop(session, NULL));
	guest_unmake();
}
END_TEST

START_TEST(order_and_ranges_are_checked)
{
	struct session_config config = config_make("task-clock", 1000);
	g_autoptr(GError) error = NULL;

	guest_make(1);
	ck_assert_ptr_null(session_configuration(session));
	ck_assert_ptr_null(session_delivery(session));
	ck_assert_ptr_null(session_ring(session, 0));
	ck_assert(!session_stop(session, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_STATE));
	g_clear_error(&error);

	config.n_events = COUNTER_EVENTS_MAX + 1;
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_RANGE));
	g_clear_error(&error);

	config.n_events = 1;
	config.rate.period = MS;
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_RANGE));
	g_clear_error(&error);

	config.rate.period = 0;
	config.ring_data_bytes = 5000;
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_RANGE));
	ck_assert_msg(strstr(error->message, "ring size 5000"), "%s", error->message);
	g_clear_error(&error);

	config.ring_data_bytes = 0;
	config.delivery = "pigeon";
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE));
	g_clear_error(&error);

	config.delivery = NULL;
	config.switches = true;
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED));
	ck_assert_msg(strstr(error->message, "takes no breakpoints"), "%s", error->message);
	g_clear_error(&error);

	config.no_tasks = true;
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_RANGE));
	ck_assert_msg(strstr(error->message, "context switches without tasks"), "%s", error->message);
	g_clear_error(&error);

	config.no_tasks = config.switches = false;
	session_start_ok(&config);
	ck_assert_uint_eq(session_configuration(session)->ring_data_bytes, VPROF_RING_DATA_BYTES_DEFAULT);
	ck_assert_str_eq(session_configuration(session)->delivery, session_delivery(session));
	ck_assert(!session_start(session, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_STATE));
	ck_assert(session_stop(session, NULL));
	guest_unmake();
}
END_TEST

START_TEST(ids_are_distinct)
{
	bool seen[COUNTER_EVENTS_MAX * GUEST_VCPUS_MAX + 1] = {true}; /* 0 is no id */

	for (unsigned event = 0; event < COUNTER_EVENTS_MAX; event++)
		for (unsigned vcpu = 0; vcpu < GUEST_VCPUS_MAX; vcpu++) {
			uint64_t id = session_event_id(event, vcpu);

			ck_assert_uint_lt(id, G_N_ELEMENTS(seen));
			ck_assert(!seen[id]);
			seen[id] = true;
		}
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("session");
	TCase *tc = tcase_create("session");

	tcase_set_timeout(tc, 40);
	tcase_add_loop_test(tc, every_delivery_hands_over_every_overflow, 0, 3);
	tcase_add_loop_test(tc, exits_have_their_share, 0, 3);
	tcase_add_loop_test(tc, modifiers_filter_clocks, 0, 2);
	tcase_add_test(tc, quirk_pages_are_counted_and_not_written);
	tcase_add_loop_test(tc, sessions_start_afresh, 0, 3);
	tcase_add_test(tc, ended_guests_keep_their_samples);
	tcase_add_loop_test(tc, halted_guests_give_no_timer_samples, 0, 3);
	tcase_add_test(tc, full_rings_lose_with_a_count);
	tcase_add_loop_test(tc, drained_rings_lose_nothing, 0, G_N_ELEMENTS(frequencies));
	tcase_add_test(tc, order_and_ranges_are_checked);
	tcase_add_test(tc, what_is_left_open_has_defaults);
	tcase_add_test(tc, ids_are_distinct);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
