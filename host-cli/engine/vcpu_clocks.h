// SPDX-License-Identifier: BSD-2-Clause
/* The answers to query-vcpu-time: querying, parsing and printing. */
#ifndef VPROF_CLI_ENGINE_VCPU_CLOCKS_H
#define VPROF_CLI_ENGINE_VCPU_CLOCKS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/client/client.h"
#include "lib/profile/vcpu_time.h"

#define VCPU_CLOCKS_MAX 64u /* vCPUs of a guest */

/* The clocks of one vCPU, or their sum. */
struct vcpu_clocks {
	struct vcpu_time time;
	struct vcpu_modes modes;
	struct vcpu_time_parts parts;
	uint64_t exits; /* that the VMM handled; of an attached guest, all that KVM counts */
};

/* The answer for each vCPU, as a JSON array. NULL: `error`. */
json_t *vcpu_clocks_query(struct client *client, unsigned vcpus, unsigned timeout_ms, GError **error);

struct vcpu_clocks vcpu_clocks_parse(const json_t *answer);
struct vcpu_clocks vcpu_clocks_between(const struct vcpu_clocks *from, const struct vcpu_clocks *to);
struct vcpu_clocks vcpu_clocks_sum(const struct vcpu_clocks *vcpus, size_t n);

/* Prints on stderr which clocks are missing. */
void vcpu_clocks_say_missing(const json_t *answers);

/* A line for each vCPU, and one for all: where the time went, in percent. */
void vcpu_clocks_print_table(const struct vcpu_clocks *vcpus, size_t n, FILE *stream);
/* The clocks as they are, in ns, for programs: a line for each vCPU; version 2. */
void vcpu_clocks_print_raw(const struct vcpu_clocks *vcpus, size_t n, FILE *stream);
/* {"version", "vcpus": [{"vcpu", "exits", "clocks-ns": {...}, "parts-ns": {...}}], "total": {as a vCPU}}. */
json_t *vcpu_clocks_json(const struct vcpu_clocks *vcpus, size_t n);

/* ---- the exits in them, by name ---- */

/* An exit by its name, of all vCPUs. */
struct exit_row {
	const char *name;
	uint64_t count, ns;
};

/* The exits of all vCPUs, the longest first: an array of struct exit_row. The names belong to the answers. */
GArray *exit_rows_sum(const json_t *answers);

/* The exits between two answers, the most frequent first; those that did not occur are left out. */
GArray *exit_rows_between(const json_t *from, const json_t *to);

/* [{"name", "count", "ns"}]. New reference. */
json_t *exit_rows_json(const GArray *rows);

#endif
