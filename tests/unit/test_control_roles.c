// SPDX-License-Identifier: BSD-2-Clause
/* Who may do what: the control role, its holder, and what becomes of it. */
#include <string.h>

#include "control_fixture.h"
#include "run_suite.h"

static struct peer first, second;
static char *holder; /* how an error names us, who are all of the peers */

static void setup(void)
{
	fixture_setup();
	peer_join(&first);
	peer_join(&second);
	holder = g_strdup_printf("pid %d (uid %u) holds the control role", getpid(), geteuid());
}

static void teardown(void)
{
	peer_deinit(&first);
	peer_deinit(&second);
	fixture_teardown();
	g_free(holder);
}

static void take(struct peer *peer)
{
	json_auto_t *answer = peer_return(peer, REQUEST("control-take"));

	assert_json(answer, "{}");
}

START_TEST(control_is_nobodys_at_first)
{
	peer_refused(&first, REQUEST("session-start"), "PermissionDenied", "execute control-take first");
	peer_refused(&first, REQUEST("control-release"), "WrongState", "does not hold it");
	json_decref(peer_return(&first, REQUEST("query-status")));
}
END_TEST

START_TEST(control_has_one_holder)
{
	take(&first);
	take(&first);
	peer_refused(&second, REQUEST("control-take"), "Busy", holder);
	peer_refused(&second, REQUEST("guest-start"), "Busy", holder);
	peer_refused(&second, REQUEST("control-release"), "WrongState", "does not hold it");
	json_decref(peer_return(&first, REQUEST("guest-start")));
	json_decref(peer_return(&second, REQUEST("query-status")));
}
END_TEST

START_TEST(control_is_given_back)
{
	take(&first);
	json_decref(peer_return(&first, REQUEST("control-release")));
	peer_refused(&first, REQUEST("guest-start"), "PermissionDenied", "control-take");
	take(&second);
	json_decref(peer_return(&second, REQUEST("guest-start")));
}
END_TEST

START_TEST(who_dies_holding_control_leaves_it_and_the_session)
{
	take(&first);
	json_decref(peer_return(&first, "{\"execute\":\"session-start\",\"arguments\":{\"events\":[\"timer\"]}}"));
	close(first.fd);
	first.fd = -1;
	fixture_settle();
	take(&second);
	json_auto_t *status = peer_return(&second, REQUEST("query-status"));
	ck_assert_str_eq(json_string_value(json_object_get(status, "session")), "running");
	json_decref(peer_return(&second, REQUEST("session-stop")));
}
END_TEST

START_TEST(an_owner_holds_control_from_the_start)
{
	struct peer owner;

	peer_connect(&owner, true);
	peer_negotiate(&owner);
	peer_refused(&first, REQUEST("control-take"), "Busy", holder);
	json_decref(peer_return(&owner, REQUEST("guest-start")));
	json_decref(peer_return(&owner, REQUEST("control-release")));
	take(&first);
	peer_refused(&owner, REQUEST("session-start"), "Busy", holder);
	peer_deinit(&owner);
}
END_TEST

static void assert_client(const json_t *clients, size_t index, const char *role, bool you)
{
	const json_t *client = json_array_get(clients, index);

	ck_assert_int_eq(json_integer_value(json_object_get(client, "pid")), getpid());
	ck_assert_int_eq(json_integer_value(json_object_get(client, "uid")), (json_int_t)geteuid());
	ck_assert_str_eq(json_string_value(json_object_get(client, "role")), role);
	ck_assert(json_is_false(json_object_get(client, "owner")));
	ck_assert_int_eq(json_is_true(json_object_get(client, "you")), you);
}

START_TEST(clients_are_listed)
{
	take(&second);
	json_auto_t *answer = peer_return(&first, REQUEST("query-clients"));
	const json_t *clients = json_object_get(answer, "clients");
	ck_assert_uint_eq(json_array_size(clients), 2);
	assert_client(clients, 0, "instrument", true);
	assert_client(clients, 1, "control", false);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_roles");
	TCase *tc = tcase_create("roles");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, control_is_nobodys_at_first);
	tcase_add_test(tc, control_has_one_holder);
	tcase_add_test(tc, control_is_given_back);
	tcase_add_test(tc, who_dies_holding_control_leaves_it_and_the_session);
	tcase_add_test(tc, an_owner_holds_control_from_the_start);
	tcase_add_test(tc, clients_are_listed);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
