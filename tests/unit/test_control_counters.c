// SPDX-License-Identifier: BSD-2-Clause
/* The counters of clients, beside a session and each other, on a guest that needs no KVM. */
#include <math.h>
#include <string.h>

#include "control_fixture.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"

#define MS INT64_C(1000000)
/* A false alarm in 1.7 million runs. */
#define SIGMAS 5.0

static struct peer peer, other;

static void setup(void)
{
	fixture_setup();
	peer_join(&peer);
	peer_join(&other);
}

static void teardown(void)
{
	peer_deinit(&peer);
	peer_deinit(&other);
	fixture_teardown();
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	ck_assert_msg(json_is_integer(value), "no integer %s", name);
	return json_integer_value(value);
}

#define ASK(method, arguments) "{\"execute\":\"" method "\",\"arguments\":{" arguments "}}"

/* Allocates what `arguments` say; its number. */
static unsigned allocate(struct peer *client, const char *arguments)
{
	g_autofree char *request = g_strdup_printf(ASK("counter-allocate", "%s"), arguments);
	json_auto_t *answer = peer_return(client, request);

	return (unsigned)integer_of(answer, "counter");
}

/* `method` for this counter, with more arguments if they are not "" (then they begin with a comma). */
static char *about(const char *method, unsigned counter, const char *more)
{
	return g_strdup_printf("{\"execute\":\"%s\",\"arguments\":{\"counter\":%u%s}}", method, counter, more);
}

static json_t *ask(const char *method, unsigned counter, const char *more)
{
	g_autofree char *request = about(method, counter, more);

	return peer_return(&peer, request);
}

static void tell(const char *method, unsigned counter, const char *more)
{
	json_auto_t *answer = ask(method, counter, more);

	assert_json(answer, "{}");
}

static void refused(struct peer *client, const char *method, unsigned counter, const char *more, const char *class,
                    const char *part)
{
	g_autofree char *request = about(method, counter, more);

	peer_refused(client, request, class, part);
}

static json_int_t value_of(unsigned counter)
{
	json_auto_t *answer = ask("counter-read", counter, "");

	return integer_of(answer, "value");
}

static struct fake_span begin[FIXTURE_VCPUS];

/* The time from here on is what assert_ran compares with. */
static void ran_from_here(void)
{
	for (unsigned vcpu = 0; vcpu < FIXTURE_VCPUS; vcpu++)
		begin[vcpu] = fake_span_so_far(&fake, vcpu);
}

/* How long the vCPUs from `first` to before `end` ran. */
static struct fake_span ran(unsigned first, unsigned end)
{
	struct fake_span sum = {0};

	for (unsigned vcpu = first; vcpu < end; vcpu++) {
		struct fake_span one = fake_span_since(&fake, vcpu, &begin[vcpu]);

		sum.least_ns += one.least_ns;
		sum.most_ns += one.most_ns;
	}
	return sum;
}

/* That `value` is what those ran; perf's clock stands still during its own work. */
static void assert_span(json_int_t value, struct fake_span span)
{
	uint64_t least = span.least_ns / 100 * 98, most = span.most_ns / 100 * 102;

	ck_assert_msg(value >= (json_int_t)least && value <= (json_int_t)most, "%lld is not in %lu..%lu",
	              (long long)value, (unsigned long)least, (unsigned long)most);
}

static void assert_ran(json_int_t value)
{
	assert_span(value, ran(0, FIXTURE_VCPUS));
}

/* That these overflows of all vCPUs, with those that a busy host put together, are one for each `period_ns`. */
static void assert_overflows(const json_t *statistics, uint64_t period_ns)
{
	struct fake_span span = ran(0, FIXTURE_VCPUS);
	uint64_t least = span.least_ns / period_ns * 9 / 10, most = span.most_ns / period_ns * 11 / 10 + 2;
	uint64_t seen = (uint64_t)(integer_of(statistics, "overflow") + integer_of(statistics, "throttled"));

	ck_assert_msg(seen + 2 >= least && seen <= most, "%lu is not in %lu..%lu", (unsigned long)seen,
	              (unsigned long)least, (unsigned long)most);
}

static void assert_between(json_int_t value, json_int_t min, json_int_t max)
{
	ck_assert_msg(value >= min && value <= max, "%lld is not in %lld..%lld", (long long)value, (long long)min,
	              (long long)max);
}

