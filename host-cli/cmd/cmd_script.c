// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "cmd/command.h"
#include "reading/input.h"
#include "reading/script_order.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/text.h"

struct script_values {
	struct symbol_options symbols;
	char *input, *kernel;
	gboolean json, force, switches;
};

static const struct option_row options[] = {
	{"input", 'i', OPTION_FILE, offsetof(struct script_values, input),
         "recording to read (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"kernel", 'k', OPTION_FILE, offsetof(struct script_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", 'f', OPTION_FLAG, offsetof(struct script_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(symbol_option_rows, struct script_values, symbols),
	{"switch-events", 0, OPTION_FLAG, offsetof(struct script_values, switches), "also print context switches",
         NULL},
	{"json", 'j', OPTION_FLAG, offsetof(struct script_values, json), "print one JSON object per line", NULL},
	{NULL},
};

/* What printing a sample needs. */
struct script {
	const struct script_values *given;
	struct input *input;
};

static const char *event_name(const struct input *input, unsigned event)
{
	return recording_event(input->recording, event)->name;
}

/* By sample-add, not by an event. */
static bool is_added(const struct record_sample *sample)
{
	return (sample->misc & VPROF_SAMPLE_ADDED) != 0;
}

/* The format is stable: vprof-script(1). */
static void sample_print_text(const struct script *script, const struct record_sample *sample, unsigned event,
                              const struct place *place)
{
	g_autofree char *symbol = text_printable(place->symbol);
	g_autofree char *name = text_printable(is_added(sample) ? "sample-add" : event_name(script->input, event));
	g_autofree char *module = text_printable(place->module);
	g_autofree char *comm = text_printable(names_comm(script->input->names, sample->tid, sample->time_ns));

	printf("%" G_GUINT64_FORMAT ".%09u [%03" G_GUINT32_FORMAT "] %-6s %s %" G_GUINT64_FORMAT
	       " %016" G_GINT64_MODIFIER "x %s+0x%" G_GINT64_MODIFIER "x %s %d %d %s\n",
	       sample->time_ns / 1000000000, (unsigned)(sample->time_ns % 1000000000), sample->cpu,
	       profile_mode_name(profile_mode_of(sample->misc)), name, sample->period, sample->ip, symbol,
	       place->offset, module, (int32_t)sample->pid, (int32_t)sample->tid, comm);
}

static void sample_print_json(const struct script *script, const struct record_sample *sample, unsigned event,
                              const struct place *place)
{
	json_t *object = json_pack("{s:I, s:I, s:s, s:o, s:I, s:o, s:o, s:I, s:o, s:i, s:i, s:o}", "time-ns",
	                           (json_int_t)sample->time_ns, "vcpu", (json_int_t)sample->cpu, "mode",
	                           profile_mode_name(profile_mode_of(sample->misc)), "event",
	                           text_json(event_name(script->input, event)), "period", (json_int_t)sample->period,
	                           "ip", json_sprintf("0x%016" G_GINT64_MODIFIER "x", sample->ip), "symbol",
	                           text_json(place->symbol), "offset", (json_int_t)place->offset, "module",
	                           text_json(place->module), "pid", (int32_t)sample->pid, "tid", (int32_t)sample->tid,
	                           "comm", text_json(names_comm(script->input->names, sample->tid, sample->time_ns)));

	if (sample->has_cgroup)
		json_object_set_new(object, "cgroup", text_json(names_cgroup(script->input->names, sample)));
	if (is_added(sample))
		json_object_set_new(object, "added", json_true());
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

static char *comm_of(const struct script *script, uint32_t tid, uint64_t time_ns)
{
	return text_printable(names_comm(script->input->names, tid, time_ns));
}

static void switch_print_text(const struct script *script, const struct script_item *item)
{
	const struct record_sample *of = &item->sample;
	const struct record_switch *change = &item->change;
	g_autofree char *comm = comm_of(script, of->tid, of->time_ns);
	g_autofree char *other = comm_of(script, change->other_tid, of->time_ns);

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

	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

static void sample_print(const struct script *script, const struct record_sample *sample, unsigned event)
{
	struct place place;

	input_find_place(script->input, sample, profile_mode_of(sample->misc), sample->ip, &place);
	if (script->given->json)
		sample_print_json(script, sample, event, &place);
	else
		sample_print_text(script, sample, event, &place);
}

static bool item_print(const struct script_item *item, void *data)
{
	const struct script *script = data;

	if (!item->is_switch)
		sample_print(script, &item->sample, item->event);
	else if (script->given->json)
		switch_print_json(script, item);
	else
		switch_print_text(script, item);
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
		.sample = {.time_ns = id->time_ns, .cpu = id->cpu, .pid = id->pid, .tid = id->tid},
		.is_switch = true,
		.change = *change,
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
		.round = order_round,
	};
	g_autoptr(GError) error = NULL;
	const char *path = given->input;
	struct sample_order *order;
	struct script script;
	struct input *input;

	if (!symbol_options_check(&given->symbols, &error) || !input_choose(&path, n > 0 ? arguments[0] : NULL, &error))
		return usage_error(command_script.name, "%s", error->message);
	input = input_open(path, given->kernel, given->force, &error);
	if (!input)
		return failure(error);
	input_take_symbol_options(input, &given->symbols, given->force);
	progress_beside_output();
	script = (struct script){.given = given, .input = input};
	order = sample_order_new(false, item_print, &script);
	input_walk(input, &visitor, order);
	sample_order_finish(order);
	input_say_warnings(input);
	sample_order_free(order);
	input_free(input);
	return STATUS_OK;
}

const struct command command_script = {
	.name = "script",
	.summary = "Print the samples of a recording, one per line",
	.arguments = "[FILE]",
	.max_arguments = 1,
	.manual = "vprof-script",
	.description =

		"Fields: time in seconds (the host's CLOCK_MONOTONIC), [vCPU], mode, event, period, instruction\n"
		"pointer, symbol+offset, module, pid, tid, name of the task. Samples are in order of time.\n"
		"A context switch: time, [vCPU], \"switch\", out or in, pid, tid and name of the task, next or\n"
		"previous, and pid, tid and name of the other task.\n"
		"\n"
		"Examples:\n"
		"  vprof script | head\n"
		"  vprof script old.data | wc -l\n"
		"  vprof script | awk '$3 == \"user\" { n++ } END { print n }'\n"
		"  vprof script --json | jq -r .symbol | sort | uniq -c | sort -rn",
	.options = options,
	.values_bytes = sizeof(struct script_values),
	.run = script_run,
};
