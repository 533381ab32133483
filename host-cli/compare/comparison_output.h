// SPDX-License-Identifier: BSD-2-Clause
/* What `diff` and `gate` found, in their forms. */
#ifndef VPROF_CLI_COMPARE_COMPARISON_OUTPUT_H
#define VPROF_CLI_COMPARE_COMPARISON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "compare/measured.h"
#include "lib/profile/comparison.h"

#define COMPARED_JSON_VERSION 2 /* of what has a compared_json in it */

/* Both sets of repetitions, and how the one differs from the other. */
struct compared {
	const struct measured *base, *now;
	struct comparison *comparison;
	struct comparison_options options;
};

/* A metric that the gate watches. */
struct watched {
	const char *name, *unit;
	bool more_is_better;
	double base_median, now_median;
	struct judgement judgement;
};

struct gate_result {
	struct compared compared;
	double max_regression, alpha;
	struct watched *watched;
	size_t n_watched;
	enum verdict verdict; /* of all: the worst; undecided is better than a regression */
};

/* "1.59 s" for ns, "1.78 MB" for bytes, "1.23 M cycles". New string. */
char *value_text(double value, const char *unit);
/* "+1.2 %", "-0.3 %". New string; of a ratio that is not finite, "?". */
char *ratio_text(double ratio);
/* The name of a function, and its new one, or which function was made part of or off; printable. New string. */
char *change_name(const struct change *change);
/* The head of the list of functions with that fate. */
const char *fate_title(enum fate fate);
/* A sentence about a metric: what it did, and what the repetitions can say. New string. */
char *watched_sentence(const struct watched *watched, const struct gate_result *result);

void compared_print_text(const struct compared *compared, FILE *to);
/* The functions that explain the difference, and nothing when there are none. */
void compared_print_functions(const struct compared *compared, FILE *to);
json_t *compared_json(const struct compared *compared);

void gate_print_text(const struct gate_result *result, FILE *to);
/* vprof-gate(1) has the schema. */
void gate_print_json(const struct gate_result *result, FILE *to);
void gate_print_markdown(const struct gate_result *result, FILE *to);
void gate_print_junit(const struct gate_result *result, FILE *to);

/* Prints the flame graph of `measured` as an SVG; false: it has none. */
typedef bool gate_flames(const struct measured *measured, FILE *to);
/* One page without scripts and without anything from elsewhere. */
void gate_print_html(const struct gate_result *result, gate_flames *flames, FILE *to);
void gate_print_github(const struct gate_result *result, FILE *to);

#endif
