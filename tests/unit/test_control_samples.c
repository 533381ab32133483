// SPDX-License-Identifier: BSD-2-Clause
/* Configuration keys, and samples over the socket: read, waited for, added, given back. Sessions on a guest without
 * KVM. */
#include <string.h>
#include <vprof/recording.h>
#include <vprof/ring.h>

#include "control_fixture.h"
#include "lib/record/record.h"
#include "run_suite.h"

#define MS UINT64_C(1000000)
#define START(arguments) "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"task-clock\"]" arguments "}}"
#define READ(arguments) "{\"execute\":\"samples-read\",\"arguments\":{" arguments "}}"

static struct peer peer, other; /* the one has the control role */

static void setup(void)
{
	fixture_setup();
	peer_join_control(&peer);
	peer_join(&other);
}

static void teardown(void)
{
	peer_deinit(&peer);
	peer_deinit(&other);
	fixture_teardown();
}

static void done(const char *request)
{
	json_decref(peer_return(&peer, request));
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	ck_assert_msg(json_is_integer(value), "no integer %s", name);
	return json_integer_value(value);
}

static const char *const limits[] = {"type", "min", "max", "choices", NULL};

static void assert_key(const char *name, const char *expected)
{
	json_auto_t *keys = peer_return(&other, REQUEST("query-configuration"));
	json_t *key = json_object_get(keys, name);

	/* What it may be is asserted by itself. */
	for (const char *const *limit = limits; *limit; limit++)
		json_object_del(key, *limit);
	assert_json(key, expected);
}

START_TEST(keys_have_defaults_and_are_set)
{
	assert_key("ring-bytes", "{\"value\":1048576,\"default\":1048576,\"set\":false}");
	assert_key("events", "{\"value\":null,\"default\":null,\"set\":false}");
	assert_key("on-full", "{\"value\":\"drop\",\"default\":\"drop\",\"set\":false}");
	json_auto_t *keys = peer_return(&other, REQUEST("query-configuration"));
	assert_json(json_object_get(keys, "call-depth"),
	            "{\"type\":\"integer\",\"min\":1,\"max\":127,\"value\":64,\"default\":64,\"set\":false}");
	assert_json(json_object_get(keys, "on-full"), "{\"type\":\"string\",\"choices\":[\"drop\",\"stall\"],\"value\":"
	                                              "\"drop\",\"default\":\"drop\",\"set\":false}");
	done("{\"execute\":\"session-configure\",\"arguments\":{\"ring-bytes\":8192,\"on-full\":\"stall\","
	     "\"call-user\":false}}");
	assert_key("ring-bytes", "{\"value\":8192,\"default\":1048576,\"set\":true}");
	assert_key("on-full", "{\"value\":\"stall\",\"default\":\"drop\",\"set\":true}");
	assert_key("call-user", "{\"value\":false,\"default\":true,\"set\":true}");
	done("{\"execute\":\"reset\",\"arguments\":{\"what\":\"configuration\"}}");
	assert_key("ring-bytes", "{\"value\":1048576,\"default\":1048576,\"set\":false}");
}
END_TEST

