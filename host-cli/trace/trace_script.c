// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_script.h"

#include <inttypes.h>
#include <string.h>

#include "lib/probe_name/probe_name.h"
#include "lib/record/hex.h"
#include "trace/trace_filter.h"
#include "ui/message.h"
#include "ui/text.h"

/* A probe of the engine, and what stands for it in the script. */
struct target {
	char *name;
	GPtrArray *written; /* borrowed texts, up to NULL */
	bool is_of_pattern;
	char **fields;                   /* that were asked for */
	const struct trace_probe *probe; /* NULL: it could not be added */
	GPtrArray *known;                /* borrowed texts, up to NULL: the fields that it has */
};

struct trace_script {
	struct script *script;
	struct trace_source *source; /* NULL: not added yet */
	GPtrArray *targets;          /* of struct target */
	bool exited;
};

bool trace_text_is_script(const char *text)
{
	return strchr(text, '{') != NULL;
}

static void target_free(gpointer data)
{
	struct target *target = data;

	g_free(target->name);
	g_ptr_array_unref(target->written);
	g_ptr_array_unref(target->known);
	g_strfreev(target->fields);
	g_free(target);
}

struct trace_script *trace_script_of(struct script *script)
{
	struct trace_script *self = g_new0(struct trace_script, 1);

	self->script = script;
	self->targets = g_ptr_array_new_with_free_func(target_free);
	return self;
}

struct trace_script *trace_script_new(const char *text, const char *const *parameters, GError **error)
{
	struct script *script = script_parse(text, parameters, error);

	return script ? trace_script_of(script) : NULL;
}

void trace_script_free(struct trace_script *script)
{
	if (!script)
		return;
	g_ptr_array_unref(script->targets);
	script_free(script->script);
	g_free(script);
}

/* ---- its probes ---- */

static void add_target(struct trace_script *self, const char *name, const char *written, bool is_of_pattern)
{
	struct target *target = NULL;

	for (guint i = 0; i < self->targets->len && !target; i++) {
		struct target *other = g_ptr_array_index(self->targets, i);

		if (strcmp(other->name, name) == 0)
			target = other;
	}
	if (!target) {
		target = g_new0(struct target, 1);
		*target = (struct target){.name = g_strdup(name),
		                          .written = g_ptr_array_new(),
		                          .known = g_ptr_array_new(),
		                          .is_of_pattern = true};
		g_ptr_array_add(target->written, NULL);
		g_ptr_array_add(self->targets, target);
	}
	target->is_of_pattern &= is_of_pattern;
	g_ptr_array_insert(target->written, (gint)target->written->len - 1, (gpointer)written);
}

static bool find_targets(struct trace_script *self, GError **error)
{
	for (const char *const *written = script_probes(self->script); *written; written++) {
		json_t *names, *name;
		size_t i;

		if (!probe_name_is_pattern(*written)) {
			add_target(self, *written, *written, false);
			continue;
		}
		names = trace_source_matching(self->source, *written, error);
		if (!names)
			return false;
		json_array_foreach(names, i, name)
			add_target(self, json_string_value(name), *written, true);
		json_decref(names);
	}
	return true;
}

static void set_probe(struct target *target, const struct trace_probe *probe)
{
	target->probe = probe;
	for (size_t i = 0; i < probe->n_paths; i++)
		g_ptr_array_add(target->known, probe->paths[i].name);
	g_ptr_array_add(target->known, NULL);
}

static bool place_target(struct trace_script *self, struct target *target, const char *breakpoints, GError **error)
{
	struct trace_options options = {.breakpoints = breakpoints};

	g_strfreev(target->fields);
	target->fields = script_fields(self->script, (const char *const *)target->written->pdata, target->name);
	options.paths = target->fields;
	if (!trace_source_add(self->source, target->name, &options, error))
		return false;
	set_probe(target, trace_source_probe(self->source, trace_source_count(self->source) - 1));
	return true;
}

/*
 * Those of patterns that can be patches, where the others may need all breakpoints of the processor; not those of
 * programs, which all processes would share.
 */
static void patch_targets(struct trace_script *self)
{
	for (guint i = 0; i < self->targets->len; i++) {
		struct target *target = g_ptr_array_index(self->targets, i);

		if (target->is_of_pattern && !probe_name_is_of_program(target->name))
			place_target(self, target, TRACE_PATCH, NULL);
	}
}

/* Those of a pattern that cannot be probed are left out, as long as one is left. */
static bool place_targets(struct trace_script *self, const char *breakpoints, GError **error)
{
	unsigned left_out = 0;
	g_autofree char *why = NULL;

	if (!breakpoints && self->targets->len > TRACE_PROBES_SURE)
		patch_targets(self);
	for (guint i = 0; i < self->targets->len; i++) {
		struct target *target = g_ptr_array_index(self->targets, i);
		g_autoptr(GError) failure = NULL;

		if (target->probe || place_target(self, target, breakpoints, &failure))
			continue;
		if (!target->is_of_pattern) {
			g_propagate_error(error, g_steal_pointer(&failure));
			return false;
		}
		if (left_out++ == 0)
			why = g_strdup(failure->message);
	}
	for (guint i = self->targets->len; i-- > 0;)
		if (!((const struct target *)g_ptr_array_index(self->targets, i))->probe)
			g_ptr_array_remove_index(self->targets, i);
	if (self->targets->len == 0) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "%s", why);
		return false;
	}
	if (left_out > 0)
		say("%u probes are left out; the first: %s", left_out, why);
	return true;
}

