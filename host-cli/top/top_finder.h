// SPDX-License-Identifier: BSD-2-Clause
/* Finds the guests of the host while the screen shows them, in a thread: examining a guest takes seconds. */
#ifndef VPROF_CLI_TOP_TOP_FINDER_H
#define VPROF_CLI_TOP_TOP_FINDER_H

#include <jansson.h>

#include "engine/attach_engine.h"

struct top_finder;

/* Looks for guests every interval_s. Borrows the strings in `options`, for as long as the program runs. */
struct top_finder *top_finder_new(const struct attach_engine_options *options, double interval_s);
/* Does not wait for the thread, which ends after what it is at. NULL is fine. */
void top_finder_free(struct top_finder *finder);

/*
 * The guests as guest_list has them, if the list is newer than that of the last call: a new reference, or NULL. Guests
 * have what guest_probe adds as soon as it is known.
 */
json_t *top_finder_take(struct top_finder *finder);

#endif
