// SPDX-License-Identifier: BSD-2-Clause
/* The locks that the waits of a recording were for: by lock, the task that waited, and the one that held it. */
#ifndef VPROF_CLI_REPORT_CONTENTION_LOCKS_H
#define VPROF_CLI_REPORT_CONTENTION_LOCKS_H

#include <jansson.h>
#include <stdio.h>

#include "report/report.h"

struct contention_locks;

struct contention_locks *contention_locks_new(const struct input *input);
void contention_locks_free(struct contention_locks *locks);

/* What a wait was for, if its sample says it. */
void contention_locks_take(struct contention_locks *locks, const struct record_sample *sample);

/* Of the largest first, within the limits; shares are of `period`, of all waits. An array; *n_left_out: others. */
json_t *contention_locks_json(const struct contention_locks *locks, const struct report_options *options,
                              uint64_t period, guint *n_left_out);
/*
 * The rows that are the values of `table`, sorted by `compare`, as far as the limits allow; *n_left_out: others. The
 * caller frees the array. `period`: offset of a row's uint64_t with the waiting time, which is a part of `whole`.
 */
GPtrArray *contention_rows(GHashTable *table, GCompareFunc compare, size_t period, uint64_t whole,
                           const struct report_options *options, guint *n_left_out);
/* A table; nothing where no lock is known. */
void contention_locks_print(const struct contention_locks *locks, const struct report_options *options, uint64_t period,
                            FILE *to);

#endif
