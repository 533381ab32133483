// SPDX-License-Identifier: BSD-2-Clause
/* The methods on guest and session, with real sessions on a guest that needs no KVM, and the events. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vprof/recording.h>
#include <vprof/ring.h>

#include "control_fixture.h"
#include "run_suite.h"

#define MS UINT64_C(1000000)

static struct peer peer;

static void setup(void)
{
	fixture_setup();
	peer_join_control(&peer);
}

static void teardown(void)
{
	peer_deinit(&peer);
	fixture_teardown();
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	ck_assert_msg(json_is_integer(value), "no integer %s", name);
	return json_integer_value(value);
}

static void assert_status(const char *state, const char *session_state)
{
	json_auto_t *status = peer_return(&peer, REQUEST("query-status"));

	ck_assert_str_eq(json_string_value(json_object_get(status, "state")), state);
	ck_assert_str_eq(json_string_value(json_object_get(status, "session")), session_state);
	ck_assert_int_eq(integer_of(status, "pid"), getpid());
	ck_assert_int_gt(integer_of(status, "uptime-ns"), 0);
	ck_assert_int_eq(json_object_get(status, "end") != NULL, g_str_equal(state, "ended"));
}

START_TEST(status_follows_guest_and_session)
{
	assert_status("created", "idle");
	json_decref(peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"timer\"]}}"));
	assert_status("created", "running");
	json_decref(peer_return(&peer, REQUEST("guest-start")));
	assert_status("running", "running");
	json_decref(peer_return(&peer, REQUEST("session-stop")));
	assert_status("running", "idle");
	json_decref(peer_return(&peer, REQUEST("guest-stop")));
	assert_status("ended", "idle");
}
END_TEST

START_TEST(guest_is_null_where_unknown)
{
	json_auto_t *guest = peer_return(&peer, REQUEST("query-guest"));

	assert_json(
		guest,
		"{\"name\":\"fixture\",\"kind\":\"fake\",\"kernel\":null,\"initrd\":null,"
		"\"command-line\":null,\"build-id\":null,\"release\":null,\"pmu\":null,\"memory-bytes\":0,\"vcpus\":2,"
		"\"vsock-cid\":null,\"quirks\":[]}");
}
END_TEST

START_TEST(guest_is_described)
{
	char *quirks[] = {(char *)"masks vmcall", (char *)"no \xff", NULL};

	fake.guest.kernel_path = (char *)"/k\n";
	fake.guest.initrd_path = (char *)"/i\xc3\xbc";
	fake.guest.command_line = (char *)"console=ttyS0 \xff";
	fake.guest.build_id = (char *)"00ff";
	fake.guest.release = (char *)"6.1.0";
	fake.guest.pmu = (char *)"emulated";
	fake.guest.memory_bytes = UINT64_C(64) << 30;
	fake.guest.vsock_cid = 7;
	fake.guest.quirks = quirks;
	json_auto_t *guest = peer_return(&peer, REQUEST("query-guest"));
	assert_json(
		guest,
		"{\"name\":\"fixture\",\"kind\":\"fake\",\"kernel\":\"/k\\n\",\"initrd\":\"/iü\","
		"\"command-line\":\"console=ttyS0 \\ufffd\",\"build-id\":\"00ff\",\"release\":\"6.1.0\","
		"\"pmu\":\"emulated\",\"memory-bytes\":68719476736,\"vcpus\":2,\"vsock-cid\":7,\"quirks\":[\"masks vmcall\",\"no \\ufffd\"]}");
	fake.guest.kernel_path = fake.guest.pmu = NULL;
}
END_TEST

START_TEST(a_guest_starts_once)
{
	json_auto_t *answer = peer_return(&peer, REQUEST("guest-start"));

	assert_json(answer, "{}");
	peer_refused(&peer, REQUEST("guest-start"), "WrongState", "is already running");
	json_decref(peer_return(&peer, REQUEST("guest-stop")));
	peer_refused(&peer, REQUEST("guest-start"), "WrongState", "has ended");
}
END_TEST

START_TEST(a_stopped_guest_says_so_once)
{
	peer_say(&peer, "{\"execute\":\"guest-stop\",\"id\":1}");
	json_auto_t *ended = peer_event(&peer, "guest-ended");
	assert_json(ended, "{\"reason\":\"stopped\",\"code\":0,\"message\":\"stopped by a client\"}");
	peer_expect(&peer, "{\"return\":{},\"id\":1}");
	peer_say(&peer, "{\"execute\":\"guest-stop\",\"id\":2}");
	peer_expect(&peer, "{\"return\":{},\"id\":2}");

	json_auto_t *status = peer_return(&peer, REQUEST("query-status"));
	ck_assert(json_equal(json_object_get(status, "end"), ended));
}
END_TEST

START_TEST(an_end_has_its_details)
{
	g_autofree char *console = g_strnfill(100000, '\xff');

	fixture_guest_end(&(struct guest_end){
		.reason = GUEST_END_TRIPLE_FAULT, .code = 7, .message = (char *)"rip \x01", .details = console});
	json_auto_t *ended = peer_event(&peer, "guest-ended");
	ck_assert_str_eq(json_string_value(json_object_get(ended, "reason")), "triple-fault");
	ck_assert_int_eq(integer_of(ended, "code"), 7);
	ck_assert_str_eq(json_string_value(json_object_get(ended, "message")), "rip \x01");
	ck_assert(g_str_has_prefix(json_string_value(json_object_get(ended, "details")), "\xef\xbf\xbd\xef\xbf\xbd"));
}
END_TEST

START_TEST(the_longest_end_fits_into_a_line)
{
	g_autofree char *console = g_strnfill(100000, '\x01');

	fixture_guest_end(&(struct guest_end){.reason = GUEST_END_VMM_ERROR, .message = console, .details = console});
	json_decref(peer_event(&peer, "guest-ended"));
}
END_TEST

static void assert_attr(const json_t *event, unsigned index)
{
	const char *hex = json_string_value(json_object_get(event, "attr"));
	uint8_t bytes[VPROF_ATTR_BYTES];

	ck_assert_uint_eq(strlen(hex), 2 * sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(g_ascii_xdigit_value(hex[2 * i]) << 4 | g_ascii_xdigit_value(hex[2 * i + 1]));

	struct perf_event_attr attr;
	session_event_attr(session, index, &attr);
	ck_assert_mem_eq(bytes, &attr, sizeof(bytes));
	ck_assert_uint_eq(attr.size, VPROF_ATTR_BYTES);
}

START_TEST(a_session_is_described)
{
	json_auto_t *answer = peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":"
	                                         "[\"task-clock:u\",\"timer\"],\"period\":2000000,\"ring-bytes\":8192,"
	                                         "\"delivery\":\"setsig\"}}");
	const json_t *events = json_object_get(answer, "events");

	ck_assert_uint_eq(json_array_size(events), 2);
	for (unsigned i = 0; i < 2; i++) {
		const json_t *event = json_array_get(events, i);

		ck_assert_str_eq(json_string_value(json_object_get(event, "name")), i == 0 ? "task-clock:u" : "timer");
		ck_assert_str_eq(json_string_value(json_object_get(event, "backend")), i == 0 ? "perf-clock" : "timer");
		assert_attr(event, i);
		const json_t *ids = json_object_get(event, "ids");
		ck_assert_uint_eq(json_array_size(ids), FIXTURE_VCPUS);
		for (unsigned vcpu = 0; vcpu < FIXTURE_VCPUS; vcpu++)
			ck_assert_uint_eq((uint64_t)json_integer_value(json_array_get(ids, vcpu)),
			                  session_event_id(i, vcpu));
	}
	ck_assert_str_eq(json_string_value(json_object_get(answer, "delivery")), "setsig");
	ck_assert(json_is_null(json_object_get(answer, "why")));
	ck_assert_int_eq(integer_of(answer, "ring-bytes"), 8192);
	ck_assert_uint_eq(session_configuration(session)->rate.period, 2000000);
}
END_TEST

START_TEST(a_session_with_call_chains_says_so)
{
	json_auto_t *answer = peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"timer\"],"
	                                         "\"call-graph\":\"fp\",\"call-depth\":8,\"call-user\":false}}");

	ck_assert_str_eq(json_string_value(json_object_get(answer, "call-graph")), "fp");
	assert_attr(json_array_get(json_object_get(answer, "events"), 0), 0);
	ck_assert_uint_eq(session_configuration(session)->call_depth, 8);
	ck_assert(session_configuration(session)->call_kernel_only);
}
END_TEST

static const struct {
	const char *kernel_path, *arguments, *why; /* NULL: none */
} taskless[] = {
	{NULL, "{}", "the guest's kernel image is not known"},
	{"/nowhere/vmlinux", "{\"tasks\":true}", "/nowhere/vmlinux"},
	{NULL, "{\"tasks\":false}", NULL},
};