START_TEST(trace_flags_are_a_key)
{
	assert_key("trace", "{\"value\":[],\"default\":[],\"set\":false}");
	done("{\"execute\":\"session-configure\",\"arguments\":{\"trace\":[\"console\",\"phases\"]}}");
	assert_key("trace", "{\"value\":[\"phases\",\"console\"],\"default\":[],\"set\":true}");
	done("{\"execute\":\"trace-set\",\"arguments\":{\"what\":\"phases\",\"state\":\"off\"}}");
	assert_key("trace", "{\"value\":[\"console\"],\"default\":[],\"set\":true}");
	peer_refused(&peer, "{\"execute\":\"session-configure\",\"arguments\":{\"trace\":[\"console\",\"all\"]}}",
	             "InvalidArgument", "an array of any of exits, phases, console, requests");
	done("{\"execute\":\"session-configure\",\"arguments\":{\"trace\":[\"requests\"]}}");
	assert_key("trace", "{\"value\":[\"requests\"],\"default\":[],\"set\":true}");
	json_auto_t *lines = peer_return(&peer, REQUEST("trace-read"));
	ck_assert(strstr(json_string_value(json_object_get(lines, "text")), "query-configuration"));
	done("{\"execute\":\"reset\",\"arguments\":{\"what\":\"configuration\"}}");
	assert_key("trace", "{\"value\":[],\"default\":[],\"set\":false}");
	done("{\"execute\":\"reset\",\"arguments\":{\"what\":\"trace\"}}");
	json_auto_t *left = peer_return(&peer, REQUEST("trace-read"));
	ck_assert_str_eq(json_string_value(json_object_get(left, "text")), "");
	ck_assert_int_gt(integer_of(left, "missed"), 0);
}
END_TEST

START_TEST(keys_are_checked_and_kept_whole)
{
	done("{\"execute\":\"session-configure\",\"arguments\":{\"ring-bytes\":8192}}");
	peer_refused(&peer, "{\"execute\":\"session-configure\",\"arguments\":{\"call-depth\":9,\"ring-bytes\":5000}}",
	             "InvalidArgument", "power of two");
	assert_key("call-depth", "{\"value\":64,\"default\":64,\"set\":false}");
	peer_refused(&peer, "{\"execute\":\"session-configure\",\"arguments\":{\"events\":[\"nonsense\"]}}",
	             "InvalidArgument", "nonsense");
	peer_refused(&other, REQUEST("session-configure"), "Busy", "holds the control role");
	assert_key("ring-bytes", "{\"value\":8192,\"default\":1048576,\"set\":true}");
}
END_TEST

START_TEST(the_rate_said_last_counts)
{
	done("{\"execute\":\"session-configure\",\"arguments\":{\"frequency-hz\":500}}");
	done("{\"execute\":\"session-configure\",\"arguments\":{\"period\":3000000}}");
	assert_key("frequency-hz", "{\"value\":999,\"default\":999,\"set\":false}");
	assert_key("period", "{\"value\":3000000,\"default\":null,\"set\":true}");
	done(START(""));
	ck_assert_uint_eq(session_configuration(session)->rate.period, 3000000);
	done(REQUEST("session-stop"));
	done(START(",\"frequency-hz\":250"));
	ck_assert_uint_eq(session_configuration(session)->rate.frequency_hz, 250);
}
END_TEST

START_TEST(a_session_has_the_keys_that_were_set)
{
	done("{\"execute\":\"session-configure\",\"arguments\":{\"ring-bytes\":8192,\"on-full\":\"stall\","
	     "\"watermark-bytes\":640,\"call-depth\":7,\"call-graph\":\"fp\",\"tasks\":false,\"delivery\":\"setsig\"}"
	     "}");
	done(START(",\"call-depth\":5"));
	const struct session_config *config = session_configuration(session);

	ck_assert_uint_eq(config->ring_data_bytes, 8192);
	ck_assert(config->stall);
	ck_assert_uint_eq(config->watermark_bytes, 640);
	ck_assert_uint_eq(config->call_depth, 5);
	ck_assert_int_eq(config->call_graph, SESSION_CALL_GRAPH_FP);
	ck_assert(config->no_tasks);
	ck_assert_str_eq(config->delivery, "setsig");
	done("{\"execute\":\"session-configure\",\"arguments\":{\"watermark-bytes\":64}}");
	ck_assert_uint_eq(session_configuration(session)->watermark_bytes, 64);
}
END_TEST