/* ---- their programs ---- */

static bool compile(struct trace_script *self, GError **error)
{
	g_autofree struct script_probe *probes = g_new0(struct script_probe, self->targets->len);

	for (guint i = 0; i < self->targets->len; i++) {
		const struct target *target = g_ptr_array_index(self->targets, i);

		probes[i] = (struct script_probe){
			.written = (const char *const *)target->written->pdata,
			.name = target->name,
			.arguments = (const char *const *)target->probe->fields,
			.types = (const char *const *)target->probe->types,
			.fields = (const char *const *)target->known->pdata,
		};
		for (size_t j = 0; j < target->probe->n_paths; j++)
			probes[i].texts |= (uint32_t)target->probe->paths[j].is_text << j;
	}
	return script_compile(self->script, probes, self->targets->len, error);
}

static bool ask(struct trace_script *self, const char *method, json_t *arguments, GError **error)
{
	json_t *answer = trace_source_ask(self->source, method, arguments, error);

	json_decref(answer);
	return answer != NULL;
}

static bool add_maps(struct trace_script *self, uint64_t map_keys, GError **error)
{
	for (size_t i = 0; i < script_map_count(self->script); i++) {
		const struct script_map *map = script_map(self->script, i);
		unsigned key_words = 0;

		for (unsigned j = 0; j < map->n_keys; j++)
			key_words += script_type_words(map->keys[j]);
		json_t *arguments = json_pack("{s:s, s:i, s:I, s:I, s:I}", "kind", script_map_kinds[map->kind],
		                              "key-words", (int)key_words, "low", (json_int_t)map->low, "high",
		                              (json_int_t)map->high, "range", (json_int_t)map->range);

		if (map_keys > 0)
			json_object_set_new(arguments, "entries", json_integer((json_int_t)map_keys));
		if (!ask(self, "probe-map-add", arguments, error))
			return false;
	}
	return true;
}

static bool add_programs(struct trace_script *self, GError **error)
{
	for (guint i = 0; i < self->targets->len; i++) {
		const struct target *target = g_ptr_array_index(self->targets, i);
		size_t n;
		const struct vprof_instruction *program = script_program(self->script, i, &n);
		g_autofree struct vprof_instruction *sent = g_memdup2(program, n * sizeof(*program));

		for (size_t j = 0; j < n; j++) {
			sent[j].dst = GUINT16_TO_LE(program[j].dst);
			sent[j].a = GUINT16_TO_LE(program[j].a);
			sent[j].b = GUINT16_TO_LE(program[j].b);
			sent[j].constant = GINT64_TO_LE(program[j].constant);
		}
		g_autofree char *text = hex_encode(sent, n * sizeof(*sent));

		if (!ask(self, "probe-program",
		         json_pack("{s:I, s:s}", "id", (json_int_t)target->probe->id, "program", text), error))
			return false;
	}
	return true;
}

bool trace_script_add(struct trace_script *script, struct trace_source *source, const char *breakpoints,
                      uint64_t map_keys, GError **error)
{
	script->source = source;
	return find_targets(script, error) && place_targets(script, breakpoints, error) && compile(script, error) &&
	       add_maps(script, map_keys, error) && add_programs(script, error);
}

bool trace_script_attach(struct trace_script *script, struct trace_source *source, uint64_t map_keys, GError **error)
{
	script->source = source;
	for (size_t i = 0; i < trace_source_count(source); i++) {
		const struct trace_probe *probe = trace_source_probe(source, i);

		add_target(script, probe->name, probe->name, false);
		set_probe(g_ptr_array_index(script->targets, i), probe);
	}
	return compile(script, error) && add_maps(script, map_keys, error) && add_programs(script, error);
}

/* ---- maps ---- */

size_t trace_script_map(const struct trace_script *script, const char *name)
{
	size_t i = 0;

	while (strcmp(script_map(script->script, i)->name, name) != 0)
		i++;
	return i;
}

static struct trace_meaning meaning_of(const struct trace_script *self)
{
	return (struct trace_meaning){self->script, trace_source_names(self->source)};
}

struct trace_map *trace_script_read(struct trace_script *self, size_t number, GError **error)
{
	const struct trace_meaning meaning = meaning_of(self);
	struct trace_map *map = trace_map_new(&meaning, number);
	uint64_t from = 0;

	for (;;) {
		json_t *answer = trace_source_ask(
			self->source, "probe-map-read",
			json_pack("{s:I, s:I}", "map", (json_int_t)number, "from", (json_int_t)from), error);
		const uint64_t next = member_number(answer, "next", 0);
		const bool failed = !answer;

		trace_map_take(map, json_object_get(answer, "entries"));
		json_decref(answer);
		if (failed) {
			trace_map_free(map);
			return NULL;
		}
		if (next <= from)
			return map;
		from = next;
	}
}