START_TEST(a_session_without_tasks_says_why)
{
	fake.guest.kernel_path = (char *)taskless[_i].kernel_path;
	g_autofree char *request =
		g_strdup_printf("{\"execute\":\"session-start\",\"arguments\":%s}", taskless[_i].arguments);
	json_auto_t *answer = peer_return(&peer, request);
	const char *why = json_string_value(json_object_get(answer, "tasks-why"));

	fake.guest.kernel_path = NULL;
	ck_assert(json_is_false(json_object_get(answer, "tasks")));
	ck_assert_int_eq(!why, !taskless[_i].why);
	if (why)
		ck_assert_msg(strstr(why, taskless[_i].why) != NULL, "%s", why);
	ck_assert(!session_has_tasks(session));

	json_auto_t *status = peer_return(&peer, "{\"execute\":\"query-status\"}");
	const json_t *missing = json_object_get(status, "missing");

	ck_assert_uint_eq(json_array_size(missing), why ? 1 : 0);
	if (why)
		ck_assert_msg(g_str_has_prefix(json_string_value(json_array_get(missing, 0)), "tasks: "), "%s", why);
}
END_TEST

START_TEST(a_session_has_defaults)
{
	struct counter_event event;
	const char *why;

	counter_event_default(&event, &why);

	json_auto_t *answer = peer_return(&peer, REQUEST("session-start"));
	const json_t *first = json_array_get(json_object_get(answer, "events"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(first, "name")), event.name);
	ck_assert_str_eq(json_string_value(json_object_get(answer, "why")), why);
	ck_assert_int_eq(integer_of(answer, "ring-bytes"), VPROF_RING_DATA_BYTES_DEFAULT);
	ck_assert_str_eq(json_string_value(json_object_get(answer, "delivery")), session_delivery(session));
	ck_assert_uint_eq(session_configuration(session)->rate.frequency_hz, 999);
	ck_assert_uint_eq(session_configuration(session)->rate.period, 0);
}
END_TEST

