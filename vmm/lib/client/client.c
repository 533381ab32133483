// SPDX-License-Identifier: BSD-2-Clause
#include "lib/client/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "lib/client/line.h"
#include "lib/client/socket.h"

#define RECEIVE_BYTES 8192
#define EVENTS_MAX 4096u    /* kept until they are asked for; then the oldest goes */
#define CONNECT_RETRY_MS 10 /* between two attempts while the backlog of the engine is full */
#define PATIENCE 10         /* times as long as asked for, an engine that works is waited for */

G_DEFINE_QUARK(vprof_client_error, client_error)

/* Greeting and answers: all lines that are not events. */
struct answer {
	json_t *object;
	GArray *fds; /* of int, closed with the array */
};

struct client {
	int fd;
	pid_t engine; /* 0: not known */
	bool closed;  /* by the engine, or by us because it cannot be understood */
	struct line_buffer input;
	GArray *fds;    /* that came with the line that is not complete yet */
	GQueue answers; /* of struct answer */
	GQueue events;  /* of json_t */
	json_t *greeting;
	json_int_t last_id;
};

static void descriptor_clear(void *element)
{
	close(*(int *)element);
}

static GArray *descriptors_new(void)
{
	GArray *fds = g_array_new(FALSE, FALSE, sizeof(int));

	g_array_set_clear_func(fds, descriptor_clear);
	return fds;
}

static void answer_free(struct answer *answer)
{
	if (!answer)
		return;
	json_decref(answer->object);
	g_array_unref(answer->fds);
	g_free(answer);
}

static int ms_until(int64_t deadline)
{
	int64_t us = deadline - g_get_monotonic_time();

	return us <= 0 ? 0 : (int)MIN((us + 999) / 1000, INT_MAX);
}

/* ---- waiting ---- */

/* Times are g_get_monotonic_time()'s. */
struct wait {
	const char *for_what;
	int64_t began, deadline;
	int64_t patience_us; /* by which the deadline is put off while the engine works; 0: it stays */
	uint64_t worked_ns;  /* by the engine when the deadline was set */
};

/* The CPU time of the thread that answers; 0: not known. */
static uint64_t engine_worked_ns(const struct client *client)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/schedstat", (int)client->engine);
	g_autofree char *text = NULL;
	uint64_t ns = 0;

	/* Its first number (Documentation/scheduler/sched-stats.rst). */
	if (client->engine > 0 && g_file_get_contents(path, &text, NULL, NULL) && sscanf(text, "%" SCNu64, &ns) != 1)
		ns = 0;
	return ns;
}

static struct wait wait_for(const char *what, unsigned timeout_ms)
{
	int64_t now = g_get_monotonic_time();

	return (struct wait){.for_what = what, .began = now, .deadline = now + (int64_t)timeout_ms * 1000};
}

static struct wait wait_for_answer(const struct client *client, const char *to, unsigned timeout_ms)
{
	struct wait wait = wait_for(to, timeout_ms);

	wait.patience_us = wait.deadline - wait.began;
	wait.worked_ns = engine_worked_ns(client);
	return wait;
}

/* At the deadline. False: the engine is not worth waiting for. */
static bool wait_longer(const struct client *client, struct wait *wait, GError **error)
{
	int64_t now = g_get_monotonic_time();
	uint64_t worked_ns = engine_worked_ns(client);

	if (worked_ns > wait->worked_ns && now - wait->began < PATIENCE * wait->patience_us) {
		wait->worked_ns = worked_ns;
		wait->deadline = now + wait->patience_us;
		return true;
	}
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_TIMEOUT,
	            "the engine does not answer %s in time; it may be stopped or its host overloaded", wait->for_what);
	return false;
}

static bool fail_closed(struct client *client, GError **error)
{
	client->closed = true;
	g_set_error_literal(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED,
	                    "the engine closed the connection; `vprof list` shows whether it still runs");
	return false;
}

/* The rest of the stream cannot be trusted and is not read. */
static bool G_GNUC_PRINTF(3, 4) fail_protocol(struct client *client, GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *what = g_strdup_vprintf(format, args);
	va_end(args);

	client->closed = true;
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL, "cannot understand the engine: %s", what);
	return false;
}

/* Steals `object`. */
static void queue_message(struct client *client, json_t *object)
{
	if (json_object_get(object, "event")) {
		g_array_set_size(client->fds, 0); /* no event has descriptors of use to us */
		g_queue_push_tail(&client->events, object);
		if (g_queue_get_length(&client->events) > EVENTS_MAX)
			json_decref(g_queue_pop_head(&client->events));
		return;
	}
	struct answer *answer = g_new(struct answer, 1);
	*answer = (struct answer){.object = object, .fds = g_steal_pointer(&client->fds)};
	client->fds = descriptors_new();
	g_queue_push_tail(&client->answers, answer);
}

