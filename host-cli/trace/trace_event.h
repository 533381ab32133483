// SPDX-License-Identifier: BSD-2-Clause
/* An event of a probe, and its fields by name. */
#ifndef VPROF_CLI_TRACE_EVENT_H
#define VPROF_CLI_TRACE_EVENT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/record/record.h"
#include "lib/symbol/symtab.h"

/* One that was added, as the engine describes it. */
struct trace_probe {
	uint64_t id;
	char *name;
	char **fields; /* the arguments and then the registers, as an event has their values; NULL-terminated */
	size_t n_fields;
	bool is_syscall, is_exit;
	bool is_patch; /* INT3 in the guest's code */
};

/* Of the answer of probe-add; by trace_probe_free. */
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
 * Fields that every event has: time, vcpu, pid, tid, ip, as numbers, and comm, probe and func as texts; and those of
 * its probe. False when it has none of that name.
 */
bool trace_event_number(const struct trace_event *event, const char *field, uint64_t *number);
/*
 * Any field as people read it: a system call and an exit by its name, func without the offset. New string or NULL.
 * `symtab`: the kernel's, or NULL.
 */
char *trace_event_text(const struct trace_event *event, const char *field, const struct symtab *symtab);

/* "vfs_read" or "vfs_read+0x12", or the number when nothing is known. New string. */
char *trace_symbol(const struct symtab *symtab, uint64_t ip);

void trace_print_header(FILE *out);
/* start_ns: what times count from. */
void trace_print_event(const struct trace_event *event, uint64_t start_ns, const struct symtab *symtab, FILE *out);
json_t *trace_event_json(const struct trace_event *event, const struct symtab *symtab);

#endif