START_TEST(who_looks_on_learns_what_the_session_is)
{
	struct peer other;
	json_auto_t *started = peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":"
	                                          "[\"timer\"],\"frequency-hz\":77,\"call-graph\":\"fp\"}}");

	peer_join(&other);
	json_auto_t *running = peer_return(&other, REQUEST("query-session"));
	ck_assert_int_eq(integer_of(running, "frequency-hz"), 77);
	ck_assert(json_equal(running, started));
	json_decref(peer_return(&peer, REQUEST("session-stop")));
	json_auto_t *stopped = peer_return(&other, REQUEST("query-session"));
	ck_assert(json_equal(stopped, started));
	peer_deinit(&other);
}
END_TEST

static const struct {
	const char *arguments, *class, *part;
} refused_sessions[] = {
	{"{\"events\":[\"task-clok\"]}", "InvalidArgument", "near names: task-clock"},
	{"{\"events\":[\"task-clock\",\"\"]}", "InvalidArgument", "unknown event"},
	{"{\"events\":[\"task-clock:x\"]}", "InvalidArgument", "modifier \":x\""},
	{"{\"frequency-hz\":100,\"period\":100000}", "InvalidArgument", "exclude each other"},
	{"{\"events\":[\"task-clock\"],\"period\":1}", "InvalidArgument", "period"},
	{"{\"events\":[\"task-clock\"],\"period\":9223372036854775807}", "InvalidArgument", "period"},
	{"{\"ring-bytes\":5000}", "InvalidArgument", "power of two"},
	{"{\"delivery\":\"pigeon\"}", "InvalidArgument", "must be one of sigtrap"},
	{"{\"call-graph\":\"dwarf\"}", "InvalidArgument", "must be one of none, auto, orc, fp"},
	{"{\"call-graph\":\"orc\"}", "InvalidArgument", "kernel image is not known"},
};

