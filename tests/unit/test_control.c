// SPDX-License-Identifier: BSD-2-Clause
/* The protocol: framing, dispatch, argument checks and the schema against what the server does. */
#include <linux/kvm.h>
#include <vprof/exit.h>

#include "control_fixture.h"
#include "run_suite.h"

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

START_TEST(greets_with_versions_and_guest)
{
	struct peer fresh;

	fake.guest.kernel_path = (char *)"/boot/vmlinuz";
	fake.guest.memory_bytes = UINT64_C(1) << 30;
	peer_connect(&fresh, false);
	peer_expect(&fresh,
	            "{\"vprof\":{\"version\":\"" VPROF_VERSION
	            "\",\"protocol\":1,\"capabilities\":[\"descriptors\"],\"guest\":{\"name\":\"fixture\","
	            "\"kind\":\"fake\",\"kernel\":\"/boot/vmlinuz\",\"memory-bytes\":1073741824,\"vcpus\":2}}}");
	peer_deinit(&fresh);
}
END_TEST

START_TEST(negotiation_comes_first)
{
	struct peer fresh;

	peer_connect(&fresh, false);
	json_decref(peer_line(&fresh));

	json_auto_t *schema = peer_return(&peer, REQUEST("query-schema"));
	size_t i;
	json_t *method;
	json_array_foreach(json_object_get(schema, "methods"), i, method) {
		const char *name = json_string_value(json_object_get(method, "name"));
		g_autofree char *request = g_strdup_printf("{\"execute\":\"%s\"}", name);

		if (!g_str_equal(name, "negotiate"))
			peer_refused(&fresh, request, "NotNegotiated", name);
	}
	peer_refused(&fresh, REQUEST("nonsense"), "NotNegotiated", "nonsense");
	control_server_event(server, "test", json_object());
	peer_refused(&fresh, "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":2}}", "Unsupported", "protocol 2");
	peer_refused(&fresh, REQUEST("query-status"), "NotNegotiated", "negotiate");

	peer_say(&fresh, "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":1}}");
	peer_expect(&fresh, "{\"return\":{\"protocol\":1}}"); /* and no event before it */
	peer_deinit(&fresh);
}
END_TEST

START_TEST(ids_come_back)
{
	json_auto_t *number = peer_ask(&peer, "{\"execute\":\"guest-start\",\"id\":-9007199254740993}");

	assert_json(number, "{\"return\":{},\"id\":-9007199254740993}");
	json_auto_t *text = peer_ask(&peer, "{\"id\":\"\\u00e4\\n\",\"execute\":\"guest-start\"}");
	assert_json(json_object_get(text, "id"), "\"ä\\n\"");
	ck_assert_ptr_nonnull(json_object_get(text, "error"));
	json_auto_t *none = peer_ask(&peer, REQUEST("guest-start"));
	ck_assert_ptr_null(json_object_get(none, "id"));
}
END_TEST

static const struct {
	const char *request, *class, *part;
} refused[] = {
	{"{}", "InvalidArgument", "execute"},
	{"{\"execute\":1}", "InvalidArgument", "execute"},
	{"{\"execute\":\"quit\",\"argument\":{}}", "InvalidArgument", "\"argument\""},
	{"{\"execute\":\"quit\",\"arguments\":[]}", "InvalidArgument", "arguments"},
	{"{\"execute\":\"quit\",\"arguments\":null}", "InvalidArgument", "arguments"},
	{"{\"execute\":\"quit\",\"id\":{}}", "InvalidArgument", "id"},
	{"{\"execute\":\"quit\",\"id\":1.5}", "InvalidArgument", "id"},
	{"{\"execute\":\"\"}", "CommandNotFound", "query-schema"},
	{"{\"execute\":\"Quit\"}", "CommandNotFound", "Quit"},
	{"{\"execute\":\"quit\",\"arguments\":{\"now\":true}}", "InvalidArgument", "\"now\""},
	{"{\"execute\":\"negotiate\"}", "InvalidArgument", "\"protocol\" of negotiate is missing"},
};

