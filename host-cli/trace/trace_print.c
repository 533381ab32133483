// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_print.h"

#include <inttypes.h>

#include "lib/profile/chain.h"
#include "ui/text.h"

void trace_print_header(FILE *out)
{
	fprintf(out, "%12s %4s %7s %-16s %s\n", "TIME", "VCPU", "TID", "COMM", "PROBE");
}

static void print_fields(const struct trace_event *event, FILE *out)
{
	for (char **field = event->probe->fields; *field != NULL; field++) {
		g_autofree char *text = trace_event_text(event, *field, NULL);

		fprintf(out, " %s=%s", *field, text);
	}
}

static uint32_t stack_frames(const struct trace_event *event, struct chain_frame frames[CHAIN_FRAMES_MAX])
{
	return event->sample.n_chain > 0 ? chain_frames(&event->sample, frames) : 0;
}

void trace_print_event(const struct trace_event *event, uint64_t start_ns, const struct symtab *symtab, FILE *out)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	g_autofree char *tid = trace_event_text(event, "tid", NULL);
	uint64_t time_us = (event->sample.time_ns - MIN(start_ns, event->sample.time_ns)) / 1000;
	uint32_t n = stack_frames(event, frames);

	fprintf(out, "%5" PRIu64 ".%06" PRIu64 " %4u %7s %-16s %s", time_us / 1000000, time_us % 1000000,
	        event->sample.cpu, tid, event->comm, event->probe->name);
	print_fields(event, out);
	fputc('\n', out);
	for (uint32_t i = 0; i < n; i++) {
		g_autofree char *symbol = trace_symbol(symtab, frames[i].ip);

		fprintf(out, "%18s%s\n", "", symbol);
	}
}

static json_t *hex(uint64_t number)
{
	char text[24];

	g_snprintf(text, sizeof(text), "0x%" PRIx64, number);
	return json_string(text);
}

static json_t *fields_json(const struct trace_event *event)
{
	json_t *fields = json_object();

	for (size_t i = 0; i < event->probe->n_fields; i++)
		json_object_set_new(fields, event->probe->fields[i], hex(trace_event_value(event, i)));
	return fields;
}

static json_t *stack_json(const struct trace_event *event, const struct symtab *symtab)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	uint32_t n = stack_frames(event, frames);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		g_autofree char *symbol = trace_symbol(symtab, frames[i].ip);

		json_array_append_new(list, text_json(symbol));
	}
	return list;
}

/* pid and tid as the kernel has them: -1 for unknown ones. */
static json_int_t pid_json(uint32_t pid)
{
	return (int32_t)pid;
}

json_t *trace_event_json(const struct trace_event *event, const struct symtab *symtab)
{
	const struct record_sample *sample = &event->sample;
	g_autofree char *symbol = trace_symbol(symtab, sample->ip);

	return json_pack("{s:s, s:I, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "probe", event->probe->name, "time-ns",
	                 (json_int_t)sample->time_ns, "vcpu", (int)sample->cpu, "pid", pid_json(sample->pid), "tid",
	                 pid_json(sample->tid), "comm", text_json(event->comm), "ip", hex(sample->ip), "func",
	                 text_json(symbol), "fields", fields_json(event), "stack", stack_json(event, symtab));
}
