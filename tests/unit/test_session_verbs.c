// SPDX-License-Identifier: BSD-2-Clause
/* What can be done to a session while it runs: flush, stall and go on, samples by hand, figures from 0; on a fake
 * guest. */
#include <check.h>
#include <poll.h>
#include <unistd.h>
#include <vprof/recording.h>
#include <vprof/ring.h>

#include "fake_guest.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"
#include "sample/session.h"
#include "stream/ring.h"

#define MS UINT64_C(1000000)

static struct fake_guest fake;
static struct session *session;

static void setup(void)
{
	fake_guest_init(&fake, 1);
	session = session_new(&fake.guest, NULL);
	ck_assert_ptr_nonnull(session);
	fake_guest_start(&fake);
}

static void teardown(void)
{
	fake_guest_end(&fake);
	session_free(session);
}

static struct session_config config_make(const char *event, uint32_t frequency_hz, size_t ring_bytes)
{
	struct session_config config = {
		.n_events = 1, .rate.frequency_hz = frequency_hz, .ring_data_bytes = ring_bytes};

	ck_assert(counter_event_parse(event, &config.events[0], NULL));
	return config;
}

static void start(const struct session_config *config)
{
	GError *error = NULL;

	ck_assert_msg(session_start(session, config, &error), "%s", error ? error->message : "");
}

static struct session_statistics statistics(void)
{
	struct session_statistics figures;

	session_statistics_read(session, 0, &figures);
	ck_assert_uint_eq(figures.overflow, figures.sample + figures.dropbuf_sample + figures.filtered + figures.quirk);
	return figures;
}

static bool signalled(void)
{
	struct pollfd wait = {.fd = ring_eventfd(session_ring(session, 0)), .events = POLLIN};
	uint64_t times;

	return poll(&wait, 1, 0) == 1 && read(wait.fd, &times, sizeof(times)) == sizeof(times);
}

/* Takes everything out of the ring; how many records that was. */
static uint64_t drain(struct ring_reader *reader)
{
	uint64_t n = 0;
	size_t bytes;

	for (const struct perf_event_header *record; (record = ring_reader_next(reader, &bytes));)
		n += record->type != PERF_RECORD_LOST && record->type != PERF_RECORD_LOST_SAMPLES;
	ck_assert(!ring_reader_corrupt(reader));
	ring_reader_release(reader);
	return n;
}

static struct ring_reader *reader_make(void)
{
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);

	ck_assert_ptr_nonnull(reader);
	return reader;
}

static void assert_state_error(bool done, GError **error, const char *part)
{
	ck_assert(!done);
	ck_assert(g_error_matches(*error, SESSION_ERROR, SESSION_ERROR_STATE));
	ck_assert_msg(strstr((*error)->message, part) != NULL, "%s", (*error)->message);
	g_clear_error(error);
}

START_TEST(a_flush_tells_the_reader)
{
	struct session_config config = config_make("task-clock", 1000, 1u << 16);

	start(&config);
	fake_guest_burn(&fake, 20 * MS);
	ck_assert(!signalled()); /* 20 samples are far from the watermark */
	ck_assert(session_flush(session, NULL));
	ck_assert(signalled());
	ck_assert_uint_eq(statistics().buf, 1);
	ck_assert(session_flush(session, NULL));
	ck_assert(!signalled());
	ck_assert_uint_eq(statistics().buf, 1);
	ck_assert_uint_eq(statistics().emptybuf, 1);
	ck_assert(session_running(session));
}
END_TEST

