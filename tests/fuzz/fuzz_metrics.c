// SPDX-License-Identifier: BSD-2-Clause
/* A workload's output with metrics in it. The first byte says into which pieces the rest is cut. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/agent/metrics.h"

#define REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())

static void metric_check(const struct metric *metric)
{
	size_t name = strlen(metric->name), unit = strlen(metric->unit);

	REQUIRE(name != 0 && name <= METRIC_NAME_BYTES_MAX && unit <= METRIC_UNIT_BYTES_MAX);
	REQUIRE(isfinite(metric->value) && metric->value >= 0);
	for (size_t i = 0; i < name; i++)
		REQUIRE(g_ascii_isgraph(metric->name[i]));
	for (size_t i = 0; i < unit; i++)
		REQUIRE(g_ascii_isgraph(metric->unit[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metrics *metrics = metrics_new();
	size_t piece = size != 0 ? data[0] + (size_t)1 : 1;

	for (size_t at = 1; at < size; at += piece)
		metrics_put(metrics, at / piece % METRIC_STREAMS, data + at, MIN(piece, size - at));
	metrics_end(metrics);
	REQUIRE(metrics_count(metrics) <= METRICS_MAX);
	for (size_t i = 0; i < metrics_count(metrics); i++)
		metric_check(metrics_get(metrics, i));
	metrics_free(metrics);
	return 0;
}