START_TEST(a_wrong_request_is_refused_and_the_client_stays)
{
	peer_refused(&peer, refused[_i].request, refused[_i].class, refused[_i].part);
	json_decref(peer_return(&peer, REQUEST("query-status")));
	fixture_settle();
	ck_assert_uint_eq(quits, 0);
}
END_TEST

START_TEST(names_of_any_length_are_quoted_short)
{
	g_autofree char *name = g_strnfill(60000, 'x');
	g_autofree char *request = g_strdup_printf("{\"execute\":\"%s\"}", name);

	peer_refused(&peer, request, "CommandNotFound", "xxxx");

	json_auto_t *id = json_pack("{s:s, s:s}", "execute", "query-status", "id", name);
	g_autofree char *with_id = json_dumps(id, 0);
	peer_refused(&peer, with_id, "InvalidArgument", "id");
}
END_TEST

static const char *const rubbish[] = {
	"",
	"hello",
	"{\"execute\":\"quit\"",
	"{\"execute\":\"quit\"} x",
	"{\"execute\":\"quit\",}",
	"{\"execute\" \"quit\"}",
	"{\"execute\":\"qu\xffit\"}",
	"{\"execute\":\"qu\tit\"}",
	"{\"execute\":\"qu\\u00g0it\"}",
	"{\"execute\":\"qu\\qit\"}",
	"{\"execute\":[1,]}",
	"{\"execute\":[1}}",
	"{\"id\":01}",
	"{\"id\":-}",
	"{\"id\":1.}",
	"{\"id\":1e}",
	"{\"id\":nul}",
	"[[1]",
	"GET / HTTP/1.1\r",
};

START_TEST(rubbish_is_answered_and_disconnected)
{
	peer_refused(&peer, rubbish[_i], "GenericError", "one JSON object on a line");
	peer_expect_closed(&peer);
}
END_TEST

/* JSON with what the engine cannot hold. The id is that of the request, where it could be read. */
static const struct {
	const char *request, *id, *part;
} unusable[] = {
	{"1", NULL, "an object"},
	{"null", NULL, "object"},
	{"[{\"id\":7}]", NULL, "object"},
	{"\"quit\"", NULL, "object"},
	{" {\"execute\":\"quit\",\"execute\":\"quit\",\"id\":7}\r", "7", "duplicate"},
	{"{\"id\":-9223372036854775808,\"execute\":\"qu\\u0000it\"}", "-9223372036854775808", "u0000"},
	{"{\"execute\":\"quit\",\"arguments\":{\"\\u0000\":[true,false,{}]},\"id\":\"\\\"ä\"}", "\"\\\"ä\"", "u0000"},
	{"{\"execute\":\"quit\",\"arguments\":{\"id\":1,\"address\":18446744073709551615},\"id\":2}", "2", "2^63"},
	{"{\"id\":99999999999999999999}", NULL, "2^63"},
	{"{\"id\":8,\"id\":{}}", NULL, "duplicate"},
	{"{\"id\":{\"id\":8},\"a\":-1e999}", NULL, "overflow"},
	{"{\"id\":1.5,\"a\":0.5E+400}", NULL, "overflow"},
	{"{\"id\":\"\\ud800\"}", NULL, "Unicode"},
};

START_TEST(json_that_cannot_be_held_is_refused_and_the_client_stays)
{
	json_auto_t *answer = peer_ask(&peer, unusable[_i].request);
	const json_t *id = json_object_get(answer, "id"), *error = json_object_get(answer, "error");

	ck_assert_str_eq(json_string_value(json_object_get(error, "class")), "InvalidArgument");
	const char *desc = json_string_value(json_object_get(error, "desc"));
	ck_assert_msg(strstr(desc, unusable[_i].part), "%s", desc);
	if (unusable[_i].id)
		assert_json(id, unusable[_i].id);
	else
		ck_assert_ptr_null(id);
	json_decref(peer_return(&peer, REQUEST("query-status")));
	fixture_settle();
	ck_assert_uint_eq(quits, 0);
}
END_TEST

