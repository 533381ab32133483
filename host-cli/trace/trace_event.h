// SPDX-License-Identifier: BSD-2-Clause
/* An event of a probe, and its fields by name. */
#ifndef VPROF_CLI_TRACE_TRACE_EVENT_H
#define VPROF_CLI_TRACE_TRACE_EVENT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/record/record.h"
#include "lib/symbol/symtab.h"

/* A probe that was added, as the engine describes it. */
struct trace_probe {
	uint64_t id;
	char *name;
	char **fields; /* the arguments and then the registers, as an event has their values; NULL-terminated */
	size_t n_fields;
	bool is_syscall, is_exit;
	bool is_patch; /* INT3 in the guest's code */
};

/* From the answer of probe-add; freed by trace_probe_free. */
struct trace_probe *trace_probe_new(const json_t *answer);
void trace_probe_free(struct trace_probe *probe);

struct trace_event {
	const struct trace_probe *probe;
	const char *comm;            /* borrowed */
	struct record_sample sample; /* points into `bytes` */
	uint64_t *bytes;             /* of the record; by trace_event_clear */
};
void trace_event_clear(struct trace_event *event);

/* The i-th of the probe's fields; 0 when the event is too short for it. */
uint64_t trace_event_value(const struct trace_event *event, size_t i);

/*
 * A field as a number. All events have time, vcpu, pid, tid and ip (and comm, probe and func as texts), and the fields
 * of their probe. False if there is no such field.
 */
bool trace_event_number(const struct trace_event *event, const char *field, uint64_t *number);
/*
 * Any field as text: system calls and exits by name, func without the offset. New string or NULL. `symtab`: the
 * kernel's, or NULL.
 */
char *trace_event_text(const struct trace_event *event, const char *field, const struct symtab *symtab);

/* "vfs_read" or "vfs_read+0x12", or the number when nothing is known. New string. */
char *trace_symbol(const struct symtab *symtab, uint64_t ip);

void trace_print_header(FILE *out);
/* start_ns: what times count from. */
void trace_print_event(const struct trace_event *event, uint64_t start_ns, const struct symtab *symtab, FILE *out);
json_t *trace_event_json(const struct trace_event *event, const struct symtab *symtab);

#endif
