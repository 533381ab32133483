// SPDX-License-Identifier: BSD-2-Clause
/* Many clients, bad ones, and owners. */
#include <string.h>
#include <sys/wait.h>

#include "control/connection_priv.h"
#include "control_fixture.h"
#include "run_suite.h"

START_TEST(quit_is_answered_first_and_once)
{
	struct peer peer;

	peer_join_control(&peer);
	peer_say(&peer, "{\"execute\":\"quit\",\"id\":1}\n{\"execute\":\"quit\",\"id\":2}");
	peer_expect(&peer, "{\"return\":{\"lingers\":false},\"id\":1}");
	json_auto_t *ended = peer_event(&peer, "guest-ended");
	ck_assert_str_eq(json_string_value(json_object_get(ended, "reason")), "stopped");
	peer_expect(&peer, "{\"return\":{\"lingers\":false},\"id\":2}");
	fixture_settle();
	ck_assert_uint_eq(quits, 1);
	peer_deinit(&peer);
}
END_TEST

static void free_in_quit(void *data, bool at_once G_GNUC_UNUSED)
{
	control_server_free(server);
	server = control_server_new(&fake.guest, session);
	*(bool *)data = true;
}

START_TEST(quit_may_free_the_server)
{
	struct peer peer;
	bool freed = false;

	peer_join_control(&peer);
	control_server_on_quit(server, free_in_quit, &freed);
	peer_say(&peer, REQUEST("quit"));
	while (!freed)
		fixture_iterate();
	peer_expect(&peer, "{\"return\":{\"lingers\":false}}");
	json_decref(peer_event(&peer, "guest-ended"));
	peer_expect_closed(&peer);
	peer_deinit(&peer);
}
END_TEST

START_TEST(the_owner_takes_the_guest_along)
{
	struct peer owner, other;

	peer_connect(&owner, true);
	peer_join(&other);
	peer_deinit(&owner);
	json_auto_t *ended = peer_event(&other, "guest-ended");
	ck_assert_str_eq(json_string_value(json_object_get(ended, "reason")), "stopped");
	fixture_settle();
	ck_assert_uint_eq(quits, 1);
	peer_deinit(&other);
}
END_TEST

START_TEST(the_first_end_of_a_guest_stays)
{
	struct peer owner;

	peer_connect(&owner, true);
	fixture_guest_end(&(struct guest_end){.reason = GUEST_END_POWER_OFF});
	peer_deinit(&owner);
	while (quits == 0)
		fixture_iterate();
	ck_assert_int_eq(fake.guest.end.reason, GUEST_END_POWER_OFF);
}
END_TEST

START_TEST(other_clients_come_and_go)
{
	struct peer peer;

	peer_join(&peer);
	peer_deinit(&peer);
	fixture_settle();
	ck_assert_int_eq(fake.guest.state, GUEST_CREATED);
	ck_assert_uint_eq(quits, 0);
}
END_TEST

START_TEST(sixty_four_clients_are_served)
{
	static struct peer peers[64];

	for (size_t i = 0; i < G_N_ELEMENTS(peers); i++)
		peer_join(&peers[i]);
	for (size_t i = 0; i < G_N_ELEMENTS(peers); i++)
		peer_say(&peers[i], REQUEST("query-status"));
	control_server_event(server, "test", json_integer(5));
	for (size_t i = 0; i < G_N_ELEMENTS(peers); i++) {
		json_auto_t *first = peer_line(&peers[i]), *second = peer_line(&peers[i]);
		bool event_first = json_object_get(first, "event");
		const json_t *event = event_first ? first : second, *answer = event_first ? second : first;

		ck_assert_int_eq(json_integer_value(json_object_get(event, "data")), 5);
		ck_assert_ptr_nonnull(json_object_get(answer, "return"));
		peer_deinit(&peers[i]);
	}
}
END_TEST

START_TEST(a_client_that_does_not_read_is_disconnected)
{
	struct peer reader, slow;

	peer_join(&reader);
	peer_join(&slow);
	g_autofree char *text = g_strnfill(10000, 'x');
	unsigned n = CONTROL_OUTPUT_BYTES_MAX / 10000 + 200; /* and what the socket holds */
	for (unsigned i = 0; i < n; i++) {
		control_server_event(server, "test", json_pack("[i, s]", (int)i, text));
		json_auto_t *event = peer_line(&reader);
		ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(event, "data"), 0)), (int)i);
	}
	json_auto_t *answer = peer_ask(&reader, REQUEST("query-status"));
	ck_assert_ptr_nonnull(answer);

	unsigned read = 0;
	for (json_t *line; (line = peer_line(&slow)); read++) /* up to half a line, when it was cut off */
		json_decref(line);
	ck_assert_uint_gt(read, 0);
	ck_assert_uint_lt(read, n);
	peer_deinit(&reader);
	peer_deinit(&slow);
}
END_TEST