static bool take_lines(struct client *client, GError **error)
{
	size_t length;
	const char *line;

	while ((line = line_buffer_take(&client->input, &length))) {
		json_error_t reason;
		json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);

		if (!json_is_object(object)) {
			json_decref(object);
			return fail_protocol(client, error, "a line is not a JSON object");
		}
		queue_message(client, object);
	}
	if (line_buffer_state(&client->input) == LINE_TOO_LONG)
		return fail_protocol(client, error, "a line of more than %u bytes", VPROF_CONTROL_LINE_BYTES_MAX);
	return true;
}

/* Descriptors belong to the line that ends in the bytes they came with (vprof/control.h): take earlier lines first. */
static bool take_bytes(struct client *client, const char *bytes, size_t n, const GArray *fds, GError **error)
{
	const char *newline = memrchr(bytes, '\n', n - 1);
	size_t before = newline ? (size_t)(newline + 1 - bytes) : 0;

	line_buffer_append(&client->input, bytes, before);
	bool ok = take_lines(client, error);
	g_array_append_vals(client->fds, fds->data, fds->len);
	if (!ok)
		return false;
	if (client->fds->len > VPROF_CONTROL_FDS_MAX)
		return fail_protocol(client, error, "more than %u descriptors in a line", VPROF_CONTROL_FDS_MAX);
	line_buffer_append(&client->input, bytes + before, n - before);
	return take_lines(client, error);
}

static bool receive(struct client *client, GError **error)
{
	char bytes[RECEIVE_BYTES];
	g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int)); /* take_bytes gives them to client->fds */
	ssize_t got = client_socket_receive(client->fd, bytes, sizeof(bytes), fds);

	if (got > 0)
		return take_bytes(client, bytes, (size_t)got, fds, error);

	g_array_append_vals(client->fds, fds->data, fds->len);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got < 0 && errno == EPROTO)
		return fail_protocol(client, error, "more than %u descriptors in a message", VPROF_CONTROL_FDS_MAX);
	return fail_closed(client, error);
}

/* Waits for `events` or for input, and reads the input. *ready: those of `events` that are set. */
static bool wait_and_receive(struct client *client, short events, short *ready, struct wait *wait, GError **error)
{
	if (client->closed)
		return fail_closed(client, error);

	struct pollfd pollfd = {.fd = client->fd, .events = (short)(events | POLLIN)};
	int n = poll(&pollfd, 1, ms_until(wait->deadline));
	if (n == 0 && !wait_longer(client, wait, error))
		return false;
	if (n < 0)
		pollfd.revents = 0; /* EINTR */
	*ready = (short)(pollfd.revents & events);
	if (pollfd.revents & ~POLLOUT)
		return receive(client, error);
	return true;
}

static bool send_request(struct client *client, const char *line, size_t n, struct wait *wait, GError **error)
{
	for (size_t sent = 0; sent < n;) {
		short ready;

		if (!wait_and_receive(client, POLLOUT, &ready, wait, error))
			return false;
		if (!ready)
			continue;
		ssize_t some = client_socket_send(client->fd, line + sent, n - sent, NULL, 0);
		if (some < 0 && errno != EAGAIN && errno != EINTR)
			return fail_closed(client, error);
		if (some > 0)
			sent += (size_t)some;
	}
	return true;
}

static struct answer *next_answer(struct client *client, struct wait *wait, GError **error)
{
	short ready;

	while (g_queue_is_empty(&client->answers)) {
		if (!wait_and_receive(client, 0, &ready, wait, error))
			return NULL;
	}
	return g_queue_pop_head(&client->answers);
}

/* Answers to requests that timed out come late and are dropped. */
static struct answer *answer_to(struct client *client, json_int_t id, struct wait *wait, GError **error)
{
	for (;;) {
		struct answer *answer = next_answer(client, wait, error);

		if (!answer)
			return NULL;
		const json_t *answered = json_object_get(answer->object, "id");
		if (!answered || json_integer_value(answered) == id)
			return answer;
		answer_free(answer);
	}
}

static json_t *answer_value(struct client *client, const struct answer *answer, GError **error)
{
	json_t *value = json_object_get(answer->object, "return");

	if (value)
		return json_incref(value);

	const char *class, *text;
	if (json_unpack(answer->object, "{s:{s:s, s:s}}", "error", "class", &class, "desc", &text) == 0)
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_REMOTE, "%s: %s", class, text);
	else
		fail_protocol(client, error, "an answer without \"return\" and \"error\"");
	return NULL;
}

bool client_refused(const GError *error, const char *class)
{
	size_t n = strlen(class);

	return g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_REMOTE) && strncmp(error->message, class, n) == 0 &&
	       error->message[n] == ':';
}

/* A line with its newline, or NULL. Steals `arguments`. */
static char *request_new(json_int_t id, const char *method, json_t *arguments, size_t *n, GError **error)
{
	json_auto_t *request = json_pack("{s:s, s:o*, s:I}", "execute", method, "arguments", arguments, "id", id);
	g_autofree char *text = json_dumps(request, JSON_COMPACT);

	if (!text) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL, "cannot send %s: not UTF-8", method);
		return NULL;
	}
	*n = strlen(text) + 1;
	if (*n > VPROF_CONTROL_LINE_BYTES_MAX) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL,
		            "cannot send %s: its arguments need %zu bytes, and a line holds %u", method, *n,
		            VPROF_CONTROL_LINE_BYTES_MAX);
		return NULL;
	}
	text[*n - 1] = '\n';
	return g_steal_pointer(&text);
}