START_TEST(a_wrong_session_is_refused)
{
	g_autofree char *request =
		g_strdup_printf("{\"execute\":\"session-start\",\"arguments\":%s}", refused_sessions[_i].arguments);

	peer_refused(&peer, request, refused_sessions[_i].class, refused_sessions[_i].part);
	assert_status("created", "idle");
}
END_TEST

START_TEST(a_session_takes_its_turn)
{
	static const char *const too_early[] = {REQUEST("session-stop"), REQUEST("query-stats"), REQUEST("rings"),
	                                        REQUEST("query-session")};

	for (size_t i = 0; i < G_N_ELEMENTS(too_early); i++)
		peer_refused(&peer, too_early[i], "WrongState", "session");
	json_decref(peer_return(&peer, REQUEST("session-start")));
	peer_refused(&peer, REQUEST("session-start"), "WrongState", "one is running");
	json_decref(peer_return(&peer, REQUEST("session-stop")));
	peer_refused(&peer, REQUEST("session-stop"), "WrongState", "none is running");
	json_decref(peer_return(&peer, REQUEST("session-start")));
	json_decref(peer_return(&peer, REQUEST("guest-stop")));
	json_decref(peer_return(&peer, REQUEST("session-stop")));
	peer_refused(&peer, REQUEST("session-start"), "WrongState", "guest has ended");
}
END_TEST

START_TEST(statistics_add_up)
{
	json_decref(peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"task-clock\"],"
	                               "\"frequency-hz\":1000}}"));
	fake_guest_burn(&fake, 100 * MS);
	json_auto_t *stopped = peer_return(&peer, REQUEST("session-stop"));
	json_auto_t *stats = peer_return(&peer, REQUEST("query-stats"));
	json_t *at_stop = json_object_get(stopped, "statistics");
	json_int_t requests = json_integer_value(json_object_get(at_stop, "requests"));

	ck_assert_int_eq(json_integer_value(json_object_get(stats, "requests")), requests + 1);
	json_object_set_new(at_stop, "requests", json_integer(requests + 1));
	ck_assert(json_equal(at_stop, stats));
	json_int_t errors = json_integer_value(json_object_get(stats, "errors"));

	peer_refused(&peer, REQUEST("session-stop"), "WrongState", "none is running");
	peer_refused(&peer, "[]", "InvalidArgument", "object");
	json_auto_t *later = peer_return(&peer, REQUEST("query-stats"));
	ck_assert_int_eq(json_integer_value(json_object_get(later, "requests")), requests + 4);
	ck_assert_int_eq(json_integer_value(json_object_get(later, "errors")), errors + 2);

	const json_t *total = json_object_get(stats, "total");
	json_auto_t *sum = json_object();
	size_t i;
	json_t *vcpu, *value;
	const char *name;
	json_array_foreach(json_object_get(stats, "vcpus"), i, vcpu) {
		json_object_foreach(vcpu, name, value) {
			json_int_t before = json_integer_value(json_object_get(sum, name));

			json_object_set_new(sum, name, json_integer(before + json_integer_value(value)));
		}
		ck_assert_int_gt(integer_of(vcpu, "sample"), 0);
	}
	ck_assert_uint_eq(i, FIXTURE_VCPUS);
	ck_assert(json_equal(sum, total));

	struct session_statistics one;
	session_statistics_read(session, 0, &one);
	const json_t *first = json_array_get(json_object_get(stats, "vcpus"), 0);
