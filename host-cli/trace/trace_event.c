// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_event.h"

#include <inttypes.h>
#include <string.h>
#include <vprof/probe.h>

#include "lib/probe_name/probe_name.h"
#include "lib/profile/chain.h"
#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"
#include "ui/text.h"

#define ERRNO_MAX 4095 /* MAX_ERRNO of linux/err.h */

static void append_names(GPtrArray *names, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		g_ptr_array_add(names, text_printable(json_string_value(json_array_get(list, i))));
}

bool trace_field_is_text(const char *field)
{
	return g_str_has_prefix(field, "str(");
}

bool trace_field_is_result(const char *field)
{
	return strcmp(field, "retval") == 0 || strcmp(field, "ret") == 0;
}

bool trace_field_is_path(const char *field)
{
	return trace_field_is_text(field) || strstr(field, "->") || strchr(field, '.');
}

/* Behind the fields there is a number that says which of the paths could be read. */
static void add_paths(struct trace_probe *probe, const json_t *list)
{
	size_t at = probe->n_fields + 1;

	probe->n_paths = json_array_size(list);
	probe->paths = g_new0(struct trace_path, probe->n_paths);
	for (size_t i = 0; i < probe->n_paths; i++) {
		const json_t *path = json_array_get(list, i);
		const bool is_text = json_is_true(json_object_get(path, "text"));
		const char *type = member_text(path, "type");

		probe->paths[i] = (struct trace_path){
			.name = text_printable(member_text(path, "name")),
			.at = at,
			.is_text = is_text,
			.is_address = type && (type[0] == '\0' || g_str_has_suffix(type, "*")),
		};
		at += is_text ? VPROF_PROBE_TEXT_BYTES / sizeof(uint64_t) : 1;
	}
}

struct trace_probe *trace_probe_new(const json_t *answer)
{
	struct trace_probe *probe = g_new0(struct trace_probe, 1);
	GPtrArray *names = g_ptr_array_new(), *types = g_ptr_array_new();

	append_names(names, json_object_get(answer, "arguments"));
	append_names(names, json_object_get(answer, "registers"));
	append_names(types, json_object_get(answer, "types"));
	probe->n_fields = names->len;
	g_ptr_array_add(names, NULL);
	g_ptr_array_add(types, NULL);
	probe->fields = (char **)g_ptr_array_free(names, FALSE);
	probe->types = (char **)g_ptr_array_free(types, FALSE);
	add_paths(probe, json_object_get(answer, "fields"));
	probe->id = member_number(answer, "id", 0);
	probe->name = text_printable(member_text(answer, "name"));
	probe->is_syscall = g_str_has_prefix(probe->name, "syscall:") || strstr(probe->name, "syscalls:sys_");
	probe->is_exit = g_str_has_prefix(probe->name, "exit:");
	probe->waits =
		json_is_integer(json_object_get(answer, "processes")) && member_number(answer, "processes", 0) == 0;
	probe->similar = json_is_string(json_object_get(answer, "similar"))
	                         ? text_printable(member_text(answer, "similar"))
	                         : NULL;
	probe->is_patch = g_strcmp0(member_text(answer, "breakpoint"), "patch") == 0;
	return probe;
}

