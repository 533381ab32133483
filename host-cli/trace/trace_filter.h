// SPDX-License-Identifier: BSD-2-Clause
/* Which events are of interest: FIELD OPERATOR VALUE, as "pid=12", "comm!=sh*", "arg2>=4096". */
#ifndef VPROF_CLI_TRACE_TRACE_FILTER_H
#define VPROF_CLI_TRACE_TRACE_FILTER_H

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
/* An event without the field does not match. */
bool trace_filter_match(const struct trace_filter *filter, const struct trace_event *event, struct trace_names *names);

#endif