/* An estimate ends with the last sample: it is the time that overflows stand for, and no more than was run. */
static void assert_estimate(const json_t *reading, uint64_t period_ns)
{
	uint64_t overflows = (uint64_t)integer_of(json_object_get(reading, "statistics"), "overflow");
	uint64_t least = MAX(overflows, 2 * FIXTURE_VCPUS) - 2 * FIXTURE_VCPUS;

	assert_between(integer_of(reading, "value"), (json_int_t)(least * period_ns / 100 * 95),
	               (json_int_t)ran(0, FIXTURE_VCPUS).most_ns / 100 * 102);
}

START_TEST(a_guest_is_counted_while_the_counter_runs)
{
	static const char *const events[] = {"\"event\":\"task-clock\",\"mode\":\"guest-counting\"",
	                                     "\"event\":\"timer\",\"mode\":\"guest-counting\""};
	unsigned counter = allocate(&peer, events[_i]);

	fake_guest_burn(&fake, 20 * MS);
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 100 * MS);
	json_auto_t *running = ask("counter-read", counter, "");
	assert_ran(integer_of(running, "value"));
	ck_assert_int_eq(integer_of(running, "enabled-ns"), integer_of(running, "running-ns"));
	const json_t *vcpus = json_object_get(running, "vcpus");
	ck_assert_uint_eq(json_array_size(vcpus), FIXTURE_VCPUS);
	for (unsigned i = 0; i < FIXTURE_VCPUS; i++)
		assert_span(integer_of(json_array_get(vcpus, i), "value"), ran(i, i + 1));
	tell("counter-stop", counter, "");

	json_int_t stopped = value_of(counter);
	fake_guest_burn(&fake, 20 * MS);
	ck_assert_int_eq(value_of(counter), stopped);
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 20 * MS);
	assert_ran(value_of(counter) - stopped);
	tell("counter-stop", counter, "");

	tell("counter-write", counter, ",\"value\":7");
	ck_assert_int_eq(value_of(counter), 7);
	tell("counter-release", counter, "");
	refused(&peer, "counter-read", counter, "", "InvalidArgument", "is not allocated");
}
END_TEST

/* `hits` of `n` samples fell where a part `share` of the time was spent. */
static void assert_share(double hits, double n, double share)
{
	double sigma = sqrt(n * share * (1 - share));

	ck_assert_msg(fabs(hits - n * share) <= SIGMAS * sigma + 1, "%g of %g, expected a share of %g", hits, n, share);
}

#define SAMPLED_MS 400

START_TEST(an_estimate_tells_modes_apart)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\",\"estimate\":true,"
	                                   "\"frequency-hz\":2000");

	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, SAMPLED_MS * MS);
	json_auto_t *running = ask("counter-read", counter, "");
	assert_estimate(running, MS / 2);
	tell("counter-stop", counter, "");
	struct fake_span stopping = ran(0, FIXTURE_VCPUS);
	json_auto_t *stopped = ask("counter-read", counter, "");
	const json_t *modes = json_object_get(running, "modes");
	double kernel = (double)integer_of(modes, "kernel"), user = (double)integer_of(modes, "user");

	ck_assert_int_eq(integer_of(running, "value"),
	                 integer_of(modes, "kernel") + integer_of(modes, "user") + integer_of(modes, "hypervisor"));
	/* Of equal periods, more or less, but for those that one sample stands for together: at worst, one sample for
	 * all. */
	const json_t *statistics = json_object_get(running, "statistics");
	double alone = (double)integer_of(statistics, "overflow"),
	       together = (double)integer_of(statistics, "throttled");
	double n = (alone + together) * (alone + together) / (alone + together * together);
	assert_share(n * user / (user + kernel), n, 0.25);
	assert_between(integer_of(stopped, "value"), integer_of(running, "value"),
	               (json_int_t)stopping.most_ns / 100 * 102);
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 100 * MS);
	assert_between(value_of(counter) - integer_of(stopped, "value"), 1,
	               (json_int_t)ran(0, FIXTURE_VCPUS).most_ns / 100 * 102);
}
END_TEST

START_TEST(an_estimate_may_be_of_one_mode)
{
	unsigned counter = allocate(&peer, "\"event\":\"timer:u\",\"mode\":\"guest-counting\",\"estimate\":true,"
	                                   "\"frequency-hz\":2000");

	tell("counter-start", counter, "");
	fake_guest_burn(&fake, SAMPLED_MS * MS);
	json_auto_t *answer = ask("counter-read", counter, "");
	const json_t *statistics = json_object_get(answer, "statistics");

	ck_assert_int_eq(integer_of(json_object_get(answer, "modes"), "kernel"), 0);
	assert_share((double)integer_of(statistics, "sample"),
	             (double)(integer_of(statistics, "sample") + integer_of(statistics, "filtered")), 0.25);
}
END_TEST

