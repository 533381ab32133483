// SPDX-License-Identifier: BSD-2-Clause
#include "engine/session_events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <vprof/recording.h>

#include "engine/engine_process.h"
#include "lib/record/ring_reader.h"
#include "ui/text.h"

G_DEFINE_QUARK(vprof_session_events_error, session_events_error)

bool session_protocol_error(GError **error, const char *what)
{
	g_set_error(error, SESSION_EVENTS_ERROR, SESSION_EVENTS_ERROR_PROTOCOL,
	            "the engine's answer makes no sense: %s; are vprof and its engine from one installation?", what);
	return false;
}

/* "hex of VPROF_ATTR_BYTES bytes". */
static bool attr_parse(const char *hex, struct perf_event_attr *attr)
{
	uint8_t bytes[VPROF_ATTR_BYTES];

	if (!hex || strlen(hex) != 2 * sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		int high = g_ascii_xdigit_value(hex[2 * i]), low = g_ascii_xdigit_value(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	/* struct perf_event_attr may be longer in newer headers; added members are 0, which means unused. */
	memset(attr, 0, sizeof(*attr));
	memcpy(attr, bytes, MIN(sizeof(bytes), sizeof(*attr)));
	return true;
}

static bool event_parse(const json_t *json, struct recording_event *event, GError **error)
{
	const json_t *ids = json_object_get(json, "ids"), *id;
	uint64_t *numbers;
	size_t i;

	event->name = member_text(json, "name");
	if (!event->name || !attr_parse(member_text(json, "attr"), &event->attr))
		return session_protocol_error(error, "an event without a name or with a wrong attr");
	numbers = g_new(uint64_t, json_array_size(ids));
	event->ids = numbers;
	event->n_ids = json_array_size(ids);
	json_array_foreach(ids, i, id)
		numbers[i] = (uint64_t)json_integer_value(id);
	return true;
}

struct recording_event *session_events_parse(const json_t *session, size_t *n, GError **error)
{
	const json_t *list = json_object_get(session, "events"), *event;
	struct recording_event *events;
	size_t i, n_events = json_array_size(list);

	if (n_events == 0) {
		session_protocol_error(error, "a session without events");
		return NULL;
	}
	events = g_new0(struct recording_event, n_events);
	json_array_foreach(list, i, event) {
		if (event_parse(event, &events[i], error))
			continue;
		session_events_free(events, n_events);
		return NULL;
	}
	*n = n_events;
	return events;
}

void session_events_free(struct recording_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g_free((void *)events[i].ids);
	g_free(events);
}

static bool eventfd_keep(GArray *eventfds, int fd, GError **error)
{
	const int eventfd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (eventfd >= 0)
		g_array_append_val(eventfds, eventfd);
	else
		g_set_error(error, SESSION_EVENTS_ERROR, SESSION_EVENTS_ERROR_RING,
		            "cannot duplicate a ring's eventfd: %s", g_strerror(errno));
	return eventfd >= 0;
}

/* Descriptors come in pairs: the memory of a ring, and the eventfd that signals that it should be drained. */
static bool rings_map(GPtrArray *readers, GArray *eventfds, const int *fds, size_t n_fds, GError **error)
{
	if (n_fds == 0 || n_fds % 2 != 0)
		return session_protocol_error(error, "rings without descriptors");
	for (size_t i = 0; i < n_fds; i += 2) {
		struct ring_reader *reader = ring_reader_open(fds[i], error);

		if (!reader)
			return false;
		g_ptr_array_add(readers, reader);
		if (eventfds && !eventfd_keep(eventfds, fds[i + 1], error))
			return false;
	}
	return true;
}

bool session_rings_get(struct client *client, const char *method, json_t *arguments, GPtrArray *readers,
                       GArray *eventfds, GError **error)
{
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer = client_execute(client, method, arguments, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);
	bool mapped = answer && rings_map(readers, eventfds, fds, n_fds, error);

	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return mapped;
}
