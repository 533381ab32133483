// SPDX-License-Identifier: BSD-2-Clause
#include "reading/script_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <vprof/exit.h>

#include "lib/profile/chain.h"
#include "ui/line.h"
#include "ui/text.h"

G_DEFINE_QUARK(vprof_script_fields_error, script_fields_error)

#define FIELDS_MAX 16u

/* A sample as it is shown. */
struct shown {
	const struct input *input;
	const struct record_sample *sample;
	unsigned event;
	struct place place;
};

/* Text of a field that has no blank behind it; members of a JSON object. */
struct field {
	const char *name, *alias; /* alias: perf's; NULL */
	void (*print)(const struct shown *shown, struct line *to);
	void (*add)(const struct shown *shown, json_t *object);
};

struct script_fields {
	struct line lines; /* that are being printed */
	const struct field *field[FIELDS_MAX];
	size_t n;
	bool chain, usual;
};

/* By sample-add, not by an event. */
static bool is_added(const struct shown *shown)
{
	return (shown->sample->misc & VPROF_SAMPLE_ADDED) != 0;
}

static const char *event_name(const struct shown *shown)
{
	return recording_event(shown->input->recording, shown->event)->name;
}

static const char *comm_of(const struct shown *shown)
{
	return names_comm(shown->input->names, shown->sample->tid, shown->sample->time_ns);
}

static json_t *address_json(uint64_t ip)
{
	return json_sprintf("0x%016" G_GINT64_MODIFIER "x", ip);
}

/* ---- fields ---- */

static void time_print(const struct shown *shown, struct line *to)
{
	line_number(to, shown->sample->time_ns / 1000000000, 1);
	line_char(to, '.');
	line_number(to, shown->sample->time_ns % 1000000000, 9);
}

static void time_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "time-ns", json_integer((json_int_t)shown->sample->time_ns));
}

static void cpu_print(const struct shown *shown, struct line *to)
{
	line_char(to, '[');
	line_number(to, shown->sample->cpu, 3);
	line_char(to, ']');
}

static void cpu_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "vcpu", json_integer(shown->sample->cpu));
}

static void mode_print(const struct shown *shown, struct line *to)
{
	const size_t start = to->n;

	line_text(to, profile_mode_name(profile_mode_of(shown->sample->misc)));
	line_pad(to, start, 6);
}

static void mode_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "mode", json_string(profile_mode_name(profile_mode_of(shown->sample->misc))));
}

static void event_print(const struct shown *shown, struct line *to)
{
	line_text(to, is_added(shown) ? "sample-add" : event_name(shown));
}

static void event_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "event", text_json(event_name(shown)));
}

static void period_print(const struct shown *shown, struct line *to)
{
	line_number(to, shown->sample->period, 1);
}

static void period_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "period", json_integer((json_int_t)shown->sample->period));
}

static void ip_print(const struct shown *shown, struct line *to)
{
	line_hex(to, shown->sample->ip, 16);
}

static void ip_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "ip", address_json(shown->sample->ip));
}

static void place_print(const struct place *place, struct line *to)
{
	line_text(to, place->symbol);
	line_text(to, "+0x");
	line_hex(to, place->offset, 1);
}

static void symbol_print(const struct shown *shown, struct line *to)
{
	place_print(&shown->place, to);
}

static void symbol_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "symbol", text_json(shown->place.symbol));
	json_object_set_new(object, "offset", json_integer((json_int_t)shown->place.offset));
}

static void module_print(const struct shown *shown, struct line *to)
{
	line_text(to, shown->place.module);
}

static void module_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "module", text_json(shown->place.module));
}

static void pid_print(const struct shown *shown, struct line *to)
{
	line_signed(to, (int32_t)shown->sample->pid);
}

static void pid_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "pid", json_integer((int32_t)shown->sample->pid));
}

static void tid_print(const struct shown *shown, struct line *to)
{
	line_signed(to, (int32_t)shown->sample->tid);
}

static void tid_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "tid", json_integer((int32_t)shown->sample->tid));
}

static void comm_print(const struct shown *shown, struct line *to)
{
	line_text(to, comm_of(shown));
}

static void comm_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "comm", text_json(comm_of(shown)));
}

static void cgroup_print(const struct shown *shown, struct line *to)
{
	line_text(to, shown->sample->has_cgroup ? names_cgroup(shown->input->names, shown->sample) : "[unknown]");
}

static void cgroup_add(const struct shown *shown, json_t *object)
{
	if (shown->sample->has_cgroup)
		json_object_set_new(object, "cgroup", text_json(names_cgroup(shown->input->names, shown->sample)));
}

static void state_print(const struct shown *shown, struct line *to)
{
	line_text(to, profile_state_name(profile_state_of(shown->sample->misc)));
}

