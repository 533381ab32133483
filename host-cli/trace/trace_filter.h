// SPDX-License-Identifier: BSD-2-Clause
/* Which events are of interest: FIELD OPERATOR VALUE, as "pid=12", "comm!=sh*", "arg2>=4096". */
#ifndef VPROF_CLI_TRACE_TRACE_FILTER_H
#define VPROF_CLI_TRACE_TRACE_FILTER_H

#include "lib/script/script_tree.h"
#include "trace/trace_event.h"

#define TRACE_ERROR trace_error_quark()
GQuark trace_error_quark(void);
enum trace_error { TRACE_ERROR_FILTER, TRACE_ERROR_PROBE };

struct trace_filter {
	char *field;
	char *value; /* a pattern, as fnmatch(3) takes it, for texts */
	uint64_t number;
	bool is_number, is_signed;
	int operator; /* of the table in trace_filter.c */
};

bool trace_filter_parse(const char *text, struct trace_filter *filter, GError **error);
void trace_filter_clear(struct trace_filter *filter);

/* A field as a script has it, that is no call chain and not the probe's name; NULL: the probe has no such field. */
struct script_node *trace_field_node(const struct trace_probe *probe, const char *field);
/*
 * What has to be true of a hit of that probe, as a script says it. NULL: it is about names, or by a pattern, which only
 * trace_filter_matches can tell. An event without the field does not match.
 */
struct script_node *trace_filter_condition(const struct trace_filter *filter, const struct trace_probe *probe);
bool trace_filter_is_of_names(const struct trace_filter *filter, const struct trace_probe *probe);
/* Of such a filter: whether the field's text matches; NULL does not. */
bool trace_filter_matches(const struct trace_filter *filter, const char *text);

#endif