void trace_probe_free(struct trace_probe *probe)
{
	g_strfreev(probe->fields);
	g_strfreev(probe->types);
	for (size_t i = 0; i < probe->n_paths; i++)
		g_free(probe->paths[i].name);
	g_free(probe->paths);
	g_free(probe->name);
	g_free(probe->similar);
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

static bool has_values(const struct trace_event *event)
{
	return event->sample.raw_bytes >= event->probe->n_fields * sizeof(uint64_t);
}

const struct trace_path *trace_probe_path(const struct trace_probe *probe, const char *field)
{
	for (size_t i = 0; i < probe->n_paths; i++)
		if (strcmp(probe->paths[i].name, field) == 0)
			return &probe->paths[i];
	return NULL;
}

bool trace_probe_has(const struct trace_probe *probe, const char *field)
{
	return trace_probe_path(probe, field) || g_strv_contains((const char *const *)probe->fields, field);
}

bool trace_field_is_common(const char *field)
{
	static const char *const common[] = {"time", "vcpu", "pid", "tid", "ip", "comm", "probe", "func", NULL};

	return g_strv_contains(common, field) || trace_field_is_stack(field);
}

/* NULL also when the guest's memory could not be read. */
static const struct trace_path *known_path(const struct trace_event *event, const char *field)
{
	const struct trace_probe *probe = event->probe;
	const struct trace_path *path = trace_probe_path(probe, field);

	return path && trace_event_value(event, probe->n_fields) >> (path - probe->paths) & 1 ? path : NULL;
}

static bool event_number(const struct trace_event *event, const char *field, uint64_t *number)
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
	for (size_t i = 0; i < event->probe->n_fields && has_values(event); i++) {
		if (strcmp(event->probe->fields[i], field) == 0) {
			*number = trace_event_value(event, i);
			return true;
		}
	}
	const struct trace_path *path = known_path(event, field);

	if (path && !path->is_text)
		*number = trace_event_value(event, path->at);
	return path && !path->is_text;
}

static bool is_decimal(const char *field)
{
	static const char *const fields[] = {"time", "vcpu", "pid", "tid", "bytes", "ns", NULL};

	return g_strv_contains(fields, field);
}

static uint32_t stack_frames(const struct trace_event *event, struct chain_frame frames[CHAIN_FRAMES_MAX])
{
	return event->sample.n_chain > 0 ? chain_frames(&event->sample, frames) : 0;
}

bool trace_field_is_stack(const char *field)
{
	return strcmp(field, "stack") == 0 || strcmp(field, "kstack") == 0 || strcmp(field, "ustack") == 0;
}

/* "main;read;vfs_read": the part of the chain that the field is about. */
static char *stack_text(const struct trace_event *event, const char *field, struct trace_names *names)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	GString *text = g_string_new(NULL);

	for (uint32_t n = stack_frames(event, frames); n-- > 0;) {
		bool user = frames[n].misc == PERF_RECORD_MISC_USER;

		if (field[0] != 's' && user != (field[0] == 'u'))
			continue;
		g_autofree char *name = trace_names_frame(names, &frames[n], event->sample.pid, event->sample.time_ns);

		g_string_append_printf(text, "%s%s", text->len > 0 ? ";" : "", name);
	}
	return g_string_free(text, FALSE);
}

/* Whether the kernel's types say that an argument is no address. */
static bool has_number_type(const struct trace_probe *probe, const char *field)
{
	for (size_t i = 0; probe->types[i] && probe->fields[i]; i++)
		if (strcmp(probe->fields[i], field) == 0)
			return !g_str_has_suffix(probe->types[i], "*");
	return false;
}

/* An error of Linux, a small number, or else what may be an address. */
static char *result_text(uint64_t value)
{
	const int64_t result = (int64_t)value;

	return g_strdup_printf(result >= -ERRNO_MAX && result <= INT32_MAX ? "%" PRId64 : "0x%" PRIx64, result);
}

static char *path_text(const struct trace_path *path, const uint64_t *words)
{
	char text[VPROF_PROBE_TEXT_BYTES + 1] = {0};

	if (!path->is_text)
		return path->is_address ? g_strdup_printf("0x%" PRIx64, words[0]) : result_text(words[0]);
	memcpy(text, words, VPROF_PROBE_TEXT_BYTES);
	return text_printable(text);
}

static char *event_path_text(const struct trace_event *event, const struct trace_path *path)
{
	uint64_t words[VPROF_PROBE_TEXT_BYTES / sizeof(uint64_t)];

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		words[i] = trace_event_value(event, path->at + i);
	return path_text(path, words);
}

