// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_finder.h"

#include <glib.h>

#include "engine/guest_list.h"
#include "engine/guest_watch.h"

/* [I] immutable after top_finder_new, [t] the thread only, [L] under `lock`. Freed by the last of the two. */
struct top_finder {
	struct guest_watch watch; /* [t] */
	int64_t interval_us;      /* [I] */
	json_t *known;            /* [t] guests with what guest_probe has added */
	GMutex lock;
	GCond stopping;
	bool stop;      /* [L] */
	json_t *newest; /* [L] NULL: taken */
};

static void finder_clear(void *data)
{
	struct top_finder *finder = data;

	guest_watch_deinit(&finder->watch);
	json_decref(finder->known);
	json_decref(finder->newest);
	g_mutex_clear(&finder->lock);
	g_cond_clear(&finder->stopping);
}

/* A domain that was started again has another process, and that another kernel. */
static bool same_guest(const json_t *one, const json_t *other)
{
	return json_equal(json_object_get(one, "name"), json_object_get(other, "name")) &&
	       json_equal(json_object_get(one, "uuid"), json_object_get(other, "uuid")) &&
	       (!json_object_get(one, "pid") || json_equal(json_object_get(one, "pid"), json_object_get(other, "pid")));
}

/* Adds to the guest what is known of it; false if nothing is. */
static bool recall(const json_t *known, json_t *guest)
{
	const json_t *before;
	size_t i;

	json_array_foreach(known, i, before) {
		if (!same_guest(guest, before) ||
		    (!json_object_get(before, "why") && !json_object_get(before, "routes")))
			continue;
		json_object_update_missing(guest, (json_t *)before);
		return true;
	}
	return false;
}

static bool finder_stopped(struct top_finder *finder)
{
	bool stopped;

	g_mutex_lock(&finder->lock);
	stopped = finder->stop;
	g_mutex_unlock(&finder->lock);
	return stopped;
}

static void finder_publish(struct top_finder *finder, const json_t *guests)
{
	json_t *copy = json_deep_copy(guests), *old;

	g_mutex_lock(&finder->lock);
	old = finder->newest;
	finder->newest = copy;
	g_mutex_unlock(&finder->lock);
	json_decref(old);
}

static void finder_look(struct top_finder *finder)
{
	json_t *guests = guest_watch_look(&finder->watch), *guest;
	g_autofree bool *known = g_new0(bool, json_array_size(guests) + 1);
	size_t i;

	json_array_foreach(guests, i, guest)
		known[i] = recall(finder->known, guest);
	finder_publish(finder, guests);
	json_array_foreach(guests, i, guest) {
		if (known[i] || finder_stopped(finder))
			continue;
		guest_probe(&finder->watch.options, guest);
		finder_publish(finder, guests);
	}
	json_decref(finder->known);
	finder->known = guests;
}

/* False: the screen is closed. */
static bool finder_wait(struct top_finder *finder)
{
	const int64_t until_us = g_get_monotonic_time() + finder->interval_us;
	bool stopped;

	g_mutex_lock(&finder->lock);
	while (!finder->stop && g_cond_wait_until(&finder->stopping, &finder->lock, until_us))
		;
	stopped = finder->stop;
	g_mutex_unlock(&finder->lock);
	return !stopped;
}

static void *finder_run(void *data)
{
	struct top_finder *finder = data;

	do
		finder_look(finder);
	while (finder_wait(finder));
	g_atomic_rc_box_release_full(finder, finder_clear);
	return NULL;
}

struct top_finder *top_finder_new(const struct attach_engine_options *options, double interval_s)
{
	struct top_finder *finder = g_atomic_rc_box_new0(struct top_finder);

	finder->watch.options = *options;
	finder->watch.options.verbose = FALSE; /* it would write over the screen */
	finder->interval_us = (int64_t)(interval_s * G_USEC_PER_SEC);
	g_mutex_init(&finder->lock);
	g_cond_init(&finder->stopping);
	g_thread_unref(g_thread_new("finder", finder_run, g_atomic_rc_box_acquire(finder)));
	return finder;
}

void top_finder_free(struct top_finder *finder)
{
	if (!finder)
		return;
	g_mutex_lock(&finder->lock);
	finder->stop = true;
	g_cond_signal(&finder->stopping);
	g_mutex_unlock(&finder->lock);
	g_atomic_rc_box_release_full(finder, finder_clear);
}

json_t *top_finder_take(struct top_finder *finder)
{
	json_t *newest;

	g_mutex_lock(&finder->lock);
	newest = g_steal_pointer(&finder->newest);
	g_mutex_unlock(&finder->lock);
	return newest;
}
