// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_event.h"

#include <inttypes.h>
#include <string.h>

#include "lib/profile/chain.h"
#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"
#include "ui/text.h"

static void append_names(GPtrArray *names, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		g_ptr_array_add(names, text_printable(json_string_value(json_array_get(list, i))));
}

struct trace_probe *trace_probe_new(const json_t *answer)
{
	struct trace_probe *probe = g_new0(struct trace_probe, 1);
	GPtrArray *names = g_ptr_array_new();

	append_names(names, json_object_get(answer, "arguments"));
	append_names(names, json_object_get(answer, "registers"));
	probe->n_fields = names->len;
	g_ptr_array_add(names, NULL);
	probe->fields = (char **)g_ptr_array_free(names, FALSE);
	probe->id = member_number(answer, "id", 0);
	probe->name = text_printable(member_text(answer, "name"));
	probe->is_syscall = g_str_has_prefix(probe->name, "syscall:");
	probe->is_exit = g_str_has_prefix(probe->name, "exit:");
	probe->is_patch = g_strcmp0(member_text(answer, "breakpoint"), "patch") == 0;
	return probe;
}

void trace_probe_free(struct trace_probe *probe)
{
	g_strfreev(probe->fields);
	g_free(probe->name);
	g_free(probe);
}

void trace_event_clear(struct trace_event *event)
{
	g_free(event->bytes);
}

uint64_t trace_event_value(const struct trace_event *event, size_t i)
{
	uint64_t value = 0;

	if ((i + 1) * sizeof(value) <= event->sample.raw_bytes)
		memcpy(&value, (const uint8_t *)event->sample.raw + i * sizeof(value), sizeof(value));
	return value;
}

bool trace_event_number(const struct trace_event *event, const char *field, uint64_t *number)
{
	const struct record_sample *sample = &event->sample;

	const struct {
		const char *name;
		uint64_t value;
	} common[] = {
		{"time", sample->time_ns}, {"vcpu", sample->cpu}, {"pid", sample->pid},
		{"tid", sample->tid},      {"ip", sample->ip},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(common); i++) {
		if (strcmp(common[i].name, field) == 0) {
			*number = common[i].value;
			return true;
		}
	}
	for (size_t i = 0; i < event->probe->n_fields; i++) {
		if (strcmp(event->probe->fields[i], field) == 0) {
			*number = trace_event_value(event, i);
			return true;
		}
	}
	return false;
}

static bool is_decimal(const char *field)
{
	static const char *const fields[] = {"time", "vcpu", "pid", "tid", "bytes", NULL};

	return g_strv_contains(fields, field);
}

static char *function_name(const struct symtab *symtab, const struct record_sample *sample)
{
	char *name = trace_symbol(symtab, sample->ip);
	char *offset = strchr(name, '+');

	if (offset)
		*offset = '\0';
	return name;
}

char *trace_event_text(const struct trace_event *event, const char *field, const struct symtab *symtab)
{
	uint64_t number;

	if (strcmp(field, "comm") == 0)
		return g_strdup(event->comm);
	if (strcmp(field, "probe") == 0)
		return g_strdup(event->probe->name);
	if (strcmp(field, "func") == 0)
		return function_name(symtab, &event->sample);
	if (!trace_event_number(event, field, &number))
		return NULL;
	if (event->probe->is_syscall && strcmp(field, "nr") == 0 && syscall_name(number))
		return g_strdup(syscall_name(number));
	if (event->probe->is_exit && strcmp(field, "reason") == 0 && exit_name_of_reason(number))
		return g_strdup(exit_name_of_reason(number));
	if ((strcmp(field, "pid") == 0 || strcmp(field, "tid") == 0) && number == VPROF_PID_UNKNOWN)
		return g_strdup("?");
	return g_strdup_printf(is_decimal(field) ? "%" PRIu64 : "0x%" PRIx64, number);
}

char *trace_symbol(const struct symtab *symtab, uint64_t ip)
{
	const struct symbol *symbol = symtab ? symtab_find(symtab, ip) : NULL;
	g_autofree char *name = NULL;

	if (!symbol)
		return g_strdup_printf("0x%" PRIx64, ip);
	name = text_printable(symbol->name);
	return ip != symbol->address ? g_strdup_printf("%s+0x%" PRIx64, name, ip - symbol->address)
	                             : g_steal_pointer(&name);
}

/* ---- printing ---- */

void trace_print_header(FILE *out)
{
	fprintf(out, "%12s %4s %7s %-16s %s\n", "TIME", "VCPU", "TID", "COMM", "PROBE");
}

static void print_fields(const struct trace_event *event, FILE *out)
{
	for (char **field = event->probe->fields; *field; field++) {
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
