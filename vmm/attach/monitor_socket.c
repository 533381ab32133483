// SPDX-License-Identifier: BSD-2-Clause
/* QMP on its own UNIX socket (QEMU, docs/interop/qmp-spec.rst): a greeting, qmp_capabilities, then commands. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/monitor.h"

struct monitor_socket {
	struct monitor monitor; /* first */
	char *path;
	int fd;
	GString *input;  /* received, up to the end of no line */
	gint64 until_us; /* when an answer must be there, whatever else QEMU says */
};

static bool socket_gone(const struct monitor_socket *socket, const char *why, GError **error)
{
	g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_GONE, "the QMP socket %s: %s", socket->path, why);
	return false;
}

static void wait_begin(struct monitor_socket *socket)
{
	socket->until_us = g_get_monotonic_time() + MONITOR_TIMEOUT_MS * 1000;
}

static bool socket_receive(struct monitor_socket *socket, GError **error)
{
	struct pollfd ready = {.fd = socket->fd, .events = POLLIN};
	const gint64 left_us = socket->until_us - g_get_monotonic_time();
	char bytes[4096];

	if (left_us <= 0 || poll(&ready, 1, (int)(left_us / 1000 + 1)) <= 0)
		return socket_gone(socket, "no answer; does another client hold it?", error);
	ssize_t n = read(socket->fd, bytes, sizeof(bytes));

	if (n <= 0)
		return socket_gone(socket, n < 0 ? g_strerror(errno) : "QEMU has closed it", error);
	if (socket->input->len + (size_t)n > MONITOR_LINE_BYTES_MAX)
		return socket_gone(socket, "a line without an end", error);
	g_string_append_len(socket->input, bytes, n);
	return true;
}

/* The next line, without its end; new string. */
static char *socket_line(struct monitor_socket *socket, GError **error)
{
	const char *end;

	while (!(end = memchr(socket->input->str, '\n', socket->input->len)))
		if (!socket_receive(socket, error))
			return NULL;
	char *line = g_strndup(socket->input->str, (gsize)(end - socket->input->str));

	g_string_erase(socket->input, 0, end - socket->input->str + 1);
	return line;
}

/* False for an event, of which the listener is told. */
static bool is_answer(const struct monitor *monitor, const char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	const json_t *event = json_object_get(object, "event");
	bool answer = !event;

	if (json_is_string(event) && monitor->event)
		monitor->event(json_string_value(event), monitor->event_data);
	json_decref(object);
	return answer;
}

static bool socket_send(struct monitor_socket *socket, const struct monitor_request *request, GError **error)
{
	g_autofree char *text = monitor_request_text(request);
	g_autofree char *line = g_strconcat(text, "\n", NULL);
	size_t bytes = strlen(line);

	if (send(socket->fd, line, bytes, MSG_NOSIGNAL) == (ssize_t)bytes)
		return true;
	return socket_gone(socket, g_strerror(errno), error);
}

static char *socket_transact(struct monitor *monitor, const struct monitor_request *request, GError **error)
{
	struct monitor_socket *socket = (struct monitor_socket *)monitor;

	wait_begin(socket);
	if (!socket_send(socket, request, error))
		return NULL;
	for (;;) {
		char *line = socket_line(socket, error);

		if (!line || is_answer(monitor, line))
			return line;
		g_free(line);
	}
}

static void socket_close(struct monitor *monitor)
{
	struct monitor_socket *socket = (struct monitor_socket *)monitor;

	if (socket->fd >= 0)
		close(socket->fd);
	g_string_free(socket->input, true);
	g_free(socket->path);
	g_free(socket);
}

static const struct monitor_transport socket_transport = {.transact = socket_transact, .close = socket_close};

static bool socket_connect(struct monitor_socket *monitor, GError **error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (g_strlcpy(address.sun_path, monitor->path, sizeof(address.sun_path)) >= sizeof(address.sun_path))
		errno = ENAMETOOLONG;
	else if ((monitor->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 &&
	         connect(monitor->fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_CONNECT,
	            "cannot connect to the QMP socket %s: %s; QEMU makes one with -qmp unix:PATH,server=on,wait=off",
	            monitor->path, g_strerror(errno));
	return false;
}

static bool socket_negotiate(struct monitor_socket *socket, GError **error)
{
	wait_begin(socket);
	g_autofree char *greeting = socket_line(socket, error);

	if (!greeting)
		return false;
	json_t *done = monitor_ask(&socket->monitor, MONITOR_CAPABILITIES, error);

	json_decref(done);
	return done != NULL;
}

struct monitor *monitor_open_socket(const char *path, GError **error)
{
	struct monitor_socket *socket = g_new0(struct monitor_socket, 1);

	monitor_init(&socket->monitor, &socket_transport);
	socket->fd = -1;
	socket->path = g_strdup(path);
	socket->input = g_string_new(NULL);
	if (socket_connect(socket, error) && socket_negotiate(socket, error))
		return &socket->monitor;
	monitor_free(&socket->monitor);
	return NULL;
}