/* Samples in the rings of a counter that are those of this event id on that vCPU, in all. */
static uint64_t ring_samples(unsigned counter, const json_t *event)
{
	const json_t *ids = json_object_get(event, "ids");
	uint64_t n = 0;
	json_auto_t *rings = ask("counter-rings", counter, "");

	ck_assert_uint_eq(json_array_size(json_object_get(rings, "vcpus")), FIXTURE_VCPUS);
	ck_assert_uint_eq(peer.fds->len, 2 * FIXTURE_VCPUS);
	for (unsigned i = 0; i < FIXTURE_VCPUS; i++) {
		struct ring_reader *reader = ring_reader_open(g_array_index(peer.fds, int, 2 * i), NULL);
		const struct perf_event_header *record;
		struct record_sample sample;
		size_t bytes;

		ck_assert_ptr_nonnull(reader);
		while ((record = ring_reader_next(reader, &bytes))) {
			if (record->type != PERF_RECORD_SAMPLE)
				continue;
			ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
			ck_assert_uint_eq(sample.cpu, i);
			ck_assert_uint_eq(sample.id, (uint64_t)json_integer_value(json_array_get(ids, i)));
			n++;
		}
		ring_reader_free(reader);
	}
	return n;
}

START_TEST(a_sampling_counter_fills_its_rings_beside_a_session)
{
	json_decref(peer_return(&other, REQUEST("control-take")));
	ran_from_here();
	json_decref(peer_return(&other, ASK("session-start", "\"events\":[\"task-clock\"],\"frequency-hz\":1000")));
	json_auto_t *allocated =
		peer_return(&peer, ASK("counter-allocate",
	                               "\"event\":\"cpu-clock\",\"mode\":\"guest-sampling\",\"frequency-hz\":2000"));
	unsigned counter = (unsigned)integer_of(allocated, "counter");
	unsigned counting = allocate(&other, "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	g_autofree char *start = about("counter-start", counting, "");

	tell("counter-start", counter, "");
	json_decref(peer_return(&other, start));
	fake_guest_burn(&fake, SAMPLED_MS * MS);
	tell("counter-stop", counter, "");
	json_auto_t *answer = ask("counter-read", counter, "");
	const json_t *counted = json_object_get(answer, "statistics");

	assert_overflows(counted, MS / 2);
	ck_assert_uint_eq(ring_samples(counter, json_array_get(json_object_get(allocated, "events"), 0)),
	                  (uint64_t)integer_of(counted, "sample"));

	json_auto_t *session_end = peer_return(&other, REQUEST("session-stop"));
	const json_t *total = json_object_get(json_object_get(session_end, "statistics"), "total");
	ck_assert_int_eq(integer_of(total, "dropbuf-sample"), 0);
	assert_overflows(total, MS);
}
END_TEST

/* The frames of the samples in a counter's ring of one vCPU. */
static uint64_t chain_frames(struct ring_reader *reader, uint64_t *samples)
{
	const struct perf_event_header *record;
	struct record_sample sample;
	uint64_t frames = 0;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes))) {
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, &sample));
		ck_assert_uint_ge(sample.n_chain, 2);
		frames += sample.n_chain;
		++*samples;
	}
	return frames;
}

START_TEST(a_sampling_counter_of_one_vcpu_has_call_chains)
{
	json_auto_t *allocated = peer_return(
		&peer, ASK("counter-allocate", "\"event\":\"task-clock\",\"mode\":\"guest-sampling\",\"frequency-hz\":"
	                                       "2000,\"call-graph\":\"auto\",\"vcpu\":1"));
	unsigned counter = (unsigned)integer_of(allocated, "counter");

	assert_json(json_object_get(allocated, "unwinder"), "\"fp\"");
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 100 * MS);
	tell("counter-stop", counter, "");
	json_auto_t *reading = ask("counter-read", counter, "");
	json_decref(ask("counter-rings", counter, ""));
	const json_t *vcpus = json_object_get(reading, "vcpus");
	ck_assert_int_eq(integer_of(json_array_get(vcpus, 0), "value"), 0);
	ck_assert_int_gt(integer_of(json_array_get(vcpus, 1), "value"), 0);
	for (unsigned i = 0; i < FIXTURE_VCPUS; i++) {
		struct ring_reader *reader = ring_reader_open(g_array_index(peer.fds, int, 2 * i), NULL);
		uint64_t samples = 0, frames = chain_frames(reader, &samples);

		ck_assert_int_eq((json_int_t)samples,
		                 integer_of(json_object_get(json_array_get(vcpus, i), "statistics"), "sample"));
		ck_assert(i == 0 ? frames == 0 : frames > 0);
		ring_reader_free(reader);
	}
	json_auto_t *held = peer_return(&peer, REQUEST("query-counters"));
	ck_assert_int_eq(integer_of(json_array_get(json_object_get(held, "counters"), 0), "vcpu"), 1);
}
END_TEST