START_TEST(nul_bytes_are_rubbish)
{
	static const char line[] = "{\"execute\":\"quit\"}\0{\"execute\":\"quit\"}\n";

	peer_write(&peer, line, sizeof(line) - 1);
	json_auto_t *answer = peer_line(&peer);
	ck_assert_ptr_nonnull(json_object_get(answer, "error"));
	peer_expect_closed(&peer);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	g_autofree char *open = g_strnfill(30000, '['), *close = g_strnfill(30000, ']');
	g_autofree char *deep = g_strconcat("{\"id\":1,\"arguments\":", open, close, "}", NULL);

	peer_refused(&peer, deep, "InvalidArgument", "maximum parsing depth");
	json_decref(peer_return(&peer, REQUEST("query-status")));
	peer_refused(&peer, open, "GenericError", "maximum parsing depth");
	peer_expect_closed(&peer);
}
END_TEST

/* `bytes` long with its newline; white space belongs to JSON. */
static char *request_of(size_t bytes)
{
	static const char request[] = REQUEST("query-guest");
	g_autofree char *spaces = g_strnfill(bytes - strlen(request) - 1, ' ');

	return g_strconcat(request, spaces, "\n", NULL);
}

START_TEST(the_longest_line_is_taken)
{
	g_autofree char *line = request_of(VPROF_CONTROL_LINE_BYTES_MAX);

	peer_write(&peer, line, VPROF_CONTROL_LINE_BYTES_MAX);
	json_auto_t *answer = peer_line(&peer);
	ck_assert_ptr_nonnull(json_object_get(answer, "return"));
}
END_TEST

START_TEST(a_longer_line_is_refused_and_disconnected)
{
	g_autofree char *line = request_of(VPROF_CONTROL_LINE_BYTES_MAX + 1);

	peer_write(&peer, line, VPROF_CONTROL_LINE_BYTES_MAX); /* its newline need not come */
	json_auto_t *answer = peer_line(&peer);
	g_autofree char *text = json_dumps(answer, 0);
	ck_assert_msg(strstr(text, "GenericError") && strstr(text, "too long"), "%s", text);
	peer_expect_closed(&peer);
}
END_TEST

START_TEST(a_request_may_come_in_pieces)
{
	static const char request[] = "{\"execute\":\"guest-start\",\"id\":\"ü\"}\n";

	for (size_t i = 0; i < sizeof(request) - 1; i++)
		peer_write(&peer, &request[i], 1);
	peer_expect(&peer, "{\"return\":{},\"id\":\"ü\"}");
}
END_TEST

START_TEST(requests_may_come_together)
{
	peer_say(&peer, "{\"execute\":\"guest-start\",\"id\":1}\n{\"execute\":\"nonsense\",\"id\":2}\n"
	                "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":1},\"id\":3}");
	peer_expect(&peer, "{\"return\":{},\"id\":1}");
	json_auto_t *second = peer_line(&peer);
	ck_assert_int_eq(json_integer_value(json_object_get(second, "id")), 2);
	peer_expect(&peer, "{\"return\":{\"protocol\":1},\"id\":3}");
}
END_TEST

START_TEST(a_client_may_stop_talking_and_read_on)
{
	peer_say(&peer, "{\"execute\":\"guest-start\",\"id\":1}\n{\"execute\":\"guest-start\",\"id\":2}");
	shutdown(peer.fd, SHUT_WR);
	peer_expect(&peer, "{\"return\":{},\"id\":1}");
	json_auto_t *second = peer_line(&peer);
	ck_assert_int_eq(json_integer_value(json_object_get(second, "id")), 2);
	peer_expect_closed(&peer);
}
END_TEST

/* Values that are not of this type. */
static json_t *wrong_values(const char *type)
{
	json_t *values = json_loads("[null, 1.5, {}, [1], [\"a\", null]]", 0, NULL);

	if (g_str_equal(type, "address")) {
		json_t *addresses = json_loads("[-1, \"\", \"0x\", \"12\", \"0x12345678123456789\", \"0xg\"]", 0, NULL);

		json_array_extend(values, addresses);
		json_decref(addresses);
		return values;
	}
	if (!g_str_equal(type, "boolean"))
		json_array_append_new(values, json_true());
	json_array_append_new(values, g_str_equal(type, "integer") ? json_string("1") : json_integer(1));
	if (!g_str_equal(type, "[string]"))
		json_array_append_new(values, json_array());
	return values;
}