#define X(member, help)                                                              \
	{                                                                            \
		g_autofree char *dashed = g_strdelimit(g_strdup(#member), "_", '-'); \
		ck_assert_uint_eq((uint64_t)integer_of(first, dashed), one.member);  \
	}
	SESSION_STATISTICS(X)
#undef X
}
END_TEST

static void assert_ring(unsigned vcpu, int memfd, int eventfd, size_t data_bytes)
{
	struct stat status;

	ck_assert_int_eq(fstat(memfd, &status), 0);
	ck_assert_uint_eq((size_t)status.st_size, VPROF_RING_HEADER_BYTES + data_bytes);
	struct perf_event_mmap_page *page =
		mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	ck_assert_uint_eq(page->data_size, data_bytes);
	ck_assert_uint_eq(page->data_offset, VPROF_RING_HEADER_BYTES);

	ck_assert_uint_eq(page->data_head, 0);
	fake_guest_burn(&fake, 20 * MS);
	ck_assert_uint_gt(page->data_head, 0);
	munmap(page, (size_t)status.st_size);

	struct pollfd pollfd = {.fd = eventfd, .events = POLLIN};
	ring_wake(session_ring(session, vcpu));
	ck_assert_int_eq(poll(&pollfd, 1, 0), 1);
}

START_TEST(rings_arrive_and_map)
{
	json_decref(peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"task-clock\"],"
	                               "\"frequency-hz\":1000,\"ring-bytes\":65536}}"));
	for (int again = 0; again < 2; again++) {
		json_auto_t *rings = peer_return(&peer, REQUEST("rings"));

		assert_json(rings, "{\"vcpus\":[{\"vcpu\":0,\"data-bytes\":65536},{\"vcpu\":1,\"data-bytes\":65536}]}");
		ck_assert_uint_eq(peer.fds->len, (size_t)2 * FIXTURE_VCPUS * (unsigned)(again + 1));
	}
	const int *fds = (const int *)(void *)peer.fds->data;
	assert_ring(0, fds[0], fds[1], 65536);
	json_decref(peer_return(&peer, REQUEST("session-stop")));
	/* The next session has rings of its own; who holds the old ones can still read them. */
	json_decref(peer_return(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"task-clock\"],"
	                               "\"ring-bytes\":4096}}"));
	json_decref(peer_return(&peer, REQUEST("rings")));
	fds = (const int *)(void *)peer.fds->data;
	assert_ring(1, fds[10], fds[11], 4096);
	struct stat status;
	ck_assert_int_eq(fstat(fds[0], &status), 0);
	ck_assert_int_eq(status.st_size, VPROF_RING_HEADER_BYTES + 65536);
}
END_TEST

START_TEST(lost_samples_are_told_by_the_second)
{
	peer_say(&peer, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"task-clock\"],"
	                "\"frequency-hz\":5000,\"ring-bytes\":4096}}");
	json_decref(peer_line(&peer));
	fake_guest_burn(&fake, 200 * MS);
	json_int_t told[FIXTURE_VCPUS];
	for (unsigned vcpu = 0; vcpu < FIXTURE_VCPUS; vcpu++) {
		json_auto_t *lost = peer_event(&peer, "samples-lost");

		ck_assert_int_eq(integer_of(lost, "vcpu"), vcpu);
		told[vcpu] = integer_of(lost, "lost");
		ck_assert_uint_eq((uint64_t)told[vcpu], ring_statistics(session_ring(session, vcpu)).dropped);
	}
	fake_guest_burn(&fake, 100 * MS);
	json_auto_t *more = peer_event(&peer, "samples-lost");
	ck_assert_uint_eq((uint64_t)(told[0] + integer_of(more, "lost")),
	                  ring_statistics(session_ring(session, 0)).dropped);
}
END_TEST