/* Of its first vCPU. */
static uint64_t statistic_of(unsigned counter, const char *name)
{
	json_auto_t *answer = ask("counter-read", counter, "");
	const json_t *first = json_array_get(json_object_get(answer, "vcpus"), 0);

	return (uint64_t)integer_of(json_object_get(first, "statistics"), name);
}

static uint64_t samples_take(struct ring_reader *reader)
{
	const struct perf_event_header *record;
	uint64_t n = 0;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)))
		n += record->type == PERF_RECORD_SAMPLE;
	ring_reader_release(reader);
	return n;
}

START_TEST(a_counter_stalls_while_its_ring_is_nearly_full)
{
	unsigned counter = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\",\"frequency-hz\":5000,"
	                                   "\"vcpu\":0,\"ring-bytes\":4096,\"on-full\":\"stall\"");

	tell("counter-start", counter, "");
	while (statistic_of(counter, "stalls") == 0)
		fake_guest_burn(&fake, 20 * MS);
	json_decref(ask("counter-rings", counter, ""));
	struct ring_reader *reader = ring_reader_open(g_array_index(peer.fds, int, 0), NULL);
	uint64_t taken = samples_take(reader);

	ck_assert_uint_eq(taken, statistic_of(counter, "sample"));
	ck_assert_uint_eq(taken, statistic_of(counter, "readevt"));
	/* With room, it goes on by itself. */
	while (statistic_of(counter, "sample") == taken)
		fake_guest_burn(&fake, 10 * MS);
	tell("counter-stop", counter, "");
	taken += samples_take(reader);
	ck_assert_uint_eq(taken, statistic_of(counter, "sample"));
	ck_assert_uint_eq(statistic_of(counter, "dropevt"), 0);
	ck_assert_uint_gt(statistic_of(counter, "stalled-ns"), 0);
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_counter_says_what_its_rings_dropped)
{
	unsigned counter = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\",\"frequency-hz\":5000,"
	                                   "\"vcpu\":0,\"ring-bytes\":4096");

	tell("counter-start", counter, "");
	while (statistic_of(counter, "dropbuf-sample") == 0)
		fake_guest_burn(&fake, 20 * MS);
	tell("counter-stop", counter, "");
	ck_assert_uint_eq(statistic_of(counter, "dropevt"), statistic_of(counter, "dropbuf-sample"));
	ck_assert_uint_eq(statistic_of(counter, "dropbuf"), 1);
	ck_assert_uint_eq(statistic_of(counter, "readevt"), 0);
}
END_TEST

START_TEST(a_counter_is_read_by_descriptors)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	unsigned timer = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-counting\"");
	unsigned samples = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\"");

	refused(&peer, "counter-descriptors", counter, "", "WrongState", "must count the whole guest exactly, and run");
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 20 * MS);
	tell("counter-stop", counter, "");
	json_int_t before = value_of(counter);
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 50 * MS);
	json_auto_t *answer = ask("counter-descriptors", counter, "");
	const json_t *vcpus = json_object_get(answer, "vcpus");
	json_int_t said = 0, value = 0;

	ck_assert_uint_eq(peer.fds->len, FIXTURE_VCPUS);
	for (unsigned i = 0; i < FIXTURE_VCPUS; i++) {
		uint64_t fields[3];

		ck_assert_int_eq(read(g_array_index(peer.fds, int, i), fields, sizeof(fields)), sizeof(fields));
		ck_assert_uint_ge(fields[1], fields[2]);
		value += (json_int_t)fields[0];
		said += integer_of(json_array_get(vcpus, i), "before");
	}
	ck_assert_int_eq(said, before);
	assert_ran(value);
	tell("counter-start", timer, "");
	refused(&peer, "counter-descriptors", timer, "", "Unsupported", "none of perf's");
	tell("counter-start", samples, "");
	refused(&peer, "counter-descriptors", samples, "", "WrongState", "exactly");
}
END_TEST

