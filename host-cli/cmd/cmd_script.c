// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "cmd/command.h"
#include "reading/filter.h"
#include "reading/input.h"
#include "reading/script_fields.h"
#include "reading/script_order.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/text.h"

struct script_values {
	struct symbol_options symbols;
	struct filter_options filter;
	char *input, *kernel;
	char **fields;
	gboolean json, force, switches, call_chains;
};

static const struct option_row options[] = {
	{"input", OPTION_FILE, offsetof(struct script_values, input),
         "recording to read (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"kernel", OPTION_FILE, offsetof(struct script_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", OPTION_FLAG, offsetof(struct script_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(filter_option_rows, struct script_values, filter),
	OPTION_ROWS(filter_event_rows, struct script_values, filter),
	OPTION_ROWS(symbol_option_rows, struct script_values, symbols),
	{"fields", OPTION_LIST, offsetof(struct script_values, fields),
         "what to print of a sample, in this order: " SCRIPT_FIELD_NAMES, "FIELD,...",
         "time cpu mode event period ip sym module pid tid comm cgroup state waker chain"},
	{"call-chains", OPTION_FLAG, offsetof(struct script_values, call_chains), "also print call chains", NULL},
	{"switch-events", OPTION_FLAG, offsetof(struct script_values, switches),
         "also print context switches, and what counters had counted of a task at its end", NULL},
	{"json", OPTION_FLAG, offsetof(struct script_values, json), "print one JSON object per line", NULL},
	{NULL},
};

/* What printing a sample needs. */
struct script {
	const struct script_values *given;
	struct input *input;
	struct script_fields *fields;
};

static const char *comm_of(const struct script *script, uint32_t tid, uint64_t time_ns)
{
	return names_comm(script->input->names, tid, time_ns);
}

static void switch_print_text(const struct script *script, const struct script_item *item)
{
	const struct record_sample *of = &item->sample;
	const struct record_switch *change = &item->change;
	const char *comm = comm_of(script, of->tid, of->time_ns);
	const char *other = comm_of(script, change->other_tid, of->time_ns);

	printf("%" G_GUINT64_FORMAT ".%09u [%03" G_GUINT32_FORMAT "] switch %s %d %d %s %s %d %d %s\n",
	       of->time_ns / 1000000000, (unsigned)(of->time_ns % 1000000000), of->cpu, change->out ? "out" : "in",
	       (int32_t)of->pid, (int32_t)of->tid, comm, change->out ? "next" : "previous", (int32_t)change->other_pid,
	       (int32_t)change->other_tid, other);
}

static void switch_print_json(const struct script *script, const struct script_item *item)
{
	const struct record_sample *of = &item->sample;
	const struct record_switch *change = &item->change;
	json_t *object = json_pack(
		"{s:I, s:I, s:s, s:i, s:i, s:o, s:{s:i, s:i, s:o}}", "time-ns", (json_int_t)of->time_ns, "vcpu",
		(json_int_t)of->cpu, "switch", change->out ? "out" : "in", "pid", (int32_t)of->pid, "tid",
		(int32_t)of->tid, "comm", text_json(names_comm(script->input->names, of->tid, of->time_ns)),
		change->out ? "next" : "previous", "pid", (int32_t)change->other_pid, "tid", (int32_t)change->other_tid,
		"comm", text_json(names_comm(script->input->names, change->other_tid, of->time_ns)));

	json_write(object, JSON_COMPACT, stdout);
	putchar('\n');
	json_decref(object);
}

static const char *event_of(const struct script *script, const struct script_item *item)
{
	return recording_event(script->input->recording, item->event)->name;
}

static void total_print_text(const struct script *script, const struct script_item *item)
{
	const struct record_sample *of = &item->sample;

	printf("%" G_GUINT64_FORMAT ".%09u [%03" G_GUINT32_FORMAT "] total %s %" G_GUINT64_FORMAT " %d %d %s\n",
	       of->time_ns / 1000000000, (unsigned)(of->time_ns % 1000000000), of->cpu, event_of(script, item),
	       item->total.value, (int32_t)of->pid, (int32_t)of->tid, comm_of(script, of->tid, of->time_ns));
}

static void total_print_json(const struct script *script, const struct script_item *item)
{
	const struct record_sample *of = &item->sample;
	const struct record_read *total = &item->total;
	json_t *object = json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:i, s:i, s:o}", "time-ns", (json_int_t)of->time_ns,
	                           "vcpu", (json_int_t)of->cpu, "event", text_json(event_of(script, item)), "total",
	                           (json_int_t)total->value, "enabled-ns", (json_int_t)total->enabled_ns, "running-ns",
	                           (json_int_t)total->running_ns, "pid", (int32_t)of->pid, "tid", (int32_t)of->tid,
	                           "comm", text_json(comm_of(script, of->tid, of->time_ns)));

	json_write(object, JSON_COMPACT, stdout);
	putchar('\n');
	json_decref(object);
}

