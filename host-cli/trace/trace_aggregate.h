// SPDX-License-Identifier: BSD-2-Clause
/* Events counted by common fields, and histograms in powers of two, like count() and hist() of bpftrace. */
#ifndef VPROF_CLI_TRACE_TRACE_AGGREGATE_H
#define VPROF_CLI_TRACE_TRACE_AGGREGATE_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vprof/program.h>

struct trace_counts;
/* fields: the names of those that form the key; borrowed. */
struct trace_counts *trace_counts_new(const char *fields);
void trace_counts_free(struct trace_counts *counts); /* NULL is fine */
void trace_counts_add(struct trace_counts *counts, const char *key, uint64_t n);
/* The largest first. */
void trace_counts_print(const struct trace_counts *counts, FILE *out);
json_t *trace_counts_json(const struct trace_counts *counts);

struct trace_histogram {
	const char *field;                  /* borrowed */
	uint64_t buckets[VPROF_MAP_POWERS]; /* as a hist of a program has them */
};
void trace_histogram_add(struct trace_histogram *histogram, const uint64_t *buckets);
void trace_histogram_print(const struct trace_histogram *histogram, FILE *out);
json_t *trace_histogram_json(const struct trace_histogram *histogram);
/* The values of a bucket, "[4, 8)". New string. */
char *trace_histogram_range(unsigned bucket);
/* A row of a histogram, in which no bucket has more than `most`. */
void trace_histogram_print_row(const char *range, uint64_t count, uint64_t most, FILE *out);

#endif
