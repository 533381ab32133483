// SPDX-License-Identifier: BSD-2-Clause
/*
 * A control server with a guest that needs no KVM, and peers that talk to it over sockets. Server and peers share the
 * test's thread: while one waits for a line, the main loop runs.
 */
#ifndef VPROF_TEST_SUPPORT_CONTROL_FIXTURE_H
#define VPROF_TEST_SUPPORT_CONTROL_FIXTURE_H

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer_check.h"
#include "control/server.h"
#include "fake_guest.h"
#include "lib/client/line.h"
#include "lib/client/socket.h"

#define FIXTURE_VCPUS 2u
#define FIXTURE_WAIT_US (INT64_C(10) * G_USEC_PER_SEC)

static struct fake_guest fake;
static struct session *session;
static struct control_server *server;
static unsigned quits;

static bool fixture_guest_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	guest->state = GUEST_RUNNING;
	return true;
}

static void fixture_guest_end(const struct guest_end *end)
{
	if (fake.guest.state == GUEST_ENDED)
		return;
	fake.guest.state = GUEST_RUNNING; /* what fake_guest_end wants; a created guest has its threads, too */
	fake_guest_end(&fake);
	fake.guest.end = *end;
	control_server_guest_ended(server);
}

static void fixture_guest_stop(struct guest *guest G_GNUC_UNUSED, enum guest_end_reason reason, const char *message)
{
	static char text[64];

	g_strlcpy(text, message, sizeof(text));
	fixture_guest_end(&(struct guest_end){.reason = reason, .message = text});
}

/* Nothing is mapped: a call chain ends at its first frame. */
static bool fixture_memory_read(struct guest *guest G_GNUC_UNUSED, gpa_t gpa G_GNUC_UNUSED, void *to G_GNUC_UNUSED,
                                size_t bytes G_GNUC_UNUSED)
{
	return false;
}

static const struct guest_ops fixture_ops = {
	.start = fixture_guest_start,
	.stop = fixture_guest_stop,
	.memory_read = fixture_memory_read,
	.run_on_vcpu = fake_run_on_vcpu,
};

static void fixture_quit(void *data G_GNUC_UNUSED, bool at_once G_GNUC_UNUSED)
{
	quits++;
}

static inline void fixture_setup(void)
{
	fake_guest_init(&fake, FIXTURE_VCPUS);
	fake.guest.ops = &fixture_ops;
	fake.guest.name = (char *)"fixture";
	session = session_new(&fake.guest, NULL);
	fake_guest_start(&fake);
	fake.guest.state = GUEST_CREATED;
	quits = 0;
	server = control_server_new(&fake.guest, session);
	control_server_on_quit(server, fixture_quit, NULL);
}

static inline void fixture_teardown(void)
{
	fixture_guest_stop(&fake.guest, GUEST_END_STOPPED, "the test is over");
	control_server_free(server);
	session_free(session);
}

static inline void fixture_iterate(void)
{
	if (!g_main_context_iteration(NULL, FALSE))
		g_usleep(200);
}

/* Lets the main loop run until nothing is left to do. */
static inline void fixture_settle(void)
{
	while (g_main_context_iteration(NULL, FALSE))
		;
}

struct peer {
	int fd;
	bool closed; /* by the server */
	struct line_buffer input;
	GArray *fds; /* that came with the last line */
};

static inline void peer_init_fd(struct peer *peer, int fd)
{
	*peer = (struct peer){.fd = fd, .fds = g_array_new(FALSE, FALSE, sizeof(int))};
	line_buffer_init(&peer->input);
}

static inline void peer_connect(struct peer *peer, bool owner)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	control_server_add_client(server, fds[0], owner);
	peer_init_fd(peer, fds[1]);
}

static inline void peer_deinit(struct peer *peer)
{
	for (guint i = 0; i < peer->fds->len; i++)
		close(g_array_index(peer->fds, int, i));
	g_array_unref(peer->fds);
	line_buffer_deinit(&peer->input);
	if (peer->fd >= 0)
		close(peer->fd);
}

static inline void peer_write(struct peer *peer, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(peer->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		ck_assert(sent > 0 || errno == EAGAIN);
		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
		}
		fixture_iterate();
	}
}

static inline void peer_say(struct peer *peer, const char *text)
{
	peer_write(peer, text, strlen(text));
	peer_write(peer, "\n", 1);
}

static inline void peer_receive(struct peer *peer)
{
	char bytes[4096];
	ssize_t got = client_socket_receive(peer->fd, bytes, sizeof(bytes), peer->fds);

	if (got > 0)
		line_buffer_append(&peer->input, bytes, (size_t)got);
	else if (got == 0 || errno == ECONNRESET)
		peer->closed = true;
	else
		ck_assert_int_eq(errno, EAGAIN);
}

