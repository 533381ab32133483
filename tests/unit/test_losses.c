// SPDX-License-Identifier: BSD-2-Clause
/*
 * For every owner of rings: what was read, is still in the ring or was lost, is what was generated, for readers that
 * are slow, stop or die, at rates up to the highest, on one vCPU and on two. Counters per switch are in
 * test_counting_log.c, the trace is in test_trace.c, readers that ask for more than the ring has in
 * test_control_samples.c.
 */
#include <linux/kvm.h>
#include <vprof/ring.h>

#include "fake_debug.h"
#include "probe/probe.h"
#include "ring_account.h"
#include "run_suite.h"
#include "sample/counter_table.h"

#define MS UINT64_C(1000000)
#define RING_BYTES VPROF_RING_DATA_BYTES_MIN /* 71 samples */
#define TURNS 6u

static const uint32_t rates_hz[] = {100, 1000, 10000};

#define CASES (G_N_ELEMENTS(rates_hz) * 2 * ACCOUNT_READERS)

static struct fake_guest fake;
static struct session *session;
static struct ring_account accounts[FAKE_VCPUS_MAX];
static enum account_reader reader_kind;
static uint32_t rate_hz;

static void begin(unsigned number)
{
	reader_kind = (enum account_reader)(number % ACCOUNT_READERS);
	rate_hz = rates_hz[number / ACCOUNT_READERS / 2];
	memset(accounts, 0, sizeof(accounts));
	memset(&fake_debug, 0, sizeof(fake_debug));
	fake_debug.regs = (struct guest_regs){.rip = FAKE_KERNEL_RIP, .valid = true};
	fake_guest_init(&fake, 1 + number / ACCOUNT_READERS % 2);
	fake.guest.debug = &fake_debug_ops;
	session = session_new(&fake.guest, NULL);
	ck_assert_ptr_nonnull(session);
	fake_guest_start(&fake);
}

static void end(void)
{
	fake_guest_end(&fake);
	session_free(session);
}

static struct counter_event task_clock(void)
{
	struct counter_event event;

	ck_assert(counter_event_parse("task-clock", &event, NULL));
	return event;
}

/* Some ten samples at 100 Hz, and more than a ring holds at 10 kHz. */
static void guest_turn(void)
{
	fake_guest_burn(&fake, rate_hz == 100 ? 20 * MS : 8 * MS);
}

/* Every overflow has become something, and every expected one has a cause. */
static void assert_overflows(const struct session_statistics *now)
{
	const uint64_t explained = now->overflow + now->throttled + now->late;

	ck_assert_uint_eq(now->overflow, now->sample + now->dropbuf_sample + now->filtered + now->quirk);
	/* The sum of 60 runs of periods, uniform over 0.8 of a period: 6.5 standard deviations are 12. */
	ck_assert_uint_le(now->expected, explained + 15);
	ck_assert_uint_le(explained, now->expected + 15);
}

START_TEST(of_a_session)
{
	begin((unsigned)_i);
	const struct session_config config = {
		.events = {task_clock()}, .n_events = 1, .rate.frequency_hz = rate_hz, .ring_data_bytes = RING_BYTES};

	ck_assert(session_start(session, &config, NULL));
	for (unsigned i = 0; i < TURNS; i++) {
		guest_turn();
		for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++)
			account_turn(&accounts[vcpu], session_ring(session, vcpu), reader_kind);
	}
	/* Flushed: nothing was generated since. */
	ck_assert(session_flush(session, NULL));
	for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++) {
		const struct ring *ring = session_ring(session, vcpu);
		struct session_statistics now;

		session_statistics_read(session, vcpu, &now);
		ck_assert_uint_eq(now.readevt + ring_view_unread(ring), ring_statistics(ring).records);
		ck_assert_uint_eq(now.readevt, accounts[vcpu].samples + accounts[vcpu].others);
		assert_overflows(&now);
	}
	ck_assert(session_stop(session, NULL));
	for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++) {
		struct session_statistics now;

		session_statistics_read(session, vcpu, &now);
		assert_overflows(&now);
		account_close(&accounts[vcpu], session_ring(session, vcpu), now.sample + now.dropbuf_sample);
	}
	end();
}
END_TEST

START_TEST(of_a_counter)
{
	begin((unsigned)_i);
	const struct counter_owner owner = {.key = &fake};
	const struct counter_request request = {.event = task_clock(),
	                                        .mode = COUNTER_GUEST_SAMPLING,
	                                        .rate.frequency_hz = rate_hz,
	                                        .ring_bytes = RING_BYTES};
	struct counter_table *table = counter_table_new(session);
	g_autofree struct counter_value *values = g_new0(struct counter_value, GUEST_VCPUS_MAX);
	unsigned number;

	ck_assert(counter_allocate(table, &owner, &request, &number, NULL));
	ck_assert(counter_start(table, &fake, number, NULL));
	for (unsigned i = 0; i < TURNS; i++) {
		guest_turn();
		for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++)
			account_turn(&accounts[vcpu], counter_ring(table, number, vcpu), reader_kind);
	}
	ck_assert(counter_stop(table, &fake, number, NULL));
	ck_assert(counter_read(table, &fake, number, values, NULL));
	for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++) {
		const struct session_statistics *now = &values[vcpu].statistics;
		const struct ring *ring = counter_ring(table, number, vcpu);

		assert_overflows(now);
		ck_assert_uint_eq(now->dropevt, ring_statistics(ring).dropped);
		ck_assert_uint_eq(now->readevt, accounts[vcpu].samples + accounts[vcpu].others);
		account_close(&accounts[vcpu], ring, now->sample + now->dropbuf_sample);
	}
	counter_table_free(table);
	end();
}
END_TEST

START_TEST(of_probes)
{
	begin((unsigned)_i);
	static const struct guest_access access = {.reason = KVM_EXIT_IO, .bytes = 1, .count = 1, .address = 0x3f8};
	const struct probe_options options = {.registers = 0};
	struct probe_hub *hub = probe_hub_new(&fake.guest, session);
	struct probe_set *set = probe_set_new(hub);
	struct probe_statistics statistics;
	struct probe_info info;
	uint64_t generated = 0;

	ck_assert(probe_set_add(set, "io:*", &options, &info, NULL));
	ck_assert(probe_set_record(set, RING_BYTES, NULL));
	for (unsigned i = 0; i < TURNS; i++)
		for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++) {
			for (unsigned j = 0; j < MIN(rate_hz / 100, 20); j++, generated++)
				fake_access(&fake, vcpu, &access);
			account_turn(&accounts[vcpu], probe_set_ring(set, vcpu), reader_kind);
		}
	probe_set_pause(set);
	probe_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.event, generated);
	uint64_t read = 0;

	for (unsigned vcpu = 0; vcpu < fake.guest.vcpus; vcpu++) {
		read += accounts[vcpu].samples;
		account_close(&accounts[vcpu], probe_set_ring(set, vcpu), generated / fake.guest.vcpus);
	}
	ck_assert_uint_eq(statistics.readevt, read);
	probe_set_free(set);
	probe_hub_free(hub);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("losses");
	TCase *tc = tcase_create("owners");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, of_a_session, 0, CASES);
	tcase_add_loop_test(tc, of_a_counter, 0, CASES);
	tcase_add_loop_test(tc, of_probes, 0, CASES);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