/* The records of an answer: how many, and that they are whole. */
static uint64_t count_records(const json_t *answer)
{
	gsize n, at = 0;

	g_autofree guchar *bytes = g_base64_decode(json_string_value(json_object_get(answer, "data")), &n);
	uint64_t records = 0;

	ck_assert_int_eq(integer_of(answer, "next") - integer_of(answer, "offset"), (json_int_t)n);
	for (const struct perf_event_header *record; (record = record_check(bytes + at, n - at)); at += record->size)
		records++;
	ck_assert_uint_eq(at, n);
	return records;
}

static uint64_t samples(unsigned vcpu)
{
	struct session_statistics figures;

	session_statistics_read(session, vcpu, &figures);
	return figures.sample;
}

START_TEST(samples_are_read_in_parts_and_read_on)
{
	done(START(",\"frequency-hz\":2000"));
	while (samples(1) <= 20)
		fake_guest_burn(&fake, 10 * MS);
	done(REQUEST("session-stop"));
	uint64_t records = 0;
	json_int_t offset = 0;
	bool end = false;

	while (!end) {
		/* 4 samples at a time, each time over another connection. */
		struct peer reader;
		peer_join(&reader);
		g_autofree char *request =
			g_strdup_printf(READ("\"vcpu\":1,\"session\":1,\"max-bytes\":250,\"offset\":%lld"), offset);
		json_auto_t *answer = peer_return(&reader, request);

		ck_assert_int_eq(integer_of(answer, "offset"), offset);
		ck_assert_int_eq(integer_of(answer, "missed"), 0);
		ck_assert_int_eq(integer_of(answer, "vcpu"), 1);
		ck_assert_uint_le(count_records(answer), 4);
		records += count_records(answer);
		offset = integer_of(answer, "next");
		end = json_is_true(json_object_get(answer, "end"));
		peer_deinit(&reader);
	}
	ck_assert_uint_gt(records, 20);
	ck_assert_uint_eq(records, samples(1));
}
END_TEST

START_TEST(the_holder_of_control_gives_back_and_others_do_not)
{
	done(START(",\"frequency-hz\":2000,\"ring-bytes\":4096"));
	fake_guest_burn(&fake, 20 * MS);
	size_t unread = ring_unread(session_ring(session, 0));
	json_auto_t *first = peer_return(&other, READ(""));
	g_autofree char *on = g_strdup_printf(READ("\"offset\":%lld"), integer_of(first, "next"));

	json_decref(peer_return(&other, on));
	ck_assert_uint_ge(ring_unread(session_ring(session, 0)), unread);
	json_decref(peer_return(&peer, on));
	ck_assert_uint_eq(ring_unread(session_ring(session, 0)),
	                  ring_head(session_ring(session, 0)) - (uint64_t)integer_of(first, "next"));
	/* A client has the rings: only that client gives room back. */
	json_decref(peer_return(&other, READ("\"offset\":0")));
	done(REQUEST("rings"));
	fake_guest_burn(&fake, 10 * MS);
	unread = ring_unread(session_ring(session, 0));
	g_autofree char *end =
		g_strdup_printf(READ("\"offset\":%lld"), (json_int_t)ring_head(session_ring(session, 0)));
	json_decref(peer_return(&peer, end));
	ck_assert_uint_eq(ring_unread(session_ring(session, 0)), unread);
}
END_TEST

START_TEST(what_is_overwritten_is_said_to_be_missed)
{
	done(START(",\"frequency-hz\":5000,\"ring-bytes\":4096"));
	json_int_t oldest = 0;

	while (oldest <= 4096) {
		fake_guest_burn(&fake, 8 * MS);
		g_autofree char *request =
			g_strdup_printf(READ("\"offset\":%lld"), (json_int_t)ring_head(session_ring(session, 0)));
		done(request);
		oldest = (json_int_t)(ring_head(session_ring(session, 0)) - ring_unread(session_ring(session, 0)));
	}
	json_auto_t *answer = peer_return(&other, READ("\"offset\":0"));
	ck_assert_int_eq(integer_of(answer, "missed"), integer_of(answer, "offset"));
	ck_assert_int_eq(integer_of(answer, "offset"), oldest);
}
END_TEST