/* The next line as JSON (new reference), or NULL when the server has closed the connection. */
static inline json_t *peer_line(struct peer *peer)
{
	int64_t deadline = g_get_monotonic_time() + FIXTURE_WAIT_US;

	for (;;) {
		size_t length;
		const char *line = line_buffer_take(&peer->input, &length);

		if (line) {
			json_error_t reason;
			json_t *object = json_loadb(line, length, 0, &reason);

			ck_assert_msg(json_is_object(object), "%s: %s", reason.text, line);
			return object;
		}
		if (peer->closed)
			return NULL;
		ck_assert_msg(g_get_monotonic_time() < deadline, "no line within %d s",
		              (int)(FIXTURE_WAIT_US / G_USEC_PER_SEC));
		fixture_iterate();
		peer_receive(peer);
	}
}

static inline void assert_json(const json_t *got, const char *expected_text)
{
	json_error_t reason;
	json_auto_t *expected = json_loads(expected_text, JSON_DECODE_ANY, &reason);

	ck_assert_msg(expected, "%s in the expected %s", reason.text, expected_text);
	g_autofree char *text = got ? json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY) : g_strdup("nothing");
	ck_assert_msg(json_equal(got, expected), "expected %s, got %s", expected_text, text);
}

static inline void peer_expect(struct peer *peer, const char *expected)
{
	json_auto_t *line = peer_line(peer);

	assert_json(line, expected);
}

static inline void peer_expect_closed(struct peer *peer)
{
	json_auto_t *line = peer_line(peer);
	g_autofree char *text = line ? json_dumps(line, 0) : NULL;

	ck_assert_msg(!line, "the connection is open, and says %s", text);
}

/* The answer to `request` (new reference); events before it are thrown away. */
static inline json_t *peer_ask(struct peer *peer, const char *request)
{
	peer_say(peer, request);
	for (;;) {
		json_t *line = peer_line(peer);

		if (!line || !json_object_get(line, "event"))
			return line;
		json_decref(line);
	}
}

/* What `request` returns (new reference), which is what the schema says. */
static inline json_t *peer_return(struct peer *peer, const char *request)
{
	guint fds_before = peer->fds->len;
	json_auto_t *asked = json_loads(request, 0, NULL), *answer = peer_ask(peer, request);
	g_autofree char *text = json_dumps(answer, JSON_COMPACT);
	json_t *value = json_object_get(answer, "return");

	ck_assert_msg(value, "%s: %s", request, text);
	assert_answer(json_string_value(json_object_get(asked, "execute")), value, peer->fds->len - fds_before);
	return json_incref(value);
}

/* That `request` fails with an error of this class, with `part` in its text. */
static inline void peer_refused(struct peer *peer, const char *request, const char *class, const char *part)
{
	json_auto_t *answer = peer_ask(peer, request);
	g_autofree char *text = json_dumps(answer, JSON_COMPACT);
	const json_t *error = json_object_get(answer, "error");

	ck_assert_msg(error, "%s: %s", request, text ? text : "disconnected");
	ck_assert_msg(g_strcmp0(json_string_value(json_object_get(error, "class")), class) == 0 &&
	                      strstr(json_string_value(json_object_get(error, "desc")), part),
	              "%s: expected %s with \"%s\", got %s", request, class, part, text);
}

/* The data of the next line, which is this event (new reference). */
static inline json_t *peer_event(struct peer *peer, const char *name)
{
	json_auto_t *event = peer_line(peer);
	g_autofree char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	ck_assert_msg(g_strcmp0(json_string_value(json_object_get(event, "event")), name) == 0, "expected %s, got %s",
	              name, text);
	const json_t *timestamp = json_object_get(event, "timestamp");
	ck_assert(json_is_integer(json_object_get(timestamp, "seconds")));
	ck_assert(json_is_integer(json_object_get(timestamp, "microseconds")));
	assert_event(name, json_object_get(event, "data"));
	return json_incref(json_object_get(event, "data"));
}

/* Reads the greeting and negotiates. */
static inline void peer_negotiate(struct peer *peer)
{
	json_auto_t *greeting = peer_line(peer);

	ck_assert_ptr_nonnull(json_object_get(greeting, "vprof"));
	peer_say(peer, "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":1},\"id\":0}");
	peer_expect(peer, "{\"return\":{\"protocol\":1},\"id\":0}");
}

static inline void peer_join(struct peer *peer)
{
	peer_connect(peer, false);
	peer_negotiate(peer);
}

/* The same, with the control role. */
static inline void peer_join_control(struct peer *peer)
{
	peer_join(peer);
	peer_say(peer, "{\"execute\":\"control-take\",\"id\":1}");
	peer_expect(peer, "{\"return\":{},\"id\":1}");
}

#define REQUEST(method) "{\"execute\":\"" method "\"}"

#endif