START_TEST(a_counter_goes_on_from_0_after_the_largest_value)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\",\"vcpu\":1");

	tell("counter-write", counter, ",\"value\":9223372036854775807");
	ck_assert_int_eq(value_of(counter), INT64_MAX);
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 50 * MS);
	assert_span(value_of(counter) + 1, ran(1, 2));
}
END_TEST

START_TEST(an_exact_counter_may_be_of_one_vcpu)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\",\"vcpu\":1");

	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 50 * MS);
	json_auto_t *reading = ask("counter-read", counter, "");
	assert_span(integer_of(reading, "value"), ran(1, 2));
	tell("counter-stop", counter, "");
	tell("counter-write", counter, ",\"value\":7");
	ck_assert_int_eq(value_of(counter), 7);
}
END_TEST

static const struct {
	const char *arguments, *part;
} refused_chains[] = {
	{"\"mode\":\"guest-counting\",\"call-graph\":\"auto\"", "only for a sampling mode"},
	{"\"mode\":\"guest-sampling\",\"call-depth\":3", "need a"},
	{"\"mode\":\"guest-sampling\",\"call-user\":true,\"call-graph\":\"none\"", "need a"},
	{"\"mode\":\"guest-sampling\",\"call-graph\":\"orc\"", "image is not known"},
	{"\"mode\":\"guest-sampling\",\"vcpu\":2", "no vCPU 2"},
};

START_TEST(chains_that_cannot_be_are_refused)
{
	g_autofree char *request =
		g_strdup_printf(ASK("counter-allocate", "\"event\":\"timer\",%s"), refused_chains[_i].arguments);

	peer_refused(&peer, request, "InvalidArgument", refused_chains[_i].part);
	unsigned first = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\"");
	ck_assert_uint_eq(first, 0); /* nothing is left of it */
}
END_TEST

START_TEST(a_session_cannot_change_the_delivery_of_counters)
{
	json_decref(peer_return(&other, REQUEST("control-take")));
	unsigned counter = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\"");

	tell("counter-start", counter, "");
	json_decref(peer_return(&other, REQUEST("session-start")));
	json_decref(peer_return(&other, REQUEST("session-stop")));
	peer_refused(&other, ASK("session-start", "\"delivery\":\"sigmask\""), "Unsupported", "release them first");
	tell("counter-release", counter, "");
	json_decref(peer_return(&other, ASK("session-start", "\"delivery\":\"sigmask\"")));
}
END_TEST

START_TEST(a_period_can_be_set_between_runs)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-sampling\",\"period\":1000000");

	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 100 * MS);
	tell("counter-stop", counter, "");
	json_auto_t *fast = ask("counter-read", counter, "");
	assert_overflows(json_object_get(fast, "statistics"), MS);
	tell("counter-set-period", counter, ",\"period\":10000000");
	ran_from_here();
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, 100 * MS);
	refused(&peer, "counter-set-period", counter, ",\"period\":10000000", "Busy", "while it is running");
	tell("counter-stop", counter, "");
	json_auto_t *slow = ask("counter-read", counter, "");
	assert_overflows(json_object_get(slow, "statistics"), 10 * MS);
}
END_TEST

