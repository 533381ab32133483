// SPDX-License-Identifier: BSD-2-Clause
/*
 * Metrics that a workload prints about itself, one per line, on either of its output streams:
 *
 *     vprof: metric NAME=VALUE [UNIT]
 *
 * NAME: up to 63 letters, digits, and "_-./:". VALUE: decimal, 0 or more, finite ("12", "0.5", "1e9"). UNIT: up to 15
 * printable characters of ASCII without blanks. The input comes from a guest, in pieces of any size. The first 200
 * bytes of a line are read, METRICS_MAX metrics are kept, and a repeated name replaces the value.
 */
#ifndef VPROF_AGENT_METRICS_H
#define VPROF_AGENT_METRICS_H

#include <stddef.h>
#include <stdint.h>

#define METRIC_NAME_BYTES_MAX 63u
#define METRIC_UNIT_BYTES_MAX 15u
#define METRICS_MAX 64u
#define METRIC_STREAMS 2u

struct metric {
	char name[METRIC_NAME_BYTES_MAX + 1];
	char unit[METRIC_UNIT_BYTES_MAX + 1]; /* "" when the line has none */
	double value;
};

/* The metrics of one run. */
struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* Takes the next bytes of a stream, 0 or 1. */
void metrics_put(struct metrics *metrics, unsigned stream, const uint8_t *bytes, size_t n);
/* Call it when the streams have ended: a last line needs no newline. */
void metrics_end(struct metrics *metrics);

size_t metrics_count(const struct metrics *metrics);
const struct metric *metrics_get(const struct metrics *metrics, size_t i);
/* What is wrong with the first malformed metric line; NULL: no line was malformed. */
const char *metrics_problem(const struct metrics *metrics);

#endif