static json_t *string_of(json_int_t bytes)
{
	g_autofree char *text = g_strnfill((gsize)bytes, 'a');

	return json_string(text);
}

static json_t *strings_of(json_int_t n)
{
	json_t *strings = json_array();

	for (json_int_t i = 0; i < n; i++)
		json_array_append_new(strings, json_string("task-clock"));
	return strings;
}

static json_t *value_of_size(const char *type, json_int_t size)
{
	if (g_str_equal(type, "integer"))
		return json_integer(size);
	return g_str_equal(type, "string") ? string_of(size) : strings_of(size);
}

static void refuse_value(const char *method, const char *argument, json_t *value)
{
	json_auto_t *request = json_pack("{s:s, s:{s:O}}", "execute", method, "arguments", argument, value);
	g_autofree char *line = json_dumps(request, JSON_COMPACT);
	g_autofree char *part = g_strdup_printf("argument \"%s\" of %s must be", argument, method);

	peer_refused(&peer, line, "InvalidArgument", part);
}

/* Those around the range, or none of the choices. */
static void add_values_beyond(json_t *values, const json_t *argument)
{
	const char *type = json_string_value(json_object_get(argument, "type"));
	json_int_t max = json_integer_value(json_object_get(argument, "max"));

	if (json_object_get(argument, "choices"))
		json_array_append_new(values, json_string("none of these"));
	if (!json_object_get(argument, "min"))
		return;
	json_array_append_new(values, value_of_size(type, json_integer_value(json_object_get(argument, "min")) - 1));
	if (max < INT64_MAX)
		json_array_append_new(values, value_of_size(type, max + 1));
}

static void check_argument(const char *method, const json_t *argument)
{
	const char *name = json_string_value(json_object_get(argument, "name"));
	const char *type = json_string_value(json_object_get(argument, "type"));

	json_auto_t *values = wrong_values(type);
	add_values_beyond(values, argument);
	size_t i;
	json_t *value;
	json_array_foreach(values, i, value)
		refuse_value(method, name, value);
}

START_TEST(arguments_are_checked_as_the_schema_says)
{
	json_auto_t *schema = peer_return(&peer, REQUEST("query-schema"));
	size_t i, j, n_methods = 0, n_arguments = 0;
	json_t *method, *argument;

	json_array_foreach(json_object_get(schema, "methods"), i, method) {
		const char *name = json_string_value(json_object_get(method, "name"));
		g_autofree char *request = g_strdup_printf("{\"execute\":\"%s\",\"arguments\":{\"no such\":1}}", name);

		peer_refused(&peer, request, "InvalidArgument", "no argument \"no such\"");
		n_methods++;
		json_array_foreach(json_object_get(method, "arguments"), j, argument) {
			check_argument(name, argument);
			n_arguments++;
		}
	}
	ck_assert_uint_ge(n_methods, 16);
	ck_assert_uint_ge(n_arguments, 11);
	ck_assert(!session_running(session));
}
END_TEST

static void assert_terms(const json_t *list, const char *const *names)
{
	size_t i = 0;

	for (; names[i]; i++) {
		const json_t *term = json_array_get(list, i);

		ck_assert_str_eq(json_string_value(json_object_get(term, "name")), names[i]);
		ck_assert_uint_gt(json_string_length(json_object_get(term, "summary")), 0);
	}
	ck_assert_uint_eq(json_array_size(list), i);
}