static const struct {
	const char *request, *class, *part;
} refused_reads[] = {
	{READ("\"offset\":8"), "InvalidArgument", "no record"},
	{READ("\"offset\":4"), "InvalidArgument", "no record begins at offset 4"},
	{READ("\"offset\":1000000"), "InvalidArgument", "the end is"},
	{READ("\"vcpu\":2"), "InvalidArgument", "there is no vCPU 2: guest fixture has 2"},
	{READ("\"session\":2"), "WrongState", "no samples of session 2"},
};

START_TEST(wrong_reads_are_refused)
{
	peer_refused(&peer, READ(""), "WrongState", "no session yet");
	done(START(",\"frequency-hz\":2000"));
	fake_guest_burn(&fake, 10 * MS);
	peer_refused(&peer, refused_reads[_i].request, refused_reads[_i].class, refused_reads[_i].part);
	peer_refused(&other, refused_reads[_i].request, refused_reads[_i].class, refused_reads[_i].part);
	json_auto_t *answer = peer_return(&peer, READ("\"offset\":0"));
	ck_assert_uint_gt(count_records(answer), 0);
}
END_TEST

START_TEST(a_read_waits_for_samples)
{
	done(START(",\"frequency-hz\":1000"));
	peer_say(&other, READ("\"timeout-ms\":10000"));
	fixture_settle();
	fake_guest_burn(&fake, 5 * MS);
	json_auto_t *line = peer_line(&other);
	ck_assert_uint_gt(count_records(json_object_get(line, "return")), 0);
	ck_assert(json_is_false(json_object_get(json_object_get(line, "return"), "end")));
}
END_TEST

/* The controller reads on meanwhile; what the other waited for is in the ring still. */
START_TEST(a_wait_begins_where_it_began)
{
	done(START(",\"frequency-hz\":2000"));
	fake_guest_burn(&fake, 5 * MS);
	peer_say(&other, READ("\"timeout-ms\":60000,\"min-bytes\":40000"));
	fixture_settle();
	g_autofree char *on = g_strdup_printf(READ("\"offset\":%lld"), (json_int_t)ring_head(session_ring(session, 0)));
	json_decref(peer_return(&peer, on));
	done(REQUEST("session-stop"));
	json_auto_t *line = peer_line(&other);
	const json_t *answer = json_object_get(line, "return");
	ck_assert_int_eq(integer_of(answer, "offset"), 0);
	ck_assert_uint_eq(count_records(answer), samples(0));
}
END_TEST

START_TEST(a_wait_ends_in_time)
{
	done(START(",\"frequency-hz\":1000"));
	int64_t begin = g_get_monotonic_time();
	json_auto_t *answer = peer_return(&other, READ("\"timeout-ms\":100"));
	ck_assert_int_ge(g_get_monotonic_time() - begin, 100000);
	ck_assert_uint_eq(count_records(answer), 0);

	/* Requests behind one that waits wait too, and others' do not. */
	peer_say(&other, READ("\"timeout-ms\":100"));
	peer_say(&other, REQUEST("query-status"));
	json_decref(peer_return(&peer, REQUEST("query-status")));
	json_auto_t *first = peer_line(&other), *second = peer_line(&other);
	ck_assert_ptr_nonnull(json_object_get(json_object_get(first, "return"), "data"));
	ck_assert_ptr_nonnull(json_object_get(json_object_get(second, "return"), "state"));
}
END_TEST

