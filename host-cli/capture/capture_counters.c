// SPDX-License-Identifier: BSD-2-Clause
#include "capture/capture_counters.h"

#include <poll.h>
#include <vprof/control.h>

#include "capture/capture_result.h"
#include "engine/attach_engine.h"
#include "engine/counters.h"
#include "engine/engine_find.h"
#include "lib/symbol/symtab.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"

#define POLL_MS 200
#define RINGS_MAX 1024u

struct recording {
	struct client *client;
	json_t *counters; /* borrowed */
	json_t *guest;
	struct capture *capture;
	struct image *image;   /* NULL: nobody knows the kernel */
	struct symtab *symtab; /* likewise */
	bool ended;            /* the guest, or its engine, which left its rings with us */
};

/* The kernel of a guest of ours is a file, that of an attached one is what the engine has found. */
static void load_kernel(struct recording *recording)
{
	const char *kernel = member_text(recording->guest, "kernel");
	g_autoptr(GError) why = NULL;

	recording->image = kernel != NULL ? image_open(kernel, &why) : attach_engine_image(recording->client, &why);
	if (recording->image != NULL)
		recording->symtab = symtab_load(recording->image, &why);
	if (recording->symtab == NULL)
		warn("addresses will have no names: %s", why != NULL ? why->message : "the kernel is not known");
}

static bool begin(struct recording *recording, const char *path, GError **error)
{
	recording->guest = engine_ask(recording->client, "query-guest", NULL, error);
	if (recording->guest == NULL)
		return false;
	recording->capture = capture_new_of_counters(recording->client, recording->counters, error);
	if (recording->capture == NULL)
		return false;
	load_kernel(recording);
	return capture_open_file(recording->capture, path, recording->image, recording->symtab,
	                         member_text(recording->guest, "kernel"), error) &&
	       counters_for_all(recording->client, recording->counters, "counter-start", false, error);
}

static bool has_ended(struct client *client)
{
	g_autoptr(GError) gone = NULL;
	json_t *event = client_next_event(client, 0, &gone);
	bool ended = gone != NULL || g_strcmp0(member_text(event, "event"), VPROF_EVENT_GUEST_ENDED) == 0;

	json_decref(event);
	return ended;
}

static bool follow(struct recording *recording, uint64_t seconds, GError **error)
{
	gint64 end_us = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);
	struct pollfd entries[RINGS_MAX];
	bool done = true;

	while (done && !interrupted() && !recording->ended && g_get_monotonic_time() < end_us) {
		size_t n = capture_poll(recording->capture, entries, G_N_ELEMENTS(entries));
		gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;

		poll(entries, n, (int)CLAMP(left_ms, 0, POLL_MS));
		recording->ended = has_ended(recording->client);
		done = capture_drain(recording->capture, error);
	}
	return done;
}

/* As query-stats has them: the sums of the counters. */
static json_t *statistics_of(const json_t *counters)
{
	json_t *total = json_object(), *value;
	const json_t *counter;
	const char *name;
	size_t i;

	json_array_foreach(counters, i, counter)
	{
		json_object_foreach(json_object_get(counter, "statistics"), name, value)
		{
			json_int_t sum = json_integer_value(value) + json_integer_value(json_object_get(total, name));

			json_object_set_new(total, name, json_integer(sum));
		}
	}
	return json_pack("{s:o, s:[]}", "total", total, "vcpus");
}

/* Stopped first, so that they have counted what they have sampled. */
static bool stop(struct recording *recording, GError **error)
{
	if (!counters_for_all(recording->client, recording->counters, "counter-stop", false, error) ||
	    !counters_for_all(recording->client, recording->counters, "counter-read", true, error) ||
	    !capture_drain(recording->capture, error))
		return false;
	capture_ask_symbols(recording->capture);
	return true;
}

static bool finish(struct recording *recording, GError **error)
{
	const struct user_symbol_sources sources = {.initrd = member_text(recording->guest, "initrd")};
	g_auto(GStrv) command_line = record_command_line();

	if (recording->ended)
		say("the guest has ended");
	else if (!stop(recording, error))
		return false;
	struct user_symbols *user_symbols = user_symbols_new(&sources);
	json_t *statistics = recording->ended ? NULL : statistics_of(recording->counters);
	const struct capture_summary summary = {
		.guest = recording->guest, .statistics = statistics, .user_symbols = user_symbols};
	bool done = capture_finish(recording->capture, &summary, recording->image, recording->symtab,
	                           (const char *const *)command_line, error);

	record_say_warnings(user_symbols_warnings(user_symbols));
	user_symbols_free(user_symbols);
	json_decref(statistics);
	return done;
}

bool counter_record(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error)
{
	struct recording recording = {.client = client, .counters = counters};

	interrupt_watch();
	bool done = begin(&recording, path, error) && follow(&recording, seconds, error) && finish(&recording, error);

	if (done)
		record_say_written(recording.capture, path);
	capture_free(recording.capture);
	symtab_free(recording.symtab);
	image_free(recording.image);
	json_decref(recording.guest);
	return done;
}