json_t *client_execute(struct client *client, const char *method, json_t *arguments, int **fds, size_t *n_fds,
                       unsigned timeout_ms, GError **error)
{
	struct wait wait = wait_for_answer(client, method, timeout_ms);
	json_int_t id = ++client->last_id;

	size_t n;
	g_autofree char *line = request_new(id, method, arguments, &n, error);
	if (!line || !send_request(client, line, n, &wait, error))
		return NULL;

	struct answer *answer = answer_to(client, id, &wait, error);
	if (!answer)
		return NULL;
	json_t *value = answer_value(client, answer, error);
	if (value && fds) {
		*n_fds = answer->fds->len;
		*fds = g_array_steal(answer->fds, NULL);
	}
	answer_free(answer);
	return value;
}

json_t *client_next_event(struct client *client, unsigned timeout_ms, GError **error)
{
	struct wait wait = wait_for("events", timeout_ms);
	short ready;
	g_autoptr(GError) reason = NULL;

	while (g_queue_is_empty(&client->events)) {
		if (wait_and_receive(client, 0, &ready, &wait, &reason))
			continue;
		if (!g_error_matches(reason, CLIENT_ERROR, CLIENT_ERROR_TIMEOUT))
			g_propagate_error(error, g_steal_pointer(&reason));
		return NULL;
	}
	return g_queue_pop_head(&client->events);
}

static bool greet(struct client *client, unsigned timeout_ms, GError **error)
{
	struct wait wait = wait_for_answer(client, "a new connection", timeout_ms);
	struct answer *greeting = next_answer(client, &wait, error);

	if (!greeting)
		return false;
	client->greeting = json_incref(json_object_get(greeting->object, "vprof"));
	answer_free(greeting);

	const char *version;
	int protocol;
	if (json_unpack(client->greeting, "{s:s, s:i}", "version", &version, "protocol", &protocol) != 0)
		return fail_protocol(client, error, "it did not greet as a vprof engine");
	/* A newer engine decides whether it still serves ours. */
	if (protocol < VPROF_CONTROL_PROTOCOL)
		return fail_protocol(client, error,
		                     "version %s speaks protocol %d, this program %d; use both from one installation",
		                     version, protocol, VPROF_CONTROL_PROTOCOL);

	json_t *arguments = json_pack("{s:i}", "protocol", VPROF_CONTROL_PROTOCOL);
	json_auto_t *value = client_execute(client, "negotiate", arguments, NULL, NULL, timeout_ms, error);
	return value;
}

struct client *client_new_fd(int fd, pid_t engine, unsigned timeout_ms, GError **error)
{
	struct client *client = g_new(struct client, 1);

	*client = (struct client){.fd = fd, .engine = engine, .fds = descriptors_new()};
	line_buffer_init(&client->input);
	g_queue_init(&client->answers);
	g_queue_init(&client->events);

	if (greet(client, timeout_ms, error))
		return client;
	client_free(client);
	return NULL;
}

/* Another user's process at the path could say what it likes. */
static bool check_server(int fd, const char *path, GError **error)
{
	const struct ucred peer = client_socket_peer(fd);

	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_CONNECT,
	            "cannot trust the engine at %s: it belongs to uid %d, not to root or to you; run this as that user",
	            path, (int)peer.uid);
	return false;
}

struct client *client_connect(const char *path, unsigned timeout_ms, GError **error)
{
	const int64_t deadline = wait_for(path, timeout_ms).deadline;
	int fd;

	while ((fd = client_socket_connect(path)) < 0 && errno == EAGAIN && ms_until(deadline) > 0)
		poll(NULL, 0, MIN(ms_until(deadline), CONNECT_RETRY_MS));
	if (fd < 0) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_CONNECT,
		            "cannot connect to the engine at %s: %s; `vprof list` shows the running ones", path,
		            g_strerror(errno));
		return NULL;
	}
	if (!check_server(fd, path, error)) {
		close(fd);
		return NULL;
	}
	return client_new_fd(fd, 0, (unsigned)ms_until(deadline), error);
}

void client_free(struct client *client)
{
	if (!client)
		return;
	g_queue_clear_full(&client->answers, (GDestroyNotify)answer_free);
	g_queue_clear_full(&client->events, (GDestroyNotify)json_decref);
	g_array_unref(client->fds);
	line_buffer_deinit(&client->input);
	json_decref(client->greeting);
	close(client->fd);
	g_free(client);
}

int client_fd(const struct client *client)
{
	return client->fd;
}

const json_t *client_greeting(const struct client *client)
{
	return client->greeting;
}
