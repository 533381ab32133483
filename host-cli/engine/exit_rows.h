// SPDX-License-Identifier: BSD-2-Clause
/* The exits in the answers to query-vcpu-time, by name. */
#ifndef VPROF_CLI_EXIT_ROWS_H
#define VPROF_CLI_EXIT_ROWS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

/* An exit by its name, of all vCPUs. */
struct exit_row {
	const char *name;
	uint64_t count, ns;
};

/* Those of all vCPUs that took longest first: an array of struct exit_row. Names are the answers'. */
GArray *exit_rows_sum(const json_t *answers);

/* The same for what came between two answers, the most frequent first; those that did not occur are left out. */
GArray *exit_rows_between(const json_t *from, const json_t *to);

/* [{"name", "count", "ns"}]. New reference. */
json_t *exit_rows_json(const GArray *rows);

#endif