START_TEST(clients_mark_phases)
{
	/* The event goes to everybody, the asking client too, before its answer. */
	peer_say(&peer, "{\"execute\":\"marker-add\",\"arguments\":{\"name\":\"parse\",\"kind\":\"begin\"}}");
	json_auto_t *marker = peer_event(&peer, "marker");
	json_auto_t *answer = peer_line(&peer);
	ck_assert_str_eq(json_string_value(json_object_get(marker, "name")), "parse");
	ck_assert_str_eq(json_string_value(json_object_get(marker, "kind")), "begin");
	ck_assert_int_gt(integer_of(marker, "time-ns"), 0);
	ck_assert_int_eq(integer_of(marker, "time-ns"), integer_of(json_object_get(answer, "return"), "time-ns"));
	peer_refused(&peer, "{\"execute\":\"marker-add\",\"arguments\":{\"name\":\"\\u001b[2J\",\"kind\":\"end\"}}",
	             "InvalidArgument", "control character");
	peer_refused(&peer, "{\"execute\":\"marker-add\",\"arguments\":{\"name\":\"x\",\"kind\":\"middle\"}}",
	             "InvalidArgument", "kind");
}
END_TEST

START_TEST(phases_are_told_up_to_a_limit)
{
	for (unsigned i = 0; i < 10 * CONTROL_PHASES_PER_SECOND; i++)
		control_server_guest_phase(server, 1, (uint8_t)i, 1000 + i);
	json_auto_t *first = peer_event(&peer, "guest-phase");
	assert_json(first, "{\"vcpu\":1,\"value\":0,\"time-ns\":1000}");
	g_usleep(G_USEC_PER_SEC + G_USEC_PER_SEC / 10);
	control_server_guest_phase(server, 0, 0x40, 5);

	json_int_t dropped = 0;
	unsigned told = 1;
	for (json_int_t at = 0; at != 5; told++) {
		json_auto_t *phase = peer_event(&peer, "guest-phase");

		at = integer_of(phase, "time-ns");
		dropped += json_integer_value(json_object_get(phase, "dropped"));
	}
	ck_assert_uint_eq(told + (unsigned)dropped, 10 * CONTROL_PHASES_PER_SECOND + 1);
	/* The burst may have met the turn of a second. */
	ck_assert_uint_le(told, 2 * CONTROL_PHASES_PER_SECOND + 1);
}
END_TEST

START_TEST(deliveries_of_the_schema_are_those_there_are)
{
	size_t i = 0;
	json_auto_t *schema = peer_return(&peer, REQUEST("query-schema"));
	g_autofree char *text = json_dumps(schema, JSON_COMPACT);
	g_autoptr(GString) choices = g_string_new("\"choices\":[");

	for (; counter_deliveries[i]; i++)
		g_string_append_printf(choices, "%s\"%s\"", i > 0 ? "," : "", counter_deliveries[i]->name);
	g_string_append(choices, "]");
	ck_assert_msg(strstr(text, choices->str), "no %s in the schema", choices->str);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_session");
	TCase *tc = tcase_create("methods");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, status_follows_guest_and_session);
	tcase_add_test(tc, guest_is_null_where_unknown);
	tcase_add_test(tc, guest_is_described);
	tcase_add_test(tc, a_guest_starts_once);
	tcase_add_test(tc, a_stopped_guest_says_so_once);
	tcase_add_test(tc, an_end_has_its_details);
	tcase_add_test(tc, the_longest_end_fits_into_a_line);
	tcase_add_test(tc, a_session_is_described);
	tcase_add_test(tc, a_session_with_call_chains_says_so);
	tcase_add_loop_test(tc, a_session_without_tasks_says_why, 0, G_N_ELEMENTS(taskless));
	tcase_add_test(tc, a_session_has_defaults);
	tcase_add_test(tc, who_looks_on_learns_what_the_session_is);
	tcase_add_test(tc, deliveries_of_the_schema_are_those_there_are);
	tcase_add_loop_test(tc, a_wrong_session_is_refused, 0, G_N_ELEMENTS(refused_sessions));
	tcase_add_test(tc, a_session_takes_its_turn);
	tcase_add_test(tc, statistics_add_up);
	tcase_add_test(tc, rings_arrive_and_map);
	tcase_add_test(tc, lost_samples_are_told_by_the_second);
	tcase_add_test(tc, clients_mark_phases);
	tcase_add_test(tc, phases_are_told_up_to_a_limit);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
