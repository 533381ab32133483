// SPDX-License-Identifier: BSD-2-Clause
/* The engine's trace over the socket: lines with call chains, and parts of lines. */
#include <string.h>

#include "control_fixture.h"
#include "fake_debug.h"
#include "run_suite.h"

#define WRITE(text) "{\"execute\":\"trace-write\",\"arguments\":{\"text\":\"" text "\",\"vcpu\":1,\"stack\":true}}"

static struct peer peer, other;

static void setup(void)
{
	memset(&fake_debug, 0, sizeof(fake_debug));
	fake_debug.regs.rip = 0xffffffff81000010;
	fixture_setup();
	fake.guest.debug = &fake_debug_ops;
	peer_join(&peer);
	peer_join(&other);
}

static void teardown(void)
{
	peer_deinit(&peer);
	peer_deinit(&other);
	fixture_teardown();
}

static void assert_trace_has(const char *part)
{
	json_auto_t *answer = peer_return(&other, REQUEST("trace-read"));
	const char *text = json_string_value(json_object_get(answer, "text"));

	ck_assert_msg(strstr(text, part) != NULL, "%s", text);
}

START_TEST(a_line_waits_for_its_call_chain)
{
	peer_say(&peer, WRITE("busy"));
	fixture_settle();
	json_decref(peer_return(&other, REQUEST("query-status"))); /* others are served meanwhile */
	fake_debug.regs.valid = true;
	json_auto_t *line = peer_line(&peer);

	ck_assert(json_is_true(json_object_get(json_object_get(line, "return"), "stack")));
	assert_trace_has(":vcpu1: busy\n");
	assert_trace_has("Backtrace:\n");
	assert_trace_has("\t0xffffffff81000010\n");
}
END_TEST

START_TEST(a_line_is_not_lost_for_want_of_a_call_chain)
{
	json_auto_t *answer = peer_return(&peer, WRITE("busier"));

	ck_assert(json_is_false(json_object_get(answer, "stack")));
	assert_trace_has(":vcpu1: busier\n");
	assert_trace_has("No backtrace: the registers of vCPU 1 are not known now\n");
	/* Of a guest that has ended, nothing will come. */
	fixture_guest_stop(&fake.guest, GUEST_END_POWER_OFF, "over");
	json_auto_t *ended = peer_return(&peer, WRITE("late"));

	ck_assert(json_is_false(json_object_get(ended, "stack")));
	assert_trace_has(":vcpu1: late\n");
}
END_TEST

START_TEST(a_part_of_a_line_has_whole_characters)
{
	g_autoptr(GString) all = g_string_new(NULL);
	json_int_t next = 0, end;
	json_auto_t *written =
		peer_return(&peer, "{\"execute\":\"trace-write\",\"arguments\":{\"text\":\"z\u00f6lf \u65e5\u672c\"}}");

	end = json_integer_value(json_object_get(written, "next"));
	while (next < end) {
		g_autofree char *request =
			g_strdup_printf("{\"execute\":\"trace-read\",\"arguments\":{\"max-bytes\":1,\"offset\":%lld}}",
		                        (long long)next);
		json_auto_t *answer = peer_return(&peer, request);

		g_string_append(all, json_string_value(json_object_get(answer, "text")));
		next = json_integer_value(json_object_get(answer, "next"));
	}
	ck_assert_msg(g_str_has_suffix(all->str, ":vmm: zölf 日本\n"), "%s", all->str);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_trace");
	TCase *tc = tcase_create("trace");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_line_waits_for_its_call_chain);
	tcase_add_test(tc, a_line_is_not_lost_for_want_of_a_call_chain);
	tcase_add_test(tc, a_part_of_a_line_has_whole_characters);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
