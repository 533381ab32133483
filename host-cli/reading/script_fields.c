// SPDX-License-Identifier: BSD-2-Clause
#include "reading/script_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <vprof/exit.h>

#include "lib/profile/chain.h"
#include "ui/text.h"

G_DEFINE_QUARK(vprof_script_fields_error, script_fields_error)

#define FIELDS_MAX 16u

/* A sample as it is printed. */
struct line {
	const struct input *input;
	const struct record_sample *sample;
	unsigned event;
	struct place place;
};

/* Text of a field that has no blank behind it; members of a JSON object. */
struct field {
	const char *name, *alias; /* alias: perf's; NULL */
	void (*print)(const struct line *line);
	void (*add)(const struct line *line, json_t *object);
};

struct script_fields {
	const struct field *field[FIELDS_MAX];
	size_t n;
	bool chain, usual;
};

/* By sample-add, not by an event. */
static bool is_added(const struct line *line)
{
	return (line->sample->misc & VPROF_SAMPLE_ADDED) != 0;
}

static const char *event_name(const struct line *line)
{
	return recording_event(line->input->recording, line->event)->name;
}

static const char *comm_of(const struct line *line)
{
	return names_comm(line->input->names, line->sample->tid, line->sample->time_ns);
}

static json_t *address_json(uint64_t ip)
{
	return json_sprintf("0x%016" G_GINT64_MODIFIER "x", ip);
}

/* ---- fields ---- */

static void time_print(const struct line *line)
{
	printf("%" G_GUINT64_FORMAT ".%09u", line->sample->time_ns / 1000000000,
	       (unsigned)(line->sample->time_ns % 1000000000));
}

static void time_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "time-ns", json_integer((json_int_t)line->sample->time_ns));
}

static void cpu_print(const struct line *line)
{
	printf("[%03" G_GUINT32_FORMAT "]", line->sample->cpu);
}

static void cpu_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "vcpu", json_integer(line->sample->cpu));
}

static void mode_print(const struct line *line)
{
	printf("%-6s", profile_mode_name(profile_mode_of(line->sample->misc)));
}

static void mode_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "mode", json_string(profile_mode_name(profile_mode_of(line->sample->misc))));
}

static void event_print(const struct line *line)
{
	fputs(is_added(line) ? "sample-add" : event_name(line), stdout);
}

static void event_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "event", text_json(event_name(line)));
}

static void period_print(const struct line *line)
{
	printf("%" G_GUINT64_FORMAT, line->sample->period);
}

static void period_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "period", json_integer((json_int_t)line->sample->period));
}

static void ip_print(const struct line *line)
{
	printf("%016" G_GINT64_MODIFIER "x", line->sample->ip);
}

static void ip_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "ip", address_json(line->sample->ip));
}

static void symbol_print(const struct line *line)
{
	fputs(line->place.symbol, stdout);
	printf("+0x%" G_GINT64_MODIFIER "x", line->place.offset);
}

static void symbol_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "symbol", text_json(line->place.symbol));
	json_object_set_new(object, "offset", json_integer((json_int_t)line->place.offset));
}

static void module_print(const struct line *line)
{
	fputs(line->place.module, stdout);
}

static void module_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "module", text_json(line->place.module));
}

static void pid_print(const struct line *line)
{
	printf("%d", (int32_t)line->sample->pid);
}

static void pid_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "pid", json_integer((int32_t)line->sample->pid));
}

static void tid_print(const struct line *line)
{
	printf("%d", (int32_t)line->sample->tid);
}

static void tid_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "tid", json_integer((int32_t)line->sample->tid));
}

static void comm_print(const struct line *line)
{
	fputs(comm_of(line), stdout);
}

static void comm_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "comm", text_json(comm_of(line)));
}

static void cgroup_print(const struct line *line)
{
	fputs(line->sample->has_cgroup ? names_cgroup(line->input->names, line->sample) : "[unknown]", stdout);
}

static void cgroup_add(const struct line *line, json_t *object)
{
	if (line->sample->has_cgroup)
		json_object_set_new(object, "cgroup", text_json(names_cgroup(line->input->names, line->sample)));
}

static void state_print(const struct line *line)
{
	fputs(profile_state_name(profile_state_of(line->sample->misc)), stdout);
}

static void state_add(const struct line *line, json_t *object)
{
	json_object_set_new(object, "state", json_string(profile_state_name(profile_state_of(line->sample->misc))));
}

static void frame_find(const struct line *line, const struct chain_frame *frame, struct place *place)
{
	input_find_place(line->input, line->sample, profile_mode_of(frame->misc), frame->ip, place);
}

/* As perf prints a chain: the innermost first, and a blank line behind it. */
static void chain_print(const struct line *line)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const uint32_t n = chain_frames(line->sample, frames);

	for (uint32_t i = 0; i < n; i++) {
		struct place place;

		frame_find(line, &frames[i], &place);
		printf("\n\t%16" G_GINT64_MODIFIER "x ", frames[i].ip);
		fputs(place.symbol, stdout);
		printf("+0x%" G_GINT64_MODIFIER "x (", place.offset);
		fputs(place.module, stdout);
		putchar(')');
	}
	putchar('\n');
}

