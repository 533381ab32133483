// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples by address, then by whatever a report groups by.
 *
 * Adding a sample is one look-up in a hash table of distinct addresses and allocates nothing but, now and then, a table
 * twice the size. Symbols are looked up afterwards, once per distinct address.
 */
#ifndef VPROF_PROFILE_HISTOGRAM_H
#define VPROF_PROFILE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profile/column.h"
#include "lib/profile/mode.h"
#include "lib/profile/names.h"
#include "lib/profile/resolver.h"
#include "lib/record/record.h"

#define HISTOGRAM_EVENTS_MAX 65536u

struct histogram;

/*
 * keys: what samples are told apart by, column_list_keys of the lists that histogram_rows will get. `names` is
 * borrowed; NULL: files, tasks and cgroups are not known.
 */
struct histogram *histogram_new(struct names *names, unsigned keys);
void histogram_free(struct histogram *histogram);

/* `event`: 0..HISTOGRAM_EVENTS_MAX-1. */
void histogram_add(struct histogram *histogram, const struct record_sample *sample, unsigned event);

/* Every frame of its call chain as a sample of its own, to see what stands there (histogram_hits). */
void histogram_add_frames(struct histogram *histogram, const struct record_sample *sample);

uint64_t histogram_samples(const struct histogram *histogram);
uint64_t histogram_period(const struct histogram *histogram);

/*
 * The profile grouped by `list`, the largest period first, ties in the order of the list. `event_names` by the numbers
 * given to histogram_add. Array of *n rows by g_free; strings live as long as the resolver, `names` and `event_names`.
 */
struct profile_row *histogram_rows(const struct histogram *histogram, const struct column_list *list,
                                   struct resolver *resolver, const char *const *event_names, size_t *n);

/* Sums up rows that belong together and sorts them in the same way; returns the number of rows left. */
size_t profile_rows_group(struct profile_row *rows, size_t n, const struct column_list *list);

/* What of the guest was hit, in no order, some perhaps twice. Array of *n by g_free. */
struct histogram_hit {
	uint64_t ip;
	const struct mapping *mapping; /* NULL: not user space, or nothing is known of it */
};
struct histogram_hit *histogram_hits(const struct histogram *histogram, size_t *n);
/* Of the host's code instead. */
struct histogram_hit *histogram_host_hits(const struct histogram *histogram, size_t *n);

#endif