/* The fake guest has no tasks that anybody could read, but page tables. */
START_TEST(page_tables_limit_samples)
{
	static const char *const kinds[] = {"\"mode\":\"task-sampling\"",
	                                    "\"mode\":\"task-counting\",\"estimate\":true"};
	g_autofree char *arguments = g_strdup_printf("\"event\":\"task-clock\",\"frequency-hz\":2000,%s", kinds[_i]);
	unsigned counter = allocate(&peer, arguments);

	refused(&peer, "counter-start", counter, "", "WrongState", "attach it");
	tell("counter-attach", counter, ",\"cr3\":131072");
	refused(&peer, "counter-attach", counter, ",\"cr3\":131073", "WrongState", "already");
	tell("counter-start", counter, "");
	fake_guest_burn(&fake, SAMPLED_MS * MS);
	json_auto_t *answer = ask("counter-read", counter, "");
	const json_t *modes = json_object_get(answer, "modes"), *statistics = json_object_get(answer, "statistics");
	double n = (double)(integer_of(statistics, "sample") + integer_of(statistics, "filtered"));

	ck_assert_int_eq(integer_of(modes, "kernel"), 0);
	ck_assert_int_eq(integer_of(modes, "user"), integer_of(answer, "value"));
	assert_share((double)integer_of(statistics, "sample"), n, 0.25);
	/* Detached while it runs, and attached again. */
	tell("counter-detach", counter, ",\"cr3\":131072");
	const json_int_t before = value_of(counter);

	fake_guest_burn(&fake, 20 * MS);
	ck_assert_int_eq(value_of(counter), before);
	tell("counter-attach", counter, ",\"cr3\":131072");
	while (value_of(counter) == before)
		fake_guest_burn(&fake, 10 * MS);
	tell("counter-stop", counter, "");
	refused(&peer, "counter-detach", counter, ",\"cr3\":65536", "WrongState", "not attached");
	tell("counter-detach", counter, ",\"cr3\":131072");
	refused(&peer, "counter-start", counter, "", "WrongState", "attach it");
}
END_TEST

START_TEST(a_counter_is_its_owners)
{
	unsigned counter = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	g_autofree char *holder = g_strdup_printf("another client (pid %d, uid %u)", getpid(), geteuid());
	static const char *const methods[] = {"counter-start", "counter-stop", "counter-read", "counter-release",
	                                      "counter-rings"};

	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
		refused(&other, methods[i], counter, "", "PermissionDenied", holder);
	refused(&other, "counter-write", counter, ",\"value\":1", "PermissionDenied", holder);
	refused(&other, "counter-set-period", counter, ",\"period\":1", "PermissionDenied", holder);
	refused(&other, "counter-attach", counter, ",\"pid\":1", "PermissionDenied", holder);
	tell("counter-start", counter, "");
}
END_TEST

START_TEST(counters_are_listed)
{
	unsigned first = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	unsigned second = allocate(&other, "\"event\":\"timer:k\",\"mode\":\"task-sampling\",\"period\":1000000,"
	                                   "\"descendants\":true");
	g_autofree char *attach = about("counter-attach", second, ",\"cr3\":4096");

	json_decref(peer_return(&other, attach));
	tell("counter-start", first, "");
	json_auto_t *counters = peer_return(&peer, REQUEST("query-counters"));
	g_autofree char *expected = g_strdup_printf(
		"{\"total\":32,\"counters\":[{\"counter\":%u,\"state\":\"running\",\"disposition\":\"standalone\","
		"\"pid\":%d,"
		"\"uid\":%u,\"yours\":true,\"mode\":\"guest-counting\",\"event\":\"task-clock\",\"backend\":\"perf-"
		"clock\","
		"\"frequency-hz\":0,\"period\":0,\"estimate\":false,\"descendants\":false,\"targets\":[]},"
		"{\"counter\":%u,\"state\":\"allocated\",\"disposition\":\"task\",\"pid\":%d,\"uid\":%u,\"yours\":"
		"false,"
		"\"mode\":\"task-sampling\",\"event\":\"timer:k\",\"backend\":\"timer\",\"frequency-hz\":0,"
		"\"period\":1000000,\"estimate\":false,\"descendants\":true,\"targets\":[{\"cr3\":\"0x1000\"}]}]}",
		first, getpid(), geteuid(), second, getpid(), geteuid());
	assert_json(counters, expected);
}
END_TEST

START_TEST(what_a_dead_client_held_is_free)
{
	struct peer dying;

	peer_join(&dying);
	for (unsigned i = 0; i < 3; i++) {
		unsigned counter = allocate(&dying, i == 0 ? "\"event\":\"timer\",\"mode\":\"guest-counting\""
		                                           : "\"event\":\"timer\",\"mode\":\"guest-sampling\"");
		g_autofree char *start = about("counter-start", counter, "");

		json_decref(peer_return(&dying, start));
	}
	peer_deinit(&dying);
	fixture_settle();
	json_auto_t *counters = peer_return(&peer, REQUEST("query-counters"));
	assert_json(json_object_get(counters, "counters"), "[]");
	fake_guest_burn(&fake, 20 * MS); /* it has no watcher any more */
}
END_TEST