static void other_print(const struct script *script, const struct script_item *item)
{
	const bool is_switch = item->kind == SCRIPT_SWITCH;

	if (script->given->json) {
		(is_switch ? switch_print_json : total_print_json)(script, item);
	} else {
		script_fields_flush(script->fields);
		(is_switch ? switch_print_text : total_print_text)(script, item);
	}
}

static bool item_print(const struct script_item *item, void *data)
{
	const struct script *script = data;

	if (item->kind != SCRIPT_SAMPLE)
		other_print(script, item);
	else if (script->given->json)
		script_fields_print_json(script->fields, script->input, &item->sample, item->event);
	else
		script_fields_print(script->fields, script->input, &item->sample, item->event);
	return ferror(stdout) == 0;
}

static bool order_add(const struct record_sample *sample, unsigned event, void *data)
{
	const struct script_item item = {.sample = *sample, .event = event};

	sample_order_add(data, &item);
	return true;
}

static bool order_add_switch(const struct record_switch *change, const struct record_id *id, void *data)
{
	const struct script_item item = {
		.kind = SCRIPT_SWITCH,
		.sample = {.time_ns = id->time_ns, .cpu = id->cpu, .pid = id->pid, .tid = id->tid},
		.change = *change,
	};

	sample_order_add(data, &item);
	return true;
}

static bool order_add_total(const struct record_read *read, unsigned event, const struct record_id *id, void *data)
{
	const struct script_item item = {
		.kind = SCRIPT_TOTAL,
		.sample = {.time_ns = id->time_ns, .cpu = id->cpu, .pid = read->pid, .tid = read->tid},
		.event = event,
		.total = *read,
	};

	sample_order_add(data, &item);
	return true;
}

static bool order_round(void *data)
{
	return sample_order_round(data);
}

static int script_run(void *values, unsigned n, char **arguments)
{
	const struct script_values *given = values;
	const struct input_visitor visitor = {
		.sample = order_add,
		.switched = given->switches ? order_add_switch : NULL,
		.counted = given->switches ? order_add_total : NULL,
		.round = order_round,
	};
	g_autoptr(GError) error = NULL;
	const char *path = given->input;
	struct sample_order *order;
	struct script_fields *fields;
	struct script script;
	struct input *input;

	if (!symbol_options_check(&given->symbols, &error) || !filter_options_check(&given->filter, &error) ||
	    !input_choose(&path, n > 0 ? arguments[0] : NULL, &error))
		return usage_error(command_script.name, "%s", error->message);
	fields = script_fields_new(given->fields, given->call_chains, &error);
	if (!fields)
		return usage_error(command_script.name, "%s", error->message);
	input = input_open(path, given->kernel, given->force, &error);
	if (!input) {
		script_fields_free(fields);
		return failure(error);
	}
	if (!input_select(input, &given->filter, &error)) {
		input_free(input);
		script_fields_free(fields);
		return failure(error);
	}
	input_take_symbol_options(input, &given->symbols, given->force);
	progress_beside_output();
	script = (struct script){.given = given, .input = input, .fields = fields};
	order = sample_order_new(script_fields_have_chain(fields), item_print, &script);
	input_walk(input, &visitor, order);
	sample_order_finish(order);
	script_fields_flush(fields);
	input_say_warnings(input);
	sample_order_free(order);
	input_free(input);
	script_fields_free(fields);
	return STATUS_OK;
}

const struct command command_script = {
	.name = "script",
	.summary = "Print the samples of a recording, one per line",
	.arguments = "[FILE]",
	.max_arguments = 1,
	.argument_words = {"@files"},
	.pages = true,
	.manual = "vprof-script",
	.description =

		"Fields: time in seconds (the host's CLOCK_MONOTONIC), [vCPU], mode, event, period, instruction\n"
		"pointer, symbol+offset, module, pid, tid, name of the task. Samples are in order of time.\n"
		"A context switch: time, [vCPU], \"switch\", out or in, pid, tid and name of the task, next or\n"
		"previous, and pid, tid and name of the other task. The end of a task that a counter counted per\n"
		"switch: time, [vCPU], \"total\", event, what was counted, pid, tid and name of the task.\n"
		"\n"
		"Examples:\n"
		"  vprof script | head\n"
		"  vprof script -g --comm nginx\n"
		"  vprof script --fields time,comm,sym old.data\n"
		"  vprof script | awk '$3 == \"user\" { n++ } END { print n }'\n"
		"  vprof script --json | jq -r .symbol | sort | uniq -c | sort -rn",
	.options = options,
	.values_bytes = sizeof(struct script_values),
	.run = script_run,
};