START_TEST(a_flush_and_the_end_end_a_wait)
{
	done(START(",\"frequency-hz\":1000"));
	fake_guest_burn(&fake, 5 * MS);
	peer_say(&other, READ("\"timeout-ms\":60000,\"min-bytes\":40000"));
	fixture_settle();
	json_auto_t *flushed = peer_return(&peer, REQUEST("session-flush"));
	json_auto_t *line = peer_line(&other);
	const json_t *answer = json_object_get(line, "return");
	ck_assert_uint_gt(count_records(answer), 0);
	ck_assert(json_equal(json_object_get(answer, "next"), json_array_get(json_object_get(flushed, "ends"), 0)));

	g_autofree char *on = g_strdup_printf(READ("\"timeout-ms\":60000,\"offset\":%lld"), integer_of(answer, "next"));
	peer_say(&other, on);
	fixture_settle();
	done(REQUEST("session-stop"));
	json_auto_t *last = peer_line(&other);
	ck_assert(json_is_true(json_object_get(json_object_get(last, "return"), "end")));
	peer_refused(&peer, REQUEST("session-flush"), "WrongState", "no session is running");
}
END_TEST

START_TEST(who_goes_while_waiting_is_let_go)
{
	done(START(",\"frequency-hz\":1000"));
	peer_say(&other, READ("\"timeout-ms\":60000"));
	fixture_settle();
	close(other.fd);
	other.fd = -1;
	for (int64_t until = g_get_monotonic_time() + 100000; g_get_monotonic_time() < until;)
		fixture_iterate();
	json_auto_t *answer = peer_return(&peer, REQUEST("query-clients"));
	ck_assert_uint_eq(json_array_size(json_object_get(answer, "clients")), 1);
}
END_TEST

START_TEST(samples_are_added_by_hand)
{
	peer_refused(&peer, "{\"execute\":\"sample-add\",\"arguments\":{\"ip\":1}}", "WrongState", "no session");
	done("{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"timer\"],\"frequency-hz\":1}}");
	peer_refused(&peer, "{\"execute\":\"sample-add\",\"arguments\":{\"ip\":1,\"vcpu\":2}}", "InvalidArgument",
	             "there is no vCPU 2");
	done("{\"execute\":\"sample-add\",\"arguments\":{\"ip\":\"0xffffffff81000000\",\"vcpu\":1,\"mode\":\"vmm\","
	     "\"pid\":4294967295,\"period\":3}}");
	json_auto_t *answer = peer_return(&other, READ("\"vcpu\":1"));
	gsize n;
	g_autofree guchar *bytes = g_base64_decode(json_string_value(json_object_get(answer, "data")), &n);
	struct record_sample sample;
	ck_assert(record_sample_decode((const void *)bytes, n, VPROF_SAMPLE_TYPE, &sample));
	ck_assert_uint_eq(sample.ip, UINT64_C(0xffffffff81000000));
	ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_HYPERVISOR | VPROF_SAMPLE_ADDED);
	ck_assert_uint_eq(sample.pid, UINT32_MAX);
	ck_assert_uint_eq(sample.tid, UINT32_MAX);
	ck_assert_uint_eq(sample.period, 3);
}
END_TEST

START_TEST(figures_and_sessions_are_reset)
{
	done(START(",\"frequency-hz\":2000"));
	fake_guest_burn(&fake, 10 * MS);
	peer_refused(&peer, "{\"execute\":\"reset\",\"arguments\":{\"what\":\"session\"}}", "WrongState", "stop it");
	done("{\"execute\":\"reset\",\"arguments\":{\"what\":\"statistics\"}}");
	ck_assert_uint_eq(samples(0), 0);
	ck_assert(session_running(session));
	done(REQUEST("session-stop"));
	done("{\"execute\":\"reset\",\"arguments\":{\"what\":\"session\"}}");
	peer_refused(&peer, REQUEST("query-stats"), "WrongState", "no session yet");
	json_auto_t *again = peer_return(&peer, START(""));
	ck_assert_int_eq(integer_of(again, "session"), 2);
}
END_TEST