char *trace_probe_text(const struct trace_probe *probe, const char *field, const uint64_t *words)
{
	const struct trace_path *path = trace_probe_path(probe, field);
	const uint64_t number = words[0];

	if (path)
		return path_text(path, words);
	if (probe->is_syscall && (strcmp(field, "nr") == 0 || strcmp(field, "id") == 0) && syscall_name(number))
		return g_strdup(syscall_name(number));
	if (probe->is_exit && strcmp(field, "reason") == 0 && exit_name_of_reason(number))
		return g_strdup(exit_name_of_reason(number));
	if ((strcmp(field, "pid") == 0 || strcmp(field, "tid") == 0) && number == VPROF_PID_UNKNOWN)
		return g_strdup("?");
	if (trace_field_is_result(field) || has_number_type(probe, field))
		return result_text(number);
	return g_strdup_printf(is_decimal(field) ? "%" PRIu64 : "0x%" PRIx64, number);
}

/* That of a program is in the probe's name. */
static char *function_of(const struct trace_event *event, struct trace_names *names, bool offset)
{
	struct probe_in_program program;

	if (probe_in_program_parse(event->probe->name, &program)) {
		char *function = g_steal_pointer(&program.name);

		probe_in_program_clear(&program);
		return function;
	}
	return offset ? trace_names_kernel(names, event->sample.ip) : trace_names_function(names, event->sample.ip);
}

char *trace_event_text(const struct trace_event *event, const char *field, struct trace_names *names)
{
	const struct trace_path *path = known_path(event, field);
	uint64_t number;

	if (path)
		return event_path_text(event, path);
	if (strcmp(field, "comm") == 0)
		return g_strdup(event->comm);
	if (strcmp(field, "probe") == 0)
		return g_strdup(event->probe->name);
	if (strcmp(field, "func") == 0)
		return function_of(event, names, false);
	if (trace_field_is_stack(field))
		return stack_text(event, field, names);
	return event_number(event, field, &number) ? trace_probe_text(event->probe, field, &number) : NULL;
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

		if (text)
			fprintf(out, " %s=%s", *field, text);
	}
	for (size_t i = 0; i < event->probe->n_paths; i++) {
		const struct trace_path *path = known_path(event, event->probe->paths[i].name);
		g_autofree char *text = path ? event_path_text(event, path) : NULL;

		fprintf(out, " %s=%s", event->probe->paths[i].name, text ? text : "?");
	}
}

void trace_print_event(const struct trace_event *event, uint64_t start_ns, struct trace_names *names, FILE *out)
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
		g_autofree char *symbol =
			trace_names_frame(names, &frames[i], event->sample.pid, event->sample.time_ns);

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

	for (size_t i = 0; i < event->probe->n_fields && has_values(event); i++)
		json_object_set_new(fields, event->probe->fields[i], hex(trace_event_value(event, i)));
	for (size_t i = 0; i < event->probe->n_paths; i++) {
		const struct trace_path *path = known_path(event, event->probe->paths[i].name);
		g_autofree char *text = path && path->is_text ? event_path_text(event, path) : NULL;

		json_object_set_new(fields, event->probe->paths[i].name,
		                    text   ? text_json(text)
		                    : path ? hex(trace_event_value(event, path->at))
		                           : json_null());
	}
	return fields;
}

static json_t *stack_json(const struct trace_event *event, struct trace_names *names)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	uint32_t n = stack_frames(event, frames);
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		g_autofree char *symbol =
			trace_names_frame(names, &frames[i], event->sample.pid, event->sample.time_ns);

		json_array_append_new(list, text_json(symbol));
	}
	return list;
}

/* pid and tid as the kernel has them: -1 for unknown ones. */
static json_int_t pid_json(uint32_t pid)
{
	return (int32_t)pid;
}

json_t *trace_event_json(const struct trace_event *event, struct trace_names *names)
{
	const struct record_sample *sample = &event->sample;
	g_autofree char *symbol = function_of(event, names, true);

	return json_pack("{s:s, s:I, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "probe", event->probe->name, "time-ns",
	                 (json_int_t)sample->time_ns, "vcpu", (int)sample->cpu, "pid", pid_json(sample->pid), "tid",
	                 pid_json(sample->tid), "comm", text_json(event->comm), "ip", hex(sample->ip), "func",
	                 text_json(symbol), "fields", fields_json(event), "stack", stack_json(event, names));
}