START_TEST(a_slow_owner_is_an_owner_gone)
{
	struct peer owner;

	peer_connect(&owner, true);
	peer_negotiate(&owner);
	g_autofree char *text = g_strnfill(60000, 'x');
	for (unsigned i = 0; i < 100; i++)
		control_server_event(server, "test", json_string(text));
	while (quits == 0)
		fixture_iterate();
	ck_assert_int_eq(fake.guest.state, GUEST_ENDED);
	peer_deinit(&owner);
}
END_TEST

/* Writes what goes without reading any answer. Returns how many requests went out whole. */
static size_t flood(struct peer *peer, size_t n)
{
	static const char request[] = REQUEST("query-guest") "\n";
	size_t bytes = sizeof(request) - 1;
	g_autofree char *all = g_malloc(n * bytes);

	for (size_t i = 0; i < n; i++)
		memcpy(all + i * bytes, request, bytes);

	size_t sent = 0;
	for (int stalled = 0; sent < n * bytes && stalled < 100; stalled++) {
		ssize_t some = send(peer->fd, all + sent, n * bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (some > 0) {
			sent += (size_t)some;
			stalled = 0;
		}
		fixture_iterate();
	}
	return sent / bytes;
}

START_TEST(a_client_that_floods_holds_up_itself_only)
{
	struct peer other, flooder;

	peer_join(&other);
	peer_join(&flooder);
	size_t sent = flood(&flooder, 20000);
	ck_assert_uint_gt(sent, 100); /* with their answers more than the sockets take */
	ck_assert_uint_lt(sent, 20000);

	for (int i = 0; i < 10; i++) {
		json_auto_t *answer = peer_ask(&other, REQUEST("query-status"));

		ck_assert_ptr_nonnull(json_object_get(answer, "return"));
	}
	for (size_t i = 0; i < sent; i++) {
		json_auto_t *answer = peer_line(&flooder);

		ck_assert_ptr_nonnull(json_object_get(answer, "return"));
	}
	peer_deinit(&other);
	peer_deinit(&flooder);
}
END_TEST

START_TEST(flush_sends_what_is_queued)
{
	struct peer peer;

	peer_join(&peer);
	g_autofree char *text = g_strnfill(60000, 'x');
	for (int i = 0; i < 10; i++)
		control_server_event(server, "test", json_string(text));
	/* More than the socket takes, without a reader: it waits in vain. */
	int64_t start = g_get_monotonic_time();
	control_server_flush(server, 50);
	ck_assert_int_ge(g_get_monotonic_time() - start, 50000);

	/* With a reader it ends early. */
	pid_t child = fork();
	if (child == 0) {
		char bytes[8192];

		for (ssize_t got = 0, n = 1; n > 0 && got < 600000; got += n)
			n = read(peer.fd, bytes, sizeof(bytes));
		_exit(0);
	}
	start = g_get_monotonic_time();
	control_server_flush(server, 10000);
	ck_assert_int_lt(g_get_monotonic_time() - start, INT64_C(10) * G_USEC_PER_SEC);
	int status;
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	peer_deinit(&peer);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_clients");
	TCase *connections = tcase_create("connections");

	tcase_set_timeout(connections, 40);
	tcase_add_checked_fixture(connections, fixture_setup, fixture_teardown);
	tcase_add_test(connections, quit_is_answered_first_and_once);
	tcase_add_test(connections, quit_may_free_the_server);
	tcase_add_test(connections, the_owner_takes_the_guest_along);
	tcase_add_test(connections, the_first_end_of_a_guest_stays);
	tcase_add_test(connections, other_clients_come_and_go);
	tcase_add_test(connections, sixty_four_clients_are_served);
	tcase_add_test(connections, a_client_that_does_not_read_is_disconnected);
	tcase_add_test(connections, a_slow_owner_is_an_owner_gone);
	tcase_add_test(connections, a_client_that_floods_holds_up_itself_only);
	tcase_add_test(connections, flush_sends_what_is_queued);
	suite_add_tcase(suite, connections);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
