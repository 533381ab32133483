// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorder.h"

#include <poll.h>
#include <vprof/control.h>

#include "engine/attach_engine.h"
#include "engine/counters.h"
#include "engine/engine_find.h"
#include "lib/symbol/symtab.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"

#define POLL_MS 200
#define RINGS_MAX 1024u

struct counter_sampling {
	struct client *client;
	json_t *counters; /* borrowed */
	json_t *guest;
	struct recorder *recorder;
	struct image *image;   /* NULL: unknown kernel */
	struct symtab *symtab; /* NULL: no symbols */
	bool ended;            /* the guest or its engine has ended; the rings stay mapped */
};

/* The kernel of a booted guest is a file; that of an attached guest is what the engine has found. */
static void load_kernel(struct counter_sampling *sampling)
{
	const char *kernel = member_text(sampling->guest, "kernel");
	g_autoptr(GError) why = NULL;

	sampling->image = kernel ? image_open(kernel, &why) : attach_engine_image(sampling->client, &why);
	if (sampling->image) {
		sampling->symtab = symtab_load(sampling->image, &why);
		image_give_symbols(sampling->image, -1);
	}
	if (!sampling->symtab)
		warn("addresses will have no names: %s", why ? why->message : "the kernel is not known");
}

static bool begin(struct counter_sampling *sampling, const char *path, GError **error)
{
	sampling->guest = engine_ask(sampling->client, "query-guest", NULL, error);
	if (!sampling->guest)
		return false;
	sampling->recorder = recorder_new_of_counters(sampling->client, sampling->counters, error);
	if (!sampling->recorder)
		return false;
	load_kernel(sampling);
	return recorder_open_file(sampling->recorder, path, sampling->image, sampling->symtab,
	                          member_text(sampling->guest, "kernel"), error) &&
	       counters_for_all(sampling->client, sampling->counters, "counter-start", false, error);
}

static bool has_ended(struct client *client)
{
	g_autoptr(GError) gone = NULL;
	json_t *event = client_next_event(client, 0, &gone);
	bool ended = gone || g_strcmp0(member_text(event, "event"), VPROF_EVENT_GUEST_ENDED) == 0;

	json_decref(event);
	return ended;
}

static bool follow(struct counter_sampling *sampling, uint64_t seconds, GError **error)
{
	gint64 end_us = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);
	struct pollfd entries[RINGS_MAX];
	bool done = true;

	while (done && !interrupted() && !sampling->ended && g_get_monotonic_time() < end_us) {
		size_t n = recorder_poll(sampling->recorder, entries, G_N_ELEMENTS(entries));
		gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;

		poll(entries, n, (int)CLAMP(left_ms, 0, POLL_MS));
		sampling->ended = has_ended(sampling->client);
		done = recorder_drain(sampling->recorder, error);
	}
	return done;
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

/* The counters are stopped first, so that their counts match their samples. */
static bool stop(struct counter_sampling *sampling, GError **error)
{
	if (!counters_for_all(sampling->client, sampling->counters, "counter-stop", false, error) ||
	    !counters_for_all(sampling->client, sampling->counters, "counter-read", true, error) ||
	    !recorder_drain(sampling->recorder, error))
		return false;
	recorder_ask_symbols(sampling->recorder);
	return true;
}

static bool finish(struct counter_sampling *sampling, GError **error)
{
	const struct user_symbol_sources sources = {.initrd = member_text(sampling->guest, "initrd")};
	g_auto(GStrv) command_line = recorder_command_line();

	if (sampling->ended)
		say("the guest has ended");
	else if (!stop(sampling, error))
		return false;
	struct user_symbols *user_symbols = user_symbols_new(&sources);
	json_t *statistics = sampling->ended ? NULL : statistics_of(sampling->counters);
	const struct recorder_summary summary = {
		.guest = sampling->guest, .statistics = statistics, .user_symbols = user_symbols};
	bool done = recorder_finish(sampling->recorder, &summary, sampling->image, sampling->symtab,
	                            (const char *const *)command_line, error);

	recorder_say_warnings(user_symbols_warnings(user_symbols));
	user_symbols_free(user_symbols);
	json_decref(statistics);
	return done;
}

bool recorder_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error)
{
	struct counter_sampling sampling = {.client = client, .counters = counters};

	interrupt_watch();
	bool done = begin(&sampling, path, error) && follow(&sampling, seconds, error) && finish(&sampling, error);

	if (done)
		recorder_say_written(sampling.recorder, path);
	recorder_free(sampling.recorder);
	symtab_free(sampling.symtab);
	image_free(sampling.image);
	json_decref(sampling.guest);
	return done;
}
