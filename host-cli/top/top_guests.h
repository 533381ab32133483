// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof top` shows without a guest: all guests of the host, how busy each is, and what it runs. */
#ifndef VPROF_CLI_TOP_TOP_GUESTS_H
#define VPROF_CLI_TOP_TOP_GUESTS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

#include "lib/process/process_load.h"

#define TOP_GUESTS_JSON_VERSION 1

struct top_guest {
	json_t *guest;            /* as guest_list and guest_probe have it */
	struct process_load load; /* when it was read last */
	struct process_rate rate; /* since the time before */
};

struct top_guests {
	GArray *rows;    /* struct top_guest, the busiest first */
	int64_t read_us; /* g_get_monotonic_time() when the loads were read last; 0: not yet */
	double seconds;  /* since the time before */
};

void top_guests_init(struct top_guests *guests);
void top_guests_clear(struct top_guests *guests);

/* Shows these from now on; steals `list`. Guests that were there before keep what has been read of them. */
void top_guests_take(struct top_guests *guests, json_t *list);

/* The interval ends, and the next one begins. */
void top_guests_read(struct top_guests *guests);

/* Lines (top_lines.h): the title; the head of the table and its rows, rows_max at most (0: all). */
void top_guests_title(GArray *lines, const struct top_guests *guests);
void top_guests_table(GArray *lines, const struct top_guests *guests, size_t rows_max);

/* Its schema: vprof-top(1). New reference. */
json_t *top_guests_json(const struct top_guests *guests, size_t rows_max);

#endif
