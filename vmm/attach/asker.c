// SPDX-License-Identifier: BSD-2-Clause
/* The engine's side. */
#include "attach/asker.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/domain.h"

struct asker {
	struct monitor monitor; /* first */
	pid_t process;
	int requests, events;
	guint source; /* of the events */
	asker_event event;
	void *data;
	struct asker_description description;
};

static bool gone(GError **error)
{
	g_set_error_literal(error, MONITOR_ERROR, MONITOR_ERROR_GONE,
	                    "the process that asks libvirt and QEMU has ended");
	return false;
}

static bool receive_all(int socket, void *bytes, size_t n)
{
	ssize_t got;

	do
		got = recv(socket, bytes, n, MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)n;
}

/* A message and its bytes, with a NUL behind them; new. */
static char *message_receive(const struct asker *asker, struct asker_header *header, GError **error)
{
	char *bytes;

	if (!receive_all(asker->requests, header, sizeof(*header)) || header->bytes > MONITOR_LINE_BYTES_MAX) {
		gone(error);
		return NULL;
	}
	bytes = g_malloc0(header->bytes + 1);
	if (header->bytes == 0 || receive_all(asker->requests, bytes, header->bytes))
		return bytes;
	g_free(bytes);
	gone(error);
	return NULL;
}

static void failure_take(const struct asker_header *header, const char *why, GError **error)
{
	g_set_error_literal(error, header->is_domain_error ? DOMAIN_ERROR : MONITOR_ERROR, (int)header->code, why);
}

/* ---- the monitor ---- */

static char *asker_transact(struct monitor *monitor, const struct monitor_request *request, GError **error)
{
	const struct asker *asker = (const struct asker *)monitor;
	struct asker_header header;

	if (send(asker->requests, request, sizeof(*request), MSG_NOSIGNAL) != (ssize_t)sizeof(*request)) {
		gone(error);
		return NULL;
	}
	for (;;) {
		char *text = message_receive(asker, &header, error);

		if (!text || header.kind == ASKER_ANSWER)
			return text;
		if (header.kind == ASKER_FAILED)
			failure_take(&header, text, error);
		else if (monitor->event)
			monitor->event(text, monitor->event_data);
		g_free(text);
		if (header.kind == ASKER_FAILED)
			return NULL;
	}
}

static void asker_close(struct monitor *monitor)
{
	struct asker *asker = (struct asker *)monitor;

	g_clear_handle_id(&asker->source, g_source_remove);
	close(asker->requests);
	close(asker->events);
	g_free(asker);
}

static const struct monitor_transport asker_transport = {.transact = asker_transact, .close = asker_close};

/* ---- events ---- */

static gboolean on_word(gint fd, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct asker *asker = data;
	struct asker_word word;
	ssize_t n = recv(fd, &word, sizeof(word), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return G_SOURCE_CONTINUE;
	if (n == (ssize_t)sizeof(word) && memchr(word.text, '\0', sizeof(word.text))) {
		asker->event(word.text, asker->data);
		return G_SOURCE_CONTINUE;
	}
	asker->source = 0;
	return G_SOURCE_REMOVE;
}

/* ---- beginning ---- */

static bool pairs_make(int requests[2], int events[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) != 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) == 0)
		return true;
	close(requests[0]);
	close(requests[1]);
	return false;
}

struct asker *asker_start(const struct asker_config *config)
{
	int requests[2], events[2];
	struct asker *asker;

	if (!pairs_make(requests, events))
		return NULL;
	pid_t child = fork();

	if (child == 0)
		asker_serve(config, requests[1], events[1]);
	close(requests[1]);
	close(events[1]);
	if (child < 0) {
		close(requests[0]);
		close(events[0]);
		return NULL;
	}
	asker = g_new0(struct asker, 1);
	monitor_init(&asker->monitor, &asker_transport);
	asker->process = child;
	asker->requests = requests[0];
	asker->events = events[0];
	return asker;
}

void asker_free(struct asker *asker)
{
	if (asker)
		monitor_free(&asker->monitor);
}

void asker_end(struct asker *asker)
{
	const pid_t process = asker->process;

	asker_free(asker);
	while (waitpid(process, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool texts_end(const struct asker_description *description)
{
	return memchr(description->name, '\0', sizeof(description->name)) &&
	       memchr(description->uuid, '\0', sizeof(description->uuid)) &&
	       memchr(description->type, '\0', sizeof(description->type)) &&
	       memchr(description->security, '\0', sizeof(description->security));
}

const struct asker_description *asker_wait(struct asker *asker, asker_event event, void *data, GError **error)
{
	struct asker_header header;
	g_autofree char *bytes = message_receive(asker, &header, error);

	if (!bytes)
		return NULL;
	if (header.kind == ASKER_FAILED) {
		failure_take(&header, bytes, error);
		return NULL;
	}
	if (header.kind != ASKER_HELLO || header.bytes != sizeof(asker->description)) {
		gone(error);
		return NULL;
	}
	memcpy(&asker->description, bytes, sizeof(asker->description));
	if (!texts_end(&asker->description)) {
		gone(error);
		return NULL;
	}
	asker->event = event;
	asker->data = data;
	asker->source = g_unix_fd_add(asker->events, G_IO_IN | G_IO_HUP, on_word, asker);
	return &asker->description;
}

struct monitor *asker_monitor(struct asker *asker)
{
	return &asker->monitor;
}