static void chain_add(const struct line *line, json_t *object)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const uint32_t n = chain_frames(line->sample, frames);
	json_t *chain = json_array();

	for (uint32_t i = 0; i < n; i++) {
		struct place place;

		frame_find(line, &frames[i], &place);
		json_array_append_new(chain,
		                      json_pack("{s:s, s:o, s:o, s:I, s:o}", "mode",
		                                profile_mode_name(profile_mode_of(frames[i].misc)), "ip",
		                                address_json(frames[i].ip), "symbol", text_json(place.symbol), "offset",
		                                (json_int_t)place.offset, "module", text_json(place.module)));
	}
	json_object_set_new(object, "chain", chain);
}

/* In the order of a line; the format is stable: vprof-script(1). */
static const struct field all[] = {
	{"time", NULL, time_print, time_add},        {"cpu", "vcpu", cpu_print, cpu_add},
	{"mode", NULL, mode_print, mode_add},        {"event", NULL, event_print, event_add},
	{"period", NULL, period_print, period_add},  {"ip", NULL, ip_print, ip_add},
	{"sym", "symbol", symbol_print, symbol_add}, {"module", "dso", module_print, module_add},
	{"pid", NULL, pid_print, pid_add},           {"tid", NULL, tid_print, tid_add},
	{"comm", NULL, comm_print, comm_add},        {"cgroup", NULL, cgroup_print, cgroup_add},
	{"state", NULL, state_print, state_add},     {"chain", "callchain", chain_print, chain_add},
};
#define CGROUP 11u
#define STATE 12u
#define CHAIN 13u
_Static_assert(G_N_ELEMENTS(all) <= FIELDS_MAX, "every field fits");

static const struct field *field_find(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
		if (strcmp(all[i].name, name) == 0 || g_strcmp0(all[i].alias, name) == 0)
			return &all[i];
	return NULL;
}

static bool fields_take(struct script_fields *fields, char *const *names, GError **error)
{
	for (; *names; names++) {
		const struct field *field = field_find(*names);
		bool again = false;

		for (size_t i = 0; field && i < fields->n; i++)
			again |= fields->field[i] == field;
		if (!field || again) {
			g_set_error(error, SCRIPT_FIELDS_ERROR, SCRIPT_FIELDS_ERROR_UNKNOWN,
			            field ? "--fields: \"%s\" is named twice"
			                  : "--fields: there is no field \"%s\"; there are " SCRIPT_FIELD_NAMES,
			            *names);
			return false;
		}
		if (field == &all[CHAIN])
			fields->chain = true;
		else
			fields->field[fields->n++] = field;
	}
	return true;
}

struct script_fields *script_fields_new(char *const *names, bool chains, GError **error)
{
	struct script_fields *fields = g_new0(struct script_fields, 1);

	fields->chain = chains;
	fields->usual = !names;
	for (size_t i = 0; !names && i < CGROUP; i++)
		fields->field[fields->n++] = &all[i];
	if (!names || fields_take(fields, names, error))
		return fields;
	script_fields_free(fields);
	return NULL;
}

void script_fields_free(struct script_fields *fields)
{
	g_free(fields);
}

bool script_fields_have_chain(const struct script_fields *fields)
{
	return fields->chain;
}

static struct line line_of(const struct input *input, const struct record_sample *sample, unsigned event)
{
	struct line line = {.input = input, .sample = sample, .event = event};

	input_find_place(input, sample, profile_mode_of(sample->misc), sample->ip, &line.place);
	return line;
}

void script_fields_print(const struct script_fields *fields, const struct input *input,
                         const struct record_sample *sample, unsigned event)
{
	const struct line line = line_of(input, sample, event);

	for (size_t i = 0; i < fields->n; i++) {
		if (i > 0)
			putchar(' ');
		fields->field[i]->print(&line);
	}
	if (fields->chain)
		all[CHAIN].print(&line);
	putchar('\n');
}

void script_fields_print_json(const struct script_fields *fields, const struct input *input,
                              const struct record_sample *sample, unsigned event)
{
	const struct line line = line_of(input, sample, event);
	json_t *object = json_object();

	for (size_t i = 0; i < fields->n; i++)
		fields->field[i]->add(&line, object);
	if (fields->usual)
		all[CGROUP].add(&line, object);
	if (fields->usual && profile_state_of(sample->misc) != VPROF_TASK_RUNNING)
		all[STATE].add(&line, object);
	if (fields->chain)
		all[CHAIN].add(&line, object);
	if (fields->usual && is_added(&line))
		json_object_set_new(object, "added", json_true());
	json_write(object, JSON_COMPACT, stdout);
	putchar('\n');
	json_decref(object);
}
