// SPDX-License-Identifier: BSD-2-Clause
/* The call tree of a report. */
#include <string.h>

#include "report/report.h"
#include "ui/text.h"

/* A whole tree is too long to read; rows have no such default. */
#define DEFAULT_PERCENT_LIMIT 0.5
#define DEPTH_MAX 256u

static double node_percent(const struct report_table *table, uint64_t period, uint64_t samples)
{
	const struct profile_row row = {.period = period, .samples = samples};

	return report_share(table, &row) * 100;
}

static double percent_limit(const struct report *report)
{
	return report->percent_limit != 0 ? report->percent_limit : DEFAULT_PERCENT_LIMIT;
}

/* Children come largest first: after one below the limit there are none within. */
static bool within_limit(const struct report *report, const struct report_table *table, const struct call_node *node)
{
	return node_percent(table, node->period, node->samples) >= percent_limit(report);
}

static void nodes_print(const struct report *report, const struct report_table *table, size_t first, unsigned depth,
                        FILE *to)
{
	for (size_t i = first; i != 0 && depth < DEPTH_MAX; i = table->calls[i].next_sibling) {
		const struct call_node *node = &table->calls[i];

		if (!within_limit(report, table, node))
			break;
		fprintf(to, "%7.2f%%  %7.2f%%  %-6s  %*s%s\n", node_percent(table, node->period, node->samples),
		        node_percent(table, node->self_period, node->self_samples), profile_mode_name(node->mode),
		        (int)(2 * depth), "", node->symbol);
		nodes_print(report, table, node->first_child, depth + 1, to);
	}
}

void report_print_calls(const struct report *report, const struct report_table *table, FILE *to)
{
	fprintf(to, "#\n# calls, callers above; paths with at least %g%%\n", percent_limit(report));
	fprintf(to, "# %6s  %8s  %-6s  %s\n", "Total", "Self", "Mode", "Symbol");
	nodes_print(report, table, table->calls[0].first_child, 0, to);
}

static json_t *nodes_json(const struct report *report, const struct report_table *table, size_t first, unsigned depth)
{
	json_t *list = json_array();

	for (size_t i = first; i != 0 && depth < DEPTH_MAX; i = table->calls[i].next_sibling) {
		const struct call_node *node = &table->calls[i];

		if (!within_limit(report, table, node))
			break;
		json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:o}", "symbol",
		                                      text_json(node->symbol), "module", text_json(node->module),
		                                      "mode", profile_mode_name(node->mode), "samples",
		                                      (json_int_t)node->samples, "period", (json_int_t)node->period,
		                                      "self-samples", (json_int_t)node->self_samples, "self-period",
		                                      (json_int_t)node->self_period, "calls",
		                                      nodes_json(report, table, node->first_child, depth + 1)));
	}
	return list;
}

json_t *report_calls_json(const struct report *report, const struct report_table *table)
{
	return nodes_json(report, table, table->calls[0].first_child, 0);
}