START_TEST(a_flush_puts_down_what_was_lost)
{
	struct session_config config = config_make("task-clock", 5000, VPROF_RING_DATA_BYTES_MIN);

	start(&config);
	struct ring_reader *reader = reader_make();

	while (statistics().dropbuf_sample == 0)
		fake_guest_burn(&fake, 20 * MS);
	uint64_t lost = statistics().dropbuf_sample;

	ck_assert_uint_eq(statistics().dropbuf, 1);
	ck_assert_uint_eq(statistics().dropevt, lost);
	ck_assert_uint_eq(statistics().intr_bufferfull, lost);
	drain(reader);
	ck_assert(session_flush(session, NULL));
	size_t bytes;
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	struct record_lost told;

	ck_assert_ptr_nonnull(record);
	ck_assert(record_lost_decode(record, bytes, &told));
	ck_assert_uint_eq(told.lost, lost);
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_watermark_is_kept)
{
	struct session_config config = config_make("task-clock", 1000, 1u << 16);

	config.watermark_bytes = 1;
	start(&config);
	fake_guest_burn(&fake, 10 * MS);
	uint64_t told = statistics().buf;

	ck_assert_uint_eq(told, statistics().sample);
	session_set_watermark(session, 0);
	fake_guest_burn(&fake, 10 * MS);
	ck_assert_uint_le(statistics().buf, told + 1); /* the sample that was due when it was set */
}
END_TEST

/* Without a reader, a session that stalls loses nothing and does not go on; with one it does. */
START_TEST(a_stalled_session_loses_time_and_no_samples)
{
	struct session_config config = config_make(_i == 0 ? "task-clock" : "timer", 2000, VPROF_RING_DATA_BYTES_MIN);

	config.stall = true;
	start(&config);
	struct ring_reader *reader = reader_make();

	while (statistics().stalls == 0)
		fake_guest_burn(&fake, 20 * MS);
	struct session_statistics stalled = statistics();
	fake_guest_burn(&fake, 60 * MS);
	struct session_statistics before = statistics();
	/* 56 bytes each, and a quarter of 4 KiB stays free. */
	ck_assert_uint_ge(before.sample, 3072 / 56);
	ck_assert_uint_le(before.sample, 3072 / 56 + 2);
	ck_assert_uint_eq(before.dropevt, 0);
	ck_assert_uint_eq(before.stalls, 1);
	ck_assert_uint_eq(before.intr_bufferfull, 1);
	/* perf's clock stands still during its own work. */
	ck_assert_uint_ge(before.stalled_ns - stalled.stalled_ns, 58 * MS);
	ck_assert_uint_eq(before.expected, stalled.expected);

	session_resume_stalled(session); /* no room yet */
	fake_guest_burn(&fake, 10 * MS);
	ck_assert_uint_eq(statistics().sample, before.sample);

	uint64_t read = drain(reader);
	session_resume_stalled(session);
	uint64_t stood = statistics().stalled_ns;
	fake_guest_burn(&fake, 10 * MS);
	ck_assert_uint_eq(statistics().stalled_ns, stood);
	ck_assert_uint_gt(statistics().sample, before.sample);
	ck_assert(session_stop(session, NULL));
	read += drain(reader);
	ck_assert_uint_eq(read, statistics().sample);
	ck_assert_uint_eq(statistics().readevt, read);
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_stop_ends_a_stall)
{
	struct session_config config = config_make("task-clock", 5000, VPROF_RING_DATA_BYTES_MIN);

	config.stall = true;
	start(&config);
	while (statistics().stalls == 0)
		fake_guest_burn(&fake, 20 * MS);
	fake_guest_burn(&fake, 10 * MS);
	ck_assert(session_stop(session, NULL));
	uint64_t stood = statistics().stalled_ns;

	ck_assert_uint_gt(stood, 0);
	ck_assert_uint_eq(statistics().stalled_ns, stood);
	config.stall = false;
	start(&config);
	ck_assert_uint_eq(statistics().stalls + statistics().stalled_ns, 0);
}
END_TEST