START_TEST(a_disabled_counter_is_not_given_out)
{
	refused(&peer, "counter-disable", 0, "", "PermissionDenied", "control-take");
	json_decref(peer_return(&peer, REQUEST("control-take")));
	tell("counter-disable", 0, "");
	unsigned counter = allocate(&other, "\"event\":\"timer\",\"mode\":\"guest-counting\"");
	ck_assert_uint_eq(counter, 1);
	refused(&peer, "counter-disable", counter, "", "Busy", "belongs to a client");
	json_auto_t *counters = peer_return(&peer, REQUEST("query-counters"));
	assert_json(json_array_get(json_object_get(counters, "counters"), 0),
	            "{\"counter\":0,\"state\":\"disabled\",\"disposition\":\"unavailable\"}");
	tell("counter-enable", 0, "");
	ck_assert_uint_eq(allocate(&other, "\"event\":\"timer\",\"mode\":\"guest-counting\""), 0);
}
END_TEST

START_TEST(there_are_so_many_counters)
{
	for (unsigned i = 0; i < 32; i++)
		ck_assert_uint_eq(allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-counting\""), i);
	peer_refused(&other, ASK("counter-allocate", "\"event\":\"timer\",\"mode\":\"guest-counting\""), "Busy",
	             "all 32 are in use");
}
END_TEST

static const struct {
	const char *arguments, *class, *part;
} impossible[] = {
	{"\"event\":\"task-clock:u\",\"mode\":\"guest-counting\"", "Unsupported", "whatever the guest's mode"},
	{"\"event\":\"timer:k\",\"mode\":\"task-counting\"", "Unsupported", "whatever the guest's mode"},
	{"\"event\":\"nonsense\",\"mode\":\"guest-counting\"", "InvalidArgument", "unknown event"},
	{"\"event\":\"task-clock\",\"mode\":\"both\"", "InvalidArgument", "one of guest-counting"},
	{"\"event\":\"timer\",\"mode\":\"guest-counting\",\"descendants\":true", "InvalidArgument",
         "only in a task mode"},
	{"\"event\":\"timer\",\"mode\":\"guest-counting\",\"period\":1000000", "InvalidArgument", "without samples"},
	{"\"event\":\"timer\",\"mode\":\"guest-counting\",\"ring-bytes\":4096", "InvalidArgument", "a sampling mode"},
	{"\"event\":\"timer\",\"mode\":\"guest-counting\",\"on-full\":\"stall\"", "InvalidArgument", "a sampling mode"},
	{"\"event\":\"timer\",\"mode\":\"guest-sampling\",\"estimate\":true", "InvalidArgument", "a counting mode"},
	{"\"event\":\"timer\",\"mode\":\"guest-counting\",\"per-switch\":true", "InvalidArgument", "only exactly"},
	{"\"event\":\"timer\",\"mode\":\"task-sampling\",\"per-switch\":true", "InvalidArgument", "only exactly"},
	{"\"event\":\"timer\",\"mode\":\"task-counting\",\"per-switch\":true,\"estimate\":true", "InvalidArgument",
         "only exactly"},
	{"\"event\":\"timer\",\"mode\":\"guest-sampling\",\"period\":1", "InvalidArgument", "out of range"},
	{"\"event\":\"timer\",\"mode\":\"guest-sampling\",\"ring-bytes\":5000", "InvalidArgument", "power of two"},
	{"\"event\":\"timer\",\"mode\":\"guest-sampling\",\"period\":1000000,\"frequency-hz\":1", "InvalidArgument",
         "exclude each other"},
};

START_TEST(what_cannot_be_counted_is_refused_with_the_reason)
{
	g_autofree char *request = g_strdup_printf(ASK("counter-allocate", "%s"), impossible[_i].arguments);

	peer_refused(&peer, request, impossible[_i].class, impossible[_i].part);
	json_auto_t *counters = peer_return(&peer, REQUEST("query-counters"));
	assert_json(json_object_get(counters, "counters"), "[]");
}
END_TEST

