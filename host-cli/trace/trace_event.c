// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_event.h"

#include <inttypes.h>
#include <string.h>

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

	if (offset != NULL)
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
	if (event->probe->is_syscall && strcmp(field, "nr") == 0 && syscall_name(number) != NULL)
		return g_strdup(syscall_name(number));
	if (event->probe->is_exit && strcmp(field, "reason") == 0 && exit_name_of_reason(number) != NULL)
		return g_strdup(exit_name_of_reason(number));
	if ((strcmp(field, "pid") == 0 || strcmp(field, "tid") == 0) && number == VPROF_PID_UNKNOWN)
		return g_strdup("?");
	return g_strdup_printf(is_decimal(field) ? "%" PRIu64 : "0x%" PRIx64, number);
}

char *trace_symbol(const struct symtab *symtab, uint64_t ip)
{
	const struct symbol *symbol = symtab != NULL ? symtab_find(symtab, ip) : NULL;
	g_autofree char *name = NULL;

	if (symbol == NULL)
		return g_strdup_printf("0x%" PRIx64, ip);
	name = text_printable(symbol->name);
	return ip != symbol->address ? g_strdup_printf("%s+0x%" PRIx64, name, ip - symbol->address)
	                             : g_steal_pointer(&name);
}