START_TEST(a_stalled_session_goes_on_by_itself)
{
	done(START(",\"frequency-hz\":5000,\"ring-bytes\":4096,\"on-full\":\"stall\""));
	fake_guest_burn(&fake, 50 * MS);
	json_int_t offset = 0;
	uint64_t records = 0;
	for (unsigned i = 0; i < 4; i++) {
		g_autofree char *request = g_strdup_printf(READ("\"offset\":%lld,\"timeout-ms\":5000"), offset);

		fake_guest_burn(&fake, 20 * MS);
		json_auto_t *answer = peer_return(&peer, request);
		records += count_records(answer);
		offset = integer_of(answer, "next");
		/* Reading on gives the room back; the counters follow within the server's turn. */
		g_autofree char *on = g_strdup_printf(READ("\"offset\":%lld"), offset);
		done(on);
		for (int64_t until = g_get_monotonic_time() + 50000; g_get_monotonic_time() < until;)
			fixture_iterate();
	}
	struct session_statistics figures;
	session_statistics_read(session, 0, &figures);
	ck_assert_uint_gt(figures.stalls, 1);
	ck_assert_uint_gt(figures.stalled_ns, 0);
	ck_assert_uint_eq(figures.dropevt, 0);
	ck_assert_uint_gt(records, 3072 / 56 + 10);
}
END_TEST

static json_t *answer_after_events(struct peer *of)
{
	json_t *line = peer_line(of);

	while (json_object_get(line, "event")) {
		json_decref(line);
		line = peer_line(of);
	}
	return line;
}

/* Only the client that waits could make room for more. The ring is nearly full (0), or as full as its watermark (1). */
START_TEST(a_full_ring_ends_a_wait)
{
	done(_i == 0 ? START(",\"frequency-hz\":2000,\"ring-bytes\":4096,\"watermark-bytes\":4096,\"on-full\":\"stall\"")
	             : START(",\"frequency-hz\":2000,\"ring-bytes\":8192,\"watermark-bytes\":3072"));
	json_int_t offset = 0;

	for (unsigned i = 0; i < 3; i++) {
		g_autofree char *wait =
			g_strdup_printf(READ("\"offset\":%lld,\"min-bytes\":45056,\"timeout-ms\":60000"), offset);

		peer_say(&peer, wait);
		fake_guest_burn_begin(&fake, 200 * MS);
		json_auto_t *line = answer_after_events(&peer);
		const json_t *answer = json_object_get(line, "return");

		ck_assert_uint_ge(count_records(answer), 3072 / 56);
		offset = integer_of(answer, "next");
	}
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_samples");
	TCase *tc = tcase_create("samples");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, keys_have_defaults_and_are_set);
	tcase_add_test(tc, trace_flags_are_a_key);
	tcase_add_test(tc, keys_are_checked_and_kept_whole);
	tcase_add_test(tc, the_rate_said_last_counts);
	tcase_add_test(tc, a_session_has_the_keys_that_were_set);
	tcase_add_test(tc, samples_are_read_in_parts_and_read_on);
	tcase_add_test(tc, the_holder_of_control_gives_back_and_others_do_not);
	tcase_add_test(tc, what_is_overwritten_is_said_to_be_missed);
	tcase_add_loop_test(tc, wrong_reads_are_refused, 0, G_N_ELEMENTS(refused_reads));
	tcase_add_test(tc, a_read_waits_for_samples);
	tcase_add_test(tc, a_wait_begins_where_it_began);
	tcase_add_test(tc, a_wait_ends_in_time);
	tcase_add_test(tc, a_flush_and_the_end_end_a_wait);
	tcase_add_loop_test(tc, a_full_ring_ends_a_wait, 0, 2);
	tcase_add_test(tc, who_goes_while_waiting_is_let_go);
	tcase_add_test(tc, samples_are_added_by_hand);
	tcase_add_test(tc, figures_and_sessions_are_reset);
	tcase_add_test(tc, a_stalled_session_goes_on_by_itself);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
