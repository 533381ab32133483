// SPDX-License-Identifier: BSD-2-Clause
/* The guests of the host on a screen, to choose one from, and as a snapshot. */
#ifndef VPROF_CLI_TOP_TOP_GUESTS_LIVE_H
#define VPROF_CLI_TOP_TOP_GUESTS_LIVE_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "engine/attach_engine.h"
#include "top/top_guests.h"

/* Examines all guests, waits for one interval or until it is interrupted, and fills in `guests`. */
bool top_guests_snapshot(struct top_guests *guests, const struct attach_engine_options *options, double interval_s,
                         GError **error);

/* The screen, which keeps its place while one of the guests is looked at. */
struct top_guests_live;
struct top_guests_live *top_guests_live_new(const struct attach_engine_options *options, double interval_s);
void top_guests_live_free(struct top_guests_live *live);

/* What to show at the foot until the next key; steals it. NULL: nothing. */
void top_guests_live_say(struct top_guests_live *live, char *message);

/*
 * Shows the guests until one is chosen: *chosen is a new reference. NULL: a key or a signal has ended it. The terminal
 * is left as it was.
 */
bool top_guests_live_choose(struct top_guests_live *live, json_t **chosen, GError **error);

#endif
