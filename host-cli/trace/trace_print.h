// SPDX-License-Identifier: BSD-2-Clause
/* An event as a line for people, with its call chain below, or as a JSON object. */
#ifndef VPROF_CLI_TRACE_PRINT_H
#define VPROF_CLI_TRACE_PRINT_H

#include <stdio.h>

#include "trace/trace_event.h"

void trace_print_header(FILE *out);
/* start_ns: what times count from. */
void trace_print_event(const struct trace_event *event, uint64_t start_ns, const struct symtab *symtab, FILE *out);
json_t *trace_event_json(const struct trace_event *event, const struct symtab *symtab);

#endif
