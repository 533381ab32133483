// SPDX-License-Identifier: BSD-2-Clause
/* The answers to query-vcpu-time: querying, parsing and printing. */
#ifndef VPROF_CLI_READING_VCPU_CLOCKS_H
#define VPROF_CLI_READING_VCPU_CLOCKS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/client/client.h"
#include "lib/profile/vcpu_time.h"

#define VCPU_CLOCKS_MAX 64u  /* vCPUs of a guest */
#define VCPU_EXITS_MAX 1024u /* rows of one vCPU's answer that are read; an engine sends fewer */

/* The clocks of one vCPU, or their sum. */
struct vcpu_clocks {
	struct vcpu_time time;
	struct vcpu_modes modes;
	struct vcpu_time_parts parts;
	uint64_t exits;       /* all, as far as KVM shows them; else those that the VMM handled */
	uint64_t lost;        /* records of KVM's trace points: exits that are not counted */
	const char *untraced; /* why KVM's time is part of the guest's; NULL: it is not. Belongs to the answer */
};

/* The answer for each vCPU, as a JSON array. NULL: `error`. */
json_t *vcpu_clocks_query(struct client *client, unsigned vcpus, unsigned timeout_ms, GError **error);

struct vcpu_clocks vcpu_clocks_parse(const json_t *answer);
struct vcpu_clocks vcpu_clocks_between(const struct vcpu_clocks *from, const struct vcpu_clocks *to);
struct vcpu_clocks vcpu_clocks_sum(const struct vcpu_clocks *vcpus, size_t n);

/*
 * Why there may be no samples: "of 20.00 s, the 2 vCPUs were halted for 19.96 s, in the guest for 0.01 s, waiting for a
 * host CPU for 0.00 s". answers: NULL or untrusted. New string; NULL: it is not known.
 */
char *vcpu_clocks_sentence(const json_t *answers);

/* Prints on stderr which clocks are missing. */
void vcpu_clocks_say_missing(const json_t *answers);

/*
 * What passed from one list of answers to another, in their form, with what vcpu_clocks_parse, exit_rows_sum and
 * kvm_exit_rows read of it. A vCPU that is missing in `from` has come since. New reference.
 */
json_t *vcpu_clocks_window(const json_t *from, const json_t *to);

/* A line for each vCPU, and one for all: where the time went, in percent. */
void vcpu_clocks_print_table(const struct vcpu_clocks *vcpus, size_t n, FILE *stream);
/* The clocks as they are, in ns, for programs: a line for each vCPU; version 3. */
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
