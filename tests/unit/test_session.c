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

	ck_assert_msg(session_start(session, config, &error), "%s", error ? error->message : "");
}

/* What a ring held. */
struct tally {
	uint64_t kernel, user, hypervisor, period, lost, first_period;
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

/* Overflows, with those that a busy host put together, are as many as the time amounts to. */
static void assert_complete(const struct session_statistics *figures, uint64_t expected)
{
	uint64_t seen = figures->overflow + figures->throttled;
	uint64_t slack = 3 + expected / 20;

	ck_assert_msg(seen + slack >= expected && seen <= expected + slack, "%lu seen of %lu", (unsigned long)seen,
	              (unsigned long)expected);
	ck_assert_msg(figures->expected + slack >= expected && figures->expected <= expected + slack,
	              "%lu expected, should be %lu", (unsigned long)figures->expected, (unsigned long)expected);
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
	session_burn(&config, 400 * MS);
	ck_assert_str_eq(session_delivery(session), delivery->name);
	for (unsigned vcpu = 0; vcpu < 2; vcpu++) {
		struct session_statistics figures = statistics(vcpu);
		struct tally tally = tally_ring(vcpu);

		assert_complete(&figures, 400);
		ck_assert_uint_eq(tally.kernel + tally.user, figures.sample);
		ck_assert_uint_eq(tally.hypervisor + tally.lost, 0);
		assert_share(tally.user, figures.sample, 0.25);
		/* Less than the first and the last period is missing from the sum. */
		ck_assert_uint_le(tally.period, 410 * MS);
		ck_assert_uint_ge(tally.period, 380 * MS);
	}
	guest_unmake();
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("session");
	TCase *tc = tcase_create("session");

	tcase_set_timeout(tc, 40);
	tcase_add_loop_test(tc, every_delivery_hands_over_every_overflow, 0, 3);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(suite_make());

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