START_TEST(the_schema_is_complete)
{
	static const char *const events[] = {"guest-ended", "guest-kernel", "guest-pause", "guest-phase",
	                                     "marker",      "samples-lost", NULL};
	static const char *const errors[] = {"GenericError",
	                                     "CommandNotFound",
	                                     "InvalidArgument",
	                                     "NotNegotiated",
	                                     "Busy",
	                                     "PermissionDenied",
	                                     "WrongState",
	                                     "Unsupported",
	                                     NULL};
	json_auto_t *schema = peer_return(&peer, REQUEST("query-schema"));

	ck_assert_int_eq(json_integer_value(json_object_get(schema, "protocol")), 1);
	assert_terms(json_object_get(schema, "events"), events);
	assert_terms(json_object_get(schema, "errors"), errors);

	size_t i;
	json_t *method;
	json_array_foreach(json_object_get(schema, "methods"), i, method) {
		const char *role, *summary;
		json_t *returns;

		ck_assert_int_eq(
			json_unpack(method, "{s:s, s:s, s:o}", "role", &role, "summary", &summary, "returns", &returns),
			0);
		ck_assert(g_str_equal(role, "observe") || g_str_equal(role, "instrument") ||
		          g_str_equal(role, "control"));
		ck_assert_uint_gt(strlen(summary), 0);
		ck_assert(json_is_array(returns));
	}
}
END_TEST

START_TEST(the_host_is_described)
{
	json_auto_t *host = peer_return(&peer, REQUEST("query-host"));
	const json_t *events = json_object_get(host, "events"), *backends = json_object_get(host, "backends");
	const json_t *entry;
	size_t i;

	ck_assert_int_eq(json_integer_value(json_object_get(host, "counters")), 32);
	ck_assert_uint_eq(json_array_size(backends), 4);
	ck_assert(json_is_true(json_object_get(json_array_get(backends, 2), "usable"))); /* the timer */
	json_array_foreach(events, i, entry) {
		bool usable = json_is_true(json_object_get(entry, "usable"));

		ck_assert_int_eq(usable, json_object_get(entry, "backend") != NULL);
		ck_assert_int_eq(!usable, json_object_get(entry, "why") != NULL);
	}
	ck_assert_uint_ge(i, 10);
	const json_t *pmu = json_object_get(host, "pmu");
	ck_assert(json_is_null(pmu) ||
	          json_integer_value(json_object_get(json_object_get(pmu, "general"), "width")) >= 32);
}
END_TEST

START_TEST(an_answer_that_fits_no_line_is_an_error)
{
	g_autofree char *quirk = g_strnfill(4000, '\x01');
	char *quirks[21] = {NULL};

	for (size_t i = 0; i < 20; i++)
		quirks[i] = quirk;
	fake.guest.quirks = quirks;
	peer_refused(&peer, REQUEST("query-guest"), "GenericError", "a line holds 131072");
	fake.guest.quirks = NULL;
	json_decref(peer_return(&peer, REQUEST("query-guest")));
}
END_TEST

static bool was_reset[FIXTURE_VCPUS];

static void fake_vcpu_time(struct guest *guest G_GNUC_UNUSED, unsigned vcpu, bool reset, struct guest_vcpu_time *out)
{
	was_reset[vcpu] |= reset;
	memset(out, 0, sizeof(*out));
	out->time = (struct vcpu_time){.wall_ns = 9, .run_ns = 6, .vmm_ns = 3, .halt_wait_ns = 1, .guest_ns = 2};
	out->modes = (struct vcpu_modes){.kernel = 3, .user = 4};
	out->missing = "runnable";
	out->n_exits = 2;
	out->exits[0] = (struct guest_exit){.ip = vprof_exit_ip(KVM_EXIT_IO, 0x3f8), .count = 2, .ns = 1};
	out->exits[1] =
		(struct guest_exit){.ip = vprof_exit_ip(KVM_EXIT_MMIO, VPROF_EXIT_DETAIL_MASK), .count = 1, .ns = 2};
	out->n_kvm_exits = 1;
	out->kvm_exits[0] = (struct guest_kvm_exit){
		"npf", 4, 9, .kvm_ns = 5, .vmm_ns = 1, .waiting_ns = 3, .max_ns = 7, .histogram = {0, 3, 1}};
	out->n_accesses = 2;
	out->accesses[0] = (struct guest_access_count){.write = true, .address = 0x60, .count = 1, .ns = 8};
	out->accesses[1] = (struct guest_access_count){.other = true, .count = 2, .ns = 6};
	out->n_counters = 1;
	out->counters[0] = (struct guest_counter){"halt_exits", vcpu};
}

