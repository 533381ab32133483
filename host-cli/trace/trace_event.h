// SPDX-License-Identifier: BSD-2-Clause
/* An event of a probe, and its fields by name. */
#ifndef VPROF_CLI_TRACE_TRACE_EVENT_H
#define VPROF_CLI_TRACE_TRACE_EVENT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/record/record.h"
#include "trace/trace_names.h"

/* Of the guest's memory, as the engine reads it: "prev->pid", "str(prev->comm)". */
bool trace_field_is_path(const char *field);
bool trace_field_is_text(const char *field);

/* Whether it has what a function or a system call has returned: a signed number. */
bool trace_field_is_result(const char *field);

struct trace_path {
	char *name;
	size_t at; /* the number of its first value */
	bool is_text, is_address;
};

/* A probe that was added, as the engine describes it. */
struct trace_probe {
	uint64_t id;
	char *name;
	char **fields; /* the arguments and then the registers, as an event has their values; NULL-terminated */
	char **types;  /* of the arguments, as C writes them; fewer than fields where these are numbers of 64 bits */
	size_t n_fields;
	struct trace_path *paths; /* [n_paths] behind the fields */
	size_t n_paths;
	bool is_syscall, is_exit;
	bool is_patch; /* INT3 in the guest's code */
	bool waits;    /* of a program that no process has yet */
	char *similar; /* path of another file with the program's name; NULL */
};

/* From the answer of probe-add; freed by trace_probe_free. */
struct trace_probe *trace_probe_new(const json_t *answer);
void trace_probe_free(struct trace_probe *probe);
/* A field that only this probe has. */
bool trace_probe_has(const struct trace_probe *probe, const char *field);
const struct trace_path *trace_probe_path(const struct trace_probe *probe, const char *field); /* NULL: no path */
/* What such a field has, or a number of all events, as it is shown; a text has VPROF_PROBE_TEXT_BYTES. New string. */
char *trace_probe_text(const struct trace_probe *probe, const char *field, const uint64_t *words);
/* A field of all events. */
bool trace_field_is_common(const char *field);

struct trace_event {
	const struct trace_probe *probe;
	const char *comm;            /* borrowed */
	struct record_sample sample; /* points into `bytes` */
	uint64_t *bytes;             /* of the record; by trace_event_clear */
};
void trace_event_clear(struct trace_event *event);

/* The i-th of the probe's fields; 0 when the event has no values. */
uint64_t trace_event_value(const struct trace_event *event, size_t i);

/* Whether it is one of the three that need call chains. */
bool trace_field_is_stack(const char *field);
/*
 * A field as text. All events have those of trace_field_is_common, of which stack, kstack and ustack are the frames of
 * the call chain from the outermost on, and the fields of their probe. NULL if there is no such field, or the event
 * does not have it: the arguments of a trace point may not be known. System calls and exits by name, func without the
 * offset. New string. NULL `names`: not for func, kstack, ustack and stack.
 */
char *trace_event_text(const struct trace_event *event, const char *field, struct trace_names *names);

void trace_print_header(FILE *out);
/* start_ns: what times count from. */
void trace_print_event(const struct trace_event *event, uint64_t start_ns, struct trace_names *names, FILE *out);
json_t *trace_event_json(const struct trace_event *event, struct trace_names *names);

#endif
