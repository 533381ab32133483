// SPDX-License-Identifier: BSD-2-Clause
/* Sessions with the event steps, on a fake guest that is stepped when the test says so. */
#include <vprof/ring.h>

#include "fake_debug.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"
#include "sample/session.h"

#define KERNEL_RIP UINT64_C(0xffffffff81000010)
#define USER_RIP UINT64_C(0x401000)

static struct fake_guest fake;
static struct session *session;
static struct session_config config;
static GError *error;

static void setup(void)
{
	fake_debug = (struct fake_debug){0};
	fake_guest_init(&fake, 1);
	fake.guest.debug = &fake_debug_ops;
	session = session_new(&fake.guest, NULL);
	ck_assert_ptr_nonnull(session);
	fake_guest_start(&fake);
	config = (struct session_config){.n_events = 1};
	ck_assert(counter_event_parse("steps", &config.events[0], NULL));
}

static void teardown(void)
{
	fake_guest_end(&fake);
	session_free(session);
	g_clear_error(&error);
}

struct steps {
	uint64_t rip, n;
	uint8_t cpl;
};

static void step_on_vcpu(void *data)
{
	const struct steps *steps = data;
	struct guest_stepper *stepper = fake_debug.steppers[0];
	struct guest_regs regs = {.rip = steps->rip, .cpl = steps->cpl, .valid = true};

	for (uint64_t i = 0; i < steps->n; i++, regs.rip++)
		stepper->stepped(stepper, 0, &regs);
}

static void step(uint64_t rip, uint8_t cpl, uint64_t n)
{
	struct steps steps = {rip, n, cpl};

	ck_assert(fake.guest.ops->run_on_vcpu(&fake.guest, 0, step_on_vcpu, &steps));
}

struct tally {
	uint64_t kernel, user, period;
};

static void tally_record(const struct perf_event_header *record, size_t bytes, struct tally *tally)
{
	struct record_sample sample;

	ck_assert_uint_eq(record->type, PERF_RECORD_SAMPLE);
	ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
	tally->period += sample.period;
	if (sample.misc == PERF_RECORD_MISC_KERNEL)
		ck_assert_uint_eq(sample.ip, KERNEL_RIP + tally->kernel++);
	else
		ck_assert_uint_eq(sample.ip, USER_RIP + tally->user++);
}

static void drain_into(struct ring_reader *reader, struct tally *tally)
{
	const struct perf_event_header *record;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL)
		tally_record(record, bytes, tally);
	ring_reader_release(reader);
}

static struct tally drain(void)
{
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);
	struct tally tally = {0};

	ck_assert_ptr_nonnull(reader);
	drain_into(reader, &tally);
	ring_reader_free(reader);
	return tally;
}

START_TEST(every_step_is_a_sample)
{
	struct session_statistics statistics;

	ck_assert(session_start(session, &config, &error));
	ck_assert_uint_eq(session_configuration(session)->rate.period, 1);
	ck_assert_ptr_nonnull(fake_debug.steppers[0]);
	step(KERNEL_RIP, 0, 5);
	step(USER_RIP, 3, 2);
	ck_assert(session_stop(session, NULL));
	ck_assert_ptr_null(fake_debug.steppers[0]);
	struct tally tally = drain();

	ck_assert_uint_eq(tally.kernel, 5);
	ck_assert_uint_eq(tally.user, 2);
	ck_assert_uint_eq(tally.period, 7);
	session_statistics_read(session, 0, &statistics);
	ck_assert_uint_eq(statistics.overflow, 7);
	ck_assert_uint_eq(statistics.expected, 7);
	ck_assert_uint_eq(statistics.sample, 7);
	ck_assert_uint_eq(statistics.unstepped, 0);
}
END_TEST

START_TEST(modes_can_be_left_out)
{
	ck_assert(counter_event_parse("steps:k", &config.events[0], NULL));
	ck_assert(session_start(session, &config, &error));
	step(KERNEL_RIP, 0, 3);
	step(USER_RIP, 3, 4);
	ck_assert(session_stop(session, NULL));
	struct tally tally = drain();

	ck_assert_uint_eq(tally.kernel, 3);
	ck_assert_uint_eq(tally.user, 0);
}
END_TEST

static void run_unstepped(void *data)
{
	(void)data;
	fake_debug.steppers[0]->ran(fake_debug.steppers[0], 0);
}

START_TEST(what_cannot_be_stepped_is_counted_as_such)
{
	struct session_statistics statistics;

	ck_assert(session_start(session, &config, &error));
	ck_assert(fake.guest.ops->run_on_vcpu(&fake.guest, 0, run_unstepped, NULL));
	ck_assert(session_stop(session, NULL));
	session_statistics_read(session, 0, &statistics);
	ck_assert_uint_eq(statistics.unstepped, 1);
	ck_assert_uint_eq(statistics.sample, 0);
}
END_TEST

/* The rest waits for the reader. */
struct late_reader {
	struct tally tally;
	atomic_bool end;
};

static void *read_late(void *data)
{
	struct late_reader *late = data;
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);

	while (!atomic_load(&late->end))
		drain_into(reader, &late->tally);
	drain_into(reader, &late->tally);
	ring_reader_free(reader);
	return NULL;
}

START_TEST(no_step_is_lost)
{
	struct late_reader late = {.end = false};
	struct session_statistics statistics;
	pthread_t thread;

	config.ring_data_bytes = VPROF_RING_DATA_BYTES_MIN;
	ck_assert(session_start(session, &config, &error));
	ck_assert_int_eq(pthread_create(&thread, NULL, read_late, &late), 0);
	step(KERNEL_RIP, 0, 1000); /* some ten times what the ring holds */
	atomic_store(&late.end, true);
	pthread_join(thread, NULL);
	ck_assert(session_stop(session, NULL));
	session_statistics_read(session, 0, &statistics);
	ck_assert_uint_eq(statistics.dropbuf_sample, 0);
	ck_assert_uint_eq(late.tally.kernel, 1000);
}
END_TEST

static void assert_refused(const char *words)
{
	ck_assert(!session_start(session, &config, &error));
	ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
	ck_assert_ptr_null(fake_debug.steppers[0]);
}

START_TEST(nothing_beside_it)
{
	ck_assert(counter_event_parse("task-clock", &config.events[1], NULL));
	config.n_events = 2;
	config.rate.period = 1;
	assert_refused("nothing else can be counted");
}
END_TEST

START_TEST(no_other_period)
{
	config.rate.frequency_hz = 999;
	assert_refused("every step is counted");
}
END_TEST

START_TEST(a_host_that_cannot)
{
	fake_debug.cannot_step = "cannot step: a test";
	assert_refused("a test");
	ck_assert(!session_running(session));
	fake_debug.cannot_step = NULL;
	g_clear_error(&error);
	ck_assert(session_start(session, &config, &error));
}
END_TEST

START_TEST(a_guest_that_nobody_can_look_into)
{
	fake.guest.debug = NULL;
	assert_refused("cannot single-step");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_steps");
	TCase *tests = tcase_create("session_steps");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, every_step_is_a_sample);
	tcase_add_test(tests, modes_can_be_left_out);
	tcase_add_test(tests, what_cannot_be_stepped_is_counted_as_such);
	tcase_add_test(tests, no_step_is_lost);
	tcase_add_test(tests, nothing_beside_it);
	tcase_add_test(tests, no_other_period);
	tcase_add_test(tests, a_host_that_cannot);
	tcase_add_test(tests, a_guest_that_nobody_can_look_into);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