START_TEST(times_of_vcpus)
{
	struct guest_ops ops = *fake.guest.ops;

	peer_refused(&peer, "{\"execute\":\"query-vcpu-time\",\"arguments\":{\"vcpu\":0}}", "Unsupported", "kind fake");
	peer_refused(&peer, REQUEST("vcpu-time-reset"), "Unsupported", "kind fake");
	ops.vcpu_time = fake_vcpu_time;
	fake.guest.ops = &ops;
	peer_say(&peer, "{\"execute\":\"query-vcpu-time\",\"arguments\":{\"vcpu\":1}}");
	peer_expect(
		&peer,
		"{\"return\":{\"version\":3,\"missing\":\"runnable\",\"untraced\":null,\"lost\":0,\"ns\":{\"wall\":9,\"run\":6,\"vmm\":3,\"cpu\":0,"
		"\"runnable\":0,\"halt-wait\":1,\"halt-poll\":0,\"offline\":0,\"guest\":2,\"kvm\":0,\"vmm-traced\":0},\"looks\":{\"kernel\":3,\"user\":4},"
		"\"exits\":[{\"name\":\"exit:io:0x3f8\","
		"\"reason\":2,\"detail\":1016,\"count\":2,\"ns\":1},{\"name\":\"exit:mmio:other\",\"reason\":6,"
		"\"detail\":null,\"count\":1,\"ns\":2}],"
		"\"kvm-exits\":[{\"name\":\"npf\",\"count\":4,\"ns\":9,\"kvm-ns\":5,\"vmm-ns\":1,\"poll-ns\":0,"
		"\"halt-ns\":0,\"waiting-ns\":3,\"max-ns\":7,\"histogram\":[0,3,1]}],"
		"\"accesses\":[{\"space\":\"ioport\",\"address\":96,\"write\":true,\"count\":1,\"ns\":8},"
		"{\"space\":null,\"address\":null,\"write\":null,\"count\":2,\"ns\":6}],\"counters\":{\"halt_exits\":1}}}");
	peer_refused(&peer, "{\"execute\":\"query-vcpu-time\",\"arguments\":{\"vcpu\":2}}", "InvalidArgument",
	             "vCPU 2");
	ck_assert(!was_reset[0] && !was_reset[1]);
	json_decref(peer_return(&peer, REQUEST("vcpu-time-reset")));
	ck_assert(was_reset[0] && was_reset[1]);
	fake.guest.ops = &fixture_ops;
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control");
	TCase *tc = tcase_create("protocol");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, greets_with_versions_and_guest);
	tcase_add_test(tc, negotiation_comes_first);
	tcase_add_test(tc, ids_come_back);
	tcase_add_loop_test(tc, a_wrong_request_is_refused_and_the_client_stays, 0, G_N_ELEMENTS(refused));
	tcase_add_test(tc, names_of_any_length_are_quoted_short);
	tcase_add_loop_test(tc, rubbish_is_answered_and_disconnected, 0, G_N_ELEMENTS(rubbish));
	tcase_add_test(tc, nul_bytes_are_rubbish);
	tcase_add_loop_test(tc, json_that_cannot_be_held_is_refused_and_the_client_stays, 0, G_N_ELEMENTS(unusable));
	tcase_add_test(tc, deep_nesting_is_refused);
	tcase_add_test(tc, the_longest_line_is_taken);
	tcase_add_test(tc, a_longer_line_is_refused_and_disconnected);
	tcase_add_test(tc, a_request_may_come_in_pieces);
	tcase_add_test(tc, requests_may_come_together);
	tcase_add_test(tc, a_client_may_stop_talking_and_read_on);
	tcase_add_test(tc, arguments_are_checked_as_the_schema_says);
	tcase_add_test(tc, the_schema_is_complete);
	tcase_add_test(tc, the_host_is_described);
	tcase_add_test(tc, an_answer_that_fits_no_line_is_an_error);
	tcase_add_test(tc, times_of_vcpus);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