START_TEST(states_are_checked)
{
	unsigned counting = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-counting\"");
	unsigned task = allocate(&peer, "\"event\":\"timer\",\"mode\":\"task-counting\"");
	unsigned sampling = allocate(&peer, "\"event\":\"timer\",\"mode\":\"guest-sampling\"");

	ck_assert_int_eq(value_of(counting), 0); /* it can be read before its start */
	tell("counter-write", counting, ",\"value\":9");
	ck_assert_int_eq(value_of(counting), 9);
	refused(&peer, "counter-stop", counting, "", "WrongState", "is not running");
	refused(&peer, "counter-attach", counting, ",\"pid\":1", "WrongState", "counts the whole guest");
	refused(&peer, "counter-set-period", counting, ",\"period\":1000000", "WrongState", "counts exactly");
	refused(&peer, "counter-rings", counting, "", "WrongState", "has no rings");
	refused(&peer, "counter-write", sampling, ",\"value\":1", "WrongState", "adds up samples");
	refused(&peer, "counter-set-period", sampling, "", "InvalidArgument", "needs a frequency");
	refused(&peer, "counter-attach", task, "", "InvalidArgument", "one of");
	refused(&peer, "counter-attach", task, ",\"pid\":1,\"comm\":\"x\"", "InvalidArgument", "one of");
	refused(&peer, "counter-attach", task, ",\"pid\":1", "Unsupported", "kernel image is not known");
	tell("counter-attach", task, ",\"cr3\":4096");
	refused(&peer, "counter-start", task, "", "Unsupported", "takes no breakpoints");
	for (unsigned i = 2; i < 9; i++) {
		g_autofree char *cr3 = g_strdup_printf(",\"cr3\":%u", i * 4096);

		tell("counter-attach", task, cr3);
	}
	refused(&peer, "counter-attach", task, ",\"cr3\":65536", "Busy", "which is the maximum");
	tell("counter-start", counting, "");
	refused(&peer, "counter-start", counting, "", "WrongState", "is already running");
	refused(&peer, "counter-write", counting, ",\"value\":1", "Busy", "while it is running");
	refused(&peer, "counter-start", 31, "", "InvalidArgument", "is not allocated");
}
END_TEST

START_TEST(an_ended_guests_counters_keep_their_value)
{
	unsigned counting = allocate(&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	unsigned estimate = allocate(
		&peer, "\"event\":\"task-clock\",\"mode\":\"guest-counting\",\"estimate\":true,\"frequency-hz\":2000");

	ran_from_here();
	tell("counter-start", counting, "");
	tell("counter-start", estimate, "");
	fake_guest_burn(&fake, 100 * MS);
	fixture_guest_stop(&fake.guest, GUEST_END_POWER_OFF, "over");
	json_decref(peer_event(&peer, "guest-ended"));
	assert_ran(value_of(counting));
	json_auto_t *estimated = ask("counter-read", estimate, "");
	assert_estimate(estimated, MS / 2);
	tell("counter-stop", counting, "");
	assert_ran(value_of(counting));
	refused(&peer, "counter-start", counting, "", "WrongState", "has ended");
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_counters");
	TCase *tc = tcase_create("counters");

	tcase_set_timeout(tc, 30);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_guest_is_counted_while_the_counter_runs, 0, 2);
	tcase_add_test(tc, an_estimate_tells_modes_apart);
	tcase_add_test(tc, an_estimate_may_be_of_one_mode);
	tcase_add_test(tc, a_sampling_counter_fills_its_rings_beside_a_session);
	tcase_add_test(tc, a_sampling_counter_of_one_vcpu_has_call_chains);
	tcase_add_test(tc, a_counter_stalls_while_its_ring_is_nearly_full);
	tcase_add_test(tc, a_counter_says_what_its_rings_dropped);
	tcase_add_test(tc, a_counter_is_read_by_descriptors);
	tcase_add_test(tc, a_counter_goes_on_from_0_after_the_largest_value);
	tcase_add_test(tc, an_exact_counter_may_be_of_one_vcpu);
	tcase_add_loop_test(tc, chains_that_cannot_be_are_refused, 0, G_N_ELEMENTS(refused_chains));
	tcase_add_test(tc, a_session_cannot_change_the_delivery_of_counters);
	tcase_add_test(tc, a_period_can_be_set_between_runs);
	tcase_add_loop_test(tc, page_tables_limit_samples, 0, 2);
	tcase_add_test(tc, a_counter_is_its_owners);
	tcase_add_test(tc, counters_are_listed);
	tcase_add_test(tc, what_a_dead_client_held_is_free);
	tcase_add_test(tc, a_disabled_counter_is_not_given_out);
	tcase_add_test(tc, there_are_so_many_counters);
	tcase_add_loop_test(tc, what_cannot_be_counted_is_refused_with_the_reason, 0, G_N_ELEMENTS(impossible));
	tcase_add_test(tc, states_are_checked);
	tcase_add_test(tc, an_ended_guests_counters_keep_their_value);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