static void print_json(json_t *object, FILE *out)
{
	json_write(object, JSON_COMPACT, out);
	fputc('\n', out);
	json_decref(object);
}

static bool print_map(struct trace_script *self, size_t number, uint64_t top, uint64_t div, bool json, FILE *out,
                      GError **error)
{
	struct trace_map *map = trace_script_read(self, number, error);

	if (!map)
		return false;
	if (json)
		print_json(trace_map_json(map, top, div), out);
	else
		trace_map_print(map, top, div, out);
	trace_map_free(map);
	return true;
}

/* ---- what programs send ---- */

/* The values of an event, of which the first is the number of the action. */
struct sent {
	const struct trace_event *event;
	const struct script_action *action;
	size_t at;  /* of the next value's first word */
	unsigned n; /* of the values taken */
};

/* Words that the event does not have are 0. */
static enum script_type take_value(struct sent *sent, uint64_t words[VPROF_PROGRAM_STACK_WORDS])
{
	const enum script_type type = sent->action->sent[sent->n++];

	for (unsigned i = 0; i < script_type_words(type); i++)
		words[i] = trace_event_value(sent->event, sent->at++);
	return type;
}

/* One conversion, which begins behind its "%"; the format has been checked. */
static const char *format_one(const struct trace_script *self, struct sent *sent, const char *at, GString *text)
{
	const struct trace_meaning meaning = meaning_of(self);
	const size_t flags = strcspn(at, "hljztdiuxXocsp%"), length = flags + strspn(at + flags, "hljzt");
	const char last = at[length];
	g_autofree char *head = g_strndup(at, flags), *format = NULL, *word = NULL;
	uint64_t words[VPROF_PROGRAM_STACK_WORDS];

	if (last == '%') {
		g_string_append_c(text, '%');
		return at + length + 1;
	}
	const enum script_type type = take_value(sent, words);
	if (last == 's') {
		word = trace_value_text(&meaning, type, words);
		format = g_strdup_printf("%%%ss", head);
		g_string_append_printf(text, format, word);
	} else if (last == 'c') {
		format = g_strdup_printf("%%%sc", head);
		g_string_append_printf(text, format, g_ascii_isprint((int)words[0]) ? (int)words[0] : '?');
	} else {
		format = g_strdup_printf("%%%s%s" G_GINT64_MODIFIER "%c", last == 'p' ? "#" : "", head,
		                         last == 'p' ? 'x' : last);
		g_string_append_printf(text, format, words[0]);
	}
	return at + length + 1;
}

static char *format_all(const struct trace_script *self, struct sent *sent)
{
	GString *text = g_string_new(NULL);

	for (const char *at = sent->action->format; *at != '\0';) {
		if (*at != '%')
			g_string_append_c(text, *at++);
		else
			at = format_one(self, sent, at + 1, text);
	}
	return g_string_free(text, FALSE);
}

static char *plain(const struct trace_script *self, struct sent *sent)
{
	const struct trace_meaning meaning = meaning_of(self);
	uint64_t words[VPROF_PROGRAM_STACK_WORDS];
	const enum script_type type = take_value(sent, words);
	g_autofree char *text = trace_value_text(&meaning, type, words);

	return g_strconcat(text, "\n", NULL);
}

static void print_text(const struct trace_script *self, struct sent *sent, bool json, FILE *out)
{
	g_autofree char *text = sent->action->kind == SCRIPT_PRINTF ? format_all(self, sent) : plain(self, sent);

	if (json)
		print_json(json_pack("{s:o}", "text", text_json(text)), out);
	else
		fputs(text, out);
}

bool trace_script_take(struct trace_script *script, const struct trace_event *event, bool json, FILE *out,
                       GError **error)
{
	const struct script_action *action = script_action(script->script, trace_event_value(event, 0));
	struct sent sent = {event, action, 1, 0};

	if (!action)
		return true;
	switch (action->kind) {
	case SCRIPT_PRINTF:
	case SCRIPT_PRINT:
		print_text(script, &sent, json, out);
		return true;
	case SCRIPT_PRINT_MAP:
		return print_map(script, action->map, action->top, action->div, json, out, error);
	case SCRIPT_CLEAR:
	case SCRIPT_ZERO:
		return ask(script, "probe-map-clear",
		           json_pack("{s:I, s:b}", "map", (json_int_t)action->map, "keep-keys",
		                     action->kind == SCRIPT_ZERO),
		           error);
	default: /* SCRIPT_EXIT */
		script->exited = true;
		return true;
	}
}

bool trace_script_exited(const struct trace_script *script)
{
	return script->exited;
}

bool trace_script_finish(struct trace_script *script, bool json, FILE *out, GError **error)
{
	for (size_t i = 0; i < script_map_count(script->script); i++) {
		if (!json && i == 0)
			fputc('\n', out);
		if (!print_map(script, i, 0, 0, json, out, error))
			return false;
	}
	return true;
}