START_TEST(a_sample_by_hand_is_flagged)
{
	struct session_config config = config_make("timer", 1, VPROF_RING_DATA_BYTES_MIN);
	const struct session_sample added = {
		.ip = 0x1234, .mode = PERF_RECORD_MISC_USER, .pid = 5, .tid = 6, .period = 7};
	GError *error = NULL;
	struct record_sample sample;
	size_t bytes;

	assert_state_error(session_add_sample(session, &added, &error), &error, "no session");
	config.call_graph = _i == 1 ? SESSION_CALL_GRAPH_FP : SESSION_CALL_GRAPH_NONE;
	start(&config);
	ck_assert(session_add_sample(session, &added, NULL));
	struct ring_reader *reader = reader_make();
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	struct perf_event_attr attr;

	session_event_attr(session, 0, &attr);
	ck_assert_ptr_nonnull(record);
	ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
	ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_USER | VPROF_SAMPLE_ADDED);
	ck_assert_uint_eq(sample.ip, 0x1234);
	ck_assert_uint_eq(sample.pid, 5);
	ck_assert_uint_eq(sample.tid, 6);
	ck_assert_uint_eq(sample.period, 7);
	ck_assert_uint_eq(sample.id, session_event_id(0, 0));
	ck_assert_uint_eq(sample.n_chain, _i == 1 ? 2 : 0);
	ck_assert_uint_eq(statistics().added, 1);
	ck_assert_uint_eq(statistics().sample, 0);

	while (session_add_sample(session, &added, &error))
		;
	assert_state_error(false, &error, "ring of vCPU 0 is full");
	ring_reader_free(reader);
	ck_assert(session_stop(session, NULL));
	assert_state_error(session_add_sample(session, &added, &error), &error, "no session");
}
END_TEST

START_TEST(figures_count_from_0_again)
{
	struct session_config config = config_make("task-clock", 5000, VPROF_RING_DATA_BYTES_MIN);
	static const struct session_statistics none;

	start(&config);
	while (statistics().dropbuf_sample == 0)
		fake_guest_burn(&fake, 20 * MS);
	session_reset_statistics(session);
	struct session_statistics figures = statistics();

	ck_assert_mem_eq(&figures, &none, sizeof(none));
	ck_assert(session_running(session));
	struct ring_reader *reader = reader_make();

	drain(reader);
	fake_guest_burn(&fake, 10 * MS);
	ck_assert_uint_gt(statistics().sample, 0);
	ck_assert_uint_lt(statistics().sample, 73); /* what filled the ring before */
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_session_is_forgotten)
{
	struct session_config config = config_make("task-clock", 1000, VPROF_RING_DATA_BYTES_MIN);
	GError *error = NULL;

	assert_state_error(session_flush(session, &error), &error, "no session is running");
	ck_assert_uint_eq(session_number(session), 0);
	start(&config);
	ck_assert_uint_eq(session_number(session), 1);
	assert_state_error(session_forget(session, &error), &error, "stop it first");
	ck_assert(session_stop(session, NULL));
	ck_assert(session_forget(session, NULL));
	ck_assert_ptr_null(session_configuration(session));
	ck_assert_ptr_null(session_ring(session, 0));
	start(&config);
	ck_assert_uint_eq(session_number(session), 2);
}
END_TEST

/* What comes while a sample is written is counted, and taken next. */
START_TEST(overflows_among_overflows_are_counted)
{
	struct session_config config = config_make("task-clock", 10000, 1u << 20);

	config.delivery = counter_deliveries[_i]->name;
	start(&config);
	fake_guest_burn(&fake, 200 * MS);
	ck_assert(session_stop(session, NULL));
	struct session_statistics figures = statistics();

	ck_assert_uint_ge(figures.intr_processed, figures.overflow);
	ck_assert_uint_eq(figures.intr_ignored, 0);
	ck_assert_uint_le(figures.recurevt, figures.overflow);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("session_verbs");
	TCase *tc = tcase_create("verbs");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_flush_tells_the_reader);
	tcase_add_test(tc, a_flush_puts_down_what_was_lost);
	tcase_add_test(tc, a_watermark_is_kept);
	tcase_add_loop_test(tc, a_stalled_session_loses_time_and_no_samples, 0, 2);
	tcase_add_test(tc, a_stop_ends_a_stall);
	tcase_add_loop_test(tc, a_sample_by_hand_is_flagged, 0, 2);
	tcase_add_test(tc, figures_count_from_0_again);
	tcase_add_test(tc, a_session_is_forgotten);
	tcase_add_loop_test(tc, overflows_among_overflows_are_counted, 0, 3);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
