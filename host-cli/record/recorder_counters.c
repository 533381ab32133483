// SPDX-License-Identifier: BSD-2-Clause
/* A recording of counters that a client holds in an engine. */
#include "record/recorder_priv.h"

#include <poll.h>
#include <vprof/control.h>

#include "engine/counters.h"
#include "engine/engine_process.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"

#define POLL_MS 200
#define RINGS_MAX 1024u

/* ---- what differs from a session ---- */

static json_t *counters_begin(struct recorder *recorder, GError **error)
{
	json_t *session = counters_session(recorder->config.counters);
	const json_t *counter;
	size_t i;

	json_array_foreach(recorder->config.counters, i, counter) {
		json_t *which = json_pack("{s:O}", "counter", json_object_get(counter, "counter"));

		if (recorder_get_rings(recorder, "counter-rings", which, error))
			continue;
		json_decref(session);
		return NULL;
	}
	return session;
}

static bool counters_start(struct recorder *recorder, GError **error)
{
	return counters_for_all(recorder->config.client, recorder->config.counters, "counter-start", false, error);
}

/* The sums of the counters, as query-stats has them. */
static json_t *statistics_of(const json_t *counters)
{
	json_t *total = json_object(), *value;
	const json_t *counter;
	const char *name;
	size_t i;

	json_array_foreach(counters, i, counter) {
		json_object_foreach(json_object_get(counter, "statistics"), name, value) {
			json_int_t sum = json_integer_value(value) + json_integer_value(json_object_get(total, name));

			json_object_set_new(total, name, json_integer(sum));
		}
	}
	return json_pack("{s:o, s:[]}", "total", total, "vcpus");
}

/* They are stopped before they are read, so that their counts match their samples. */
static bool counters_stop(struct recorder *recorder, GError **error)
{
	json_t *counters = recorder->config.counters;

	if (!counters_for_all(recorder->config.client, counters, "counter-stop", false, error) ||
	    !counters_for_all(recorder->config.client, counters, "counter-read", true, error))
		return false;
	recorder->statistics = statistics_of(counters);
	return true;
}

const struct recorder_source recorder_of_counters = {
	.begin = counters_begin,
	.start = counters_start,
	.stop = counters_stop,
};

/* ---- a whole recording ---- */

static bool has_ended(struct client *client)
{
	g_autoptr(GError) gone = NULL;
	json_t *event = client_next_event(client, 0, &gone);
	bool ended = gone || g_strcmp0(member_text(event, "event"), VPROF_EVENT_GUEST_ENDED) == 0;

	json_decref(event);
	return ended;
}

/* *ended: the guest or its engine has ended; the rings stay mapped. */
static bool follow(struct recorder *recorder, uint64_t seconds, bool *ended, GError **error)
{
	gint64 end_us = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);
	struct pollfd entries[RINGS_MAX];
	bool done = true;

	while (done && !interrupted() && !*ended && g_get_monotonic_time() < end_us) {
		size_t n = recorder_poll(recorder, entries, G_N_ELEMENTS(entries));
		gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;

		poll(entries, n, (int)CLAMP(left_ms, 0, POLL_MS));
		*ended = has_ended(recorder->config.client);
		done = recorder_drain(recorder, error);
	}
	return done;
}

static bool record(const struct recorder_config *config, const struct recorder_end *end, const char *path,
                   uint64_t seconds, GError **error)
{
	struct recorder *recorder = recorder_new(config, error);
	bool ended = false;
	bool done = recorder && recorder_open(recorder, path, error) && follow(recorder, seconds, &ended, error);

	if (ended)
		say("the guest has ended");
	done = done && (ended || recorder_stop(recorder, error)) && recorder_finish(recorder, end, error);
	if (done)
		recorder_say_written(recorder);
	recorder_free(recorder);
	return done;
}

bool recorder_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error)
{
	json_t *guest = engine_ask(client, "query-guest", NULL, error);
	const struct recorder_config config = {
		.client = client,
		.guest = guest,
		.counters = counters,
		.initrd = member_text(guest, "initrd"),
	};

	interrupt_watch();
	const bool done = guest && record(&config, &(struct recorder_end){.guest = guest}, path, seconds, error);

	json_decref(guest);
	return done;
}
