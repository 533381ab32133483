// SPDX-License-Identifier: BSD-2-Clause
/* The values that completion offers, and where they come from. What cannot be found out is left out without a word. */
#include <string.h>

#include "cmd/command.h"
#include "cmd/completion.h"
#include "ctl_methods.h"
#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "engine/guest_list.h"
#include "export/export.h"
#include "lib/probe_name/probe_name.h"
#include "lib/process/program_find.h"
#include "lib/profile/column.h"
#include "reading/phases.h"
#include "trace/probe_lines.h"
#include "ui/text.h"

/* A word to be completed. */
struct spot {
	struct completion *completion;
	const char *before, *typed;
	const char *recording;
};

static void add(const struct spot *spot, const char *word, const char *explanation)
{
	completion_add(spot->completion, spot->before, word, spot->typed, explanation);
}

void completion_add(struct completion *completion, const char *before, const char *word, const char *typed,
                    const char *explanation)
{
	g_autofree char *printable = text_printable(word);
	g_autofree char *said = text_printable(explanation);

	if (word && g_str_has_prefix(word, typed) && strcmp(word, printable) == 0)
		g_string_append_printf(completion->lines, "%s%s\t%s\n", before, word, said);
}

static void commands_add(const struct spot *spot)
{
	for (size_t i = 0; commands[i]; i++)
		add(spot, commands[i]->name, commands[i]->summary);
}

static void methods_add(const struct spot *spot)
{
	for (size_t i = 0; ctl_methods[i].name; i++)
		add(spot, ctl_methods[i].name, NULL);
}

static void formats_add(const struct spot *spot)
{
	for (size_t i = 0; exporters[i]; i++)
		add(spot, exporters[i]->name, exporters[i]->summary);
}

static void columns_add(const struct spot *spot)
{
	for (size_t i = 0; i < n_columns; i++)
		add(spot, columns[i].name, columns[i].header);
}

static void events_add(const struct spot *spot)
{
	g_autofree char *engine = program_find("vprof-vmm", NULL);
	g_autofree char *text = NULL;
	char *argv[] = {engine, (char *)"--list-events", NULL};
	json_t *events, *event;
	size_t i;

	if (!engine || !g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &text, NULL, NULL, NULL))
		return;
	events = json_loads(text, 0, NULL);
	json_array_foreach(events, i, event)
		add(spot, member_text(event, "name"), member_text(event, "summary"));
	json_decref(events);
}

static void phases_add(const struct spot *spot, const struct input *input)
{
	g_autoptr(GPtrArray) phases = phases_all(input->description);

	for (guint i = 0; i < phases->len; i++) {
		const struct phase_named *phase = g_ptr_array_index(phases, i);

		add(spot, phase->name, NULL);
	}
}

static void recorded_events_add(const struct spot *spot, const struct input *input)
{
	for (unsigned i = 0; i < recording_n_events(input->recording); i++)
		add(spot, recording_event(input->recording, i)->name, NULL);
}

static void of_recording_add(const struct spot *spot, void (*of)(const struct spot *, const struct input *))
{
	struct input *input = input_open(spot->recording, NULL, false, NULL);

	if (input)
		of(spot, input);
	input_free(input);
}

static void engines_add(const struct spot *spot)
{
	g_autoptr(GArray) sockets = client_list_sockets(NULL);

	for (guint i = 0; sockets && i < sockets->len; i++) {
		const struct client_socket *socket = &g_array_index(sockets, struct client_socket, i);
		g_autofree char *name = engine_name(socket->path);

		if (socket->live)
			add(spot, name, "engine");
	}
}

static void guests_add(const struct spot *spot)
{
	json_t *guests = guest_list(&(struct attach_engine_options){0}, NULL, NULL), *guest;
	size_t i;

	json_array_foreach(guests, i, guest)
		add(spot, member_text(guest, "name"), member_text(guest, "vmm"));
	json_decref(guests);
}

/* Of the only engine. */
static void probes_add(const struct spot *spot)
{
	struct client *client = engine_find(NULL, NULL);
	g_autofree char *pattern = g_strdup_printf("%s*", spot->typed);
	json_t *lines = json_array(), *answer, *probe, *provider;
	size_t i;

	if (client && probe_name_line(pattern))
		probe_lines_list(client, pattern, lines, NULL);
	json_array_foreach(lines, i, probe)
		add(spot, json_string_value(probe), NULL);
	json_decref(lines);
	if (!client)
		return;
	answer = engine_ask(client, "probe-list", json_pack("{s:o}", "match", text_json(pattern)), NULL);
	json_array_foreach(json_object_get(answer, "probes"), i, probe)
		add(spot, json_string_value(probe), NULL);
	json_array_foreach(json_object_get(answer, "providers"), i, provider)
		add(spot, member_text(provider, "name"), member_text(provider, "summary"));
	json_decref(answer);
	client_free(client);
}

static void kind_add(const struct spot *spot, const char *kind)
{
	static const struct {
		const char *kind;
		void (*add)(const struct spot *spot);
	} kinds[] = {
		{"@columns", columns_add}, {"@commands", commands_add}, {"@engines", engines_add},
		{"@events", events_add},   {"@formats", formats_add},   {"@guests", guests_add},
		{"@methods", methods_add}, {"@probes", probes_add},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (strcmp(kinds[i].kind, kind) == 0)
			kinds[i].add(spot);
	if (strcmp(kind, "@files") == 0)
		spot->completion->files = true;
	else if (strcmp(kind, "@phases") == 0)
		of_recording_add(spot, phases_add);
	else if (strcmp(kind, "@recorded-events") == 0)
		of_recording_add(spot, recorded_events_add);
}

void completion_words(struct completion *completion, const char *words, const char *before, const char *typed,
                      const char *recording)
{
	const struct spot spot = {completion, before, typed, recording};
	g_auto(GStrv) each = g_strsplit(words, " ", -1);

	for (char **word = each; *word; word++) {
		if (**word == '@')
			kind_add(&spot, *word);
		else if (**word != '\0')
			add(&spot, *word, NULL);
	}
}