static void state_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "state", json_string(profile_state_name(profile_state_of(shown->sample->misc))));
}

static void waker_print(const struct shown *shown, struct line *to)
{
	line_text(to, names_waker(shown->input->names, shown->sample));
}

static void waker_add(const struct shown *shown, json_t *object)
{
	json_object_set_new(object, "waker", text_json(names_waker(shown->input->names, shown->sample)));
}

static void frame_find(const struct shown *shown, const struct chain_frame *frame, struct place *place)
{
	input_find_place(shown->input, shown->sample, profile_mode_of(frame->misc), frame->ip, place);
}

/* As "%16llx ". */
static void address_print(uint64_t address, struct line *to)
{
	for (uint64_t limit = UINT64_C(1) << 60; limit > address && limit > 1; limit >>= 4)
		line_char(to, ' ');
	line_hex(to, address, 1);
	line_char(to, ' ');
}

/* As perf prints a chain: the innermost first, and a blank line behind it. */
static void chain_print(const struct shown *shown, struct line *to)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const uint32_t n = chain_frames(shown->sample, frames);

	for (uint32_t i = 0; i < n; i++) {
		struct place place;

		frame_find(shown, &frames[i], &place);
		line_text(to, "\n\t");
		address_print(frames[i].ip, to);
		place_print(&place, to);
		line_text(to, " (");
		line_text(to, place.module);
		line_char(to, ')');
	}
	line_char(to, '\n');
}

static void chain_add(const struct shown *shown, json_t *object)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const uint32_t n = chain_frames(shown->sample, frames);
	json_t *chain = json_array();

	for (uint32_t i = 0; i < n; i++) {
		struct place place;

		frame_find(shown, &frames[i], &place);
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
	{"time", NULL, time_print, time_add},
	{"cpu", "vcpu", cpu_print, cpu_add},
	{"mode", NULL, mode_print, mode_add},
	{"event", NULL, event_print, event_add},
	{"period", NULL, period_print, period_add},
	{"ip", NULL, ip_print, ip_add},
	{"sym", "symbol", symbol_print, symbol_add},
	{"module", "dso", module_print, module_add},
	{"pid", NULL, pid_print, pid_add},
	{"tid", NULL, tid_print, tid_add},
	{"comm", NULL, comm_print, comm_add},
	{"cgroup", NULL, cgroup_print, cgroup_add},
	{"state", NULL, state_print, state_add},
	{"waker", NULL, waker_print, waker_add},
	{"chain", "callchain", chain_print, chain_add},
};
#define CGROUP 11u
#define STATE 12u
#define WAKER 13u
#define CHAIN 14u
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
	if (!fields)
		return;
	line_deinit(&fields->lines);
	g_free(fields);
}

bool script_fields_have_chain(const struct script_fields *fields)
{
	return fields->chain;
}

static struct shown shown_of(const struct input *input, const struct record_sample *sample, unsigned event)
{
	struct shown shown = {.input = input, .sample = sample, .event = event};

	input_find_place(input, sample, profile_mode_of(sample->misc), sample->ip, &shown.place);
	return shown;
}

void script_fields_print(struct script_fields *fields, const struct input *input, const struct record_sample *sample,
                         unsigned event)
{
	const struct shown shown = shown_of(input, sample, event);
	struct line *to = &fields->lines;

	for (size_t i = 0; i < fields->n; i++) {
		if (i > 0)
			line_char(to, ' ');
		fields->field[i]->print(&shown, to);
	}
	if (fields->chain)
		all[CHAIN].print(&shown, to);
	line_end(to, stdout);
}

void script_fields_flush(struct script_fields *fields)
{
	line_flush(&fields->lines, stdout);
}

void script_fields_print_json(const struct script_fields *fields, const struct input *input,
                              const struct record_sample *sample, unsigned event)
{
	const struct shown shown = shown_of(input, sample, event);
	json_t *object = json_object();

	for (size_t i = 0; i < fields->n; i++)
		fields->field[i]->add(&shown, object);
	if (fields->usual)
		all[CGROUP].add(&shown, object);
	if (fields->usual && profile_state_of(sample->misc) != VPROF_TASK_RUNNING)
		all[STATE].add(&shown, object);
	if (fields->usual && record_sample_wait(sample).waker != VPROF_WAKER_UNKNOWN)
		all[WAKER].add(&shown, object);
	if (fields->chain)
		all[CHAIN].add(&shown, object);
	if (fields->usual && is_added(&shown))
		json_object_set_new(object, "added", json_true());
	json_write(object, JSON_COMPACT, stdout);
	putchar('\n');
	json_decref(object);
}
