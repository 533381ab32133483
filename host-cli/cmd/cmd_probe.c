// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "lib/probe_name/probe_name.h"
#include "trace/probe_lines.h"
#include "trace/trace_program.h"
#include "trace/trace_source.h"
#include "ui/message.h"
#include "ui/text.h"

struct probe_values {
	char *engine, *symfs;
	gboolean json;
};

static const struct option_row options[] = {
	{"engine", OPTION_TEXT, offsetof(struct probe_values, engine),
         "engine, as in `vprof list` (default: the only one)", "ENGINE", "@engines"},
	{"symfs", OPTION_FILE, offsetof(struct probe_values, symfs),
         "folder with the guest's programs and libraries, for their functions", "FOLDER"},
	{"json", OPTION_FLAG, offsetof(struct probe_values, json), "print a JSON object", NULL},
	{NULL},
};

/* ---- list ---- */

static void print_providers(const json_t *providers)
{
	for (size_t i = 0; i < json_array_size(providers); i++) {
		const json_t *provider = json_array_get(providers, i);
		g_autofree char *syntax = text_printable(member_text(provider, "syntax"));
		g_autofree char *summary = text_printable(member_text(provider, "summary"));

		printf("%-50s %s\n", syntax, summary);
	}
}

/* Both lists have the same order. */
static void print_names(const json_t *names, const json_t *bare)
{
	size_t next = 0;

	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *text = json_string_value(json_array_get(names, i));
		g_autofree char *name = text_printable(text);
		const bool is_bare = g_strcmp0(text, json_string_value(json_array_get(bare, next))) == 0;

		printf("%s%s\n", name, is_bare ? " (without arguments)" : "");
		next += is_bare;
	}
}

/* A type for each, or none. */
static void print_arguments(const json_t *names, const json_t *types)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		g_autofree char *name = text_printable(json_string_value(json_array_get(names, i)));
		const char *text = json_string_value(json_array_get(types, i));
		g_autofree char *type = text ? text_printable(text) : NULL;

		if (type)
			printf("%-20s %s\n", name, type);
		else
			puts(name);
	}
}

/* Those of programs are in copies of them, all others in the engine. */
static json_t *list_names(const struct probe_values *given, struct client *client, const char *pattern, json_t *names,
                          json_t *bare, GError **error)
{
	const bool is_of_program = pattern && probe_name_is_of_program(pattern);
	json_t *providers = trace_list_probes(client, is_of_program ? NULL : pattern, names, bare, error);

	if (!providers || !is_of_program)
		return providers;
	struct user_symbols *copies = trace_program_copies(client, given->symfs);
	const bool done = trace_program_list(copies, pattern, names, error);

	user_symbols_free(copies);
	if (!done)
		json_decref(providers);
	return done ? providers : NULL;
}

static bool probe_list(const struct probe_values *given, struct client *client, const char *pattern, GError **error)
{
	json_t *names = json_array(), *bare = json_array();
	g_autofree char *full = pattern ? probe_name_full(pattern) : NULL;
	json_t *providers = list_names(given, client, full, names, bare, error);
	bool done = providers != NULL;

	if (done && given->json) {
		json_t *object = json_pack("{s:O, s:O, s:O}", "providers", providers, "probes", names,
		                           "without-arguments", bare);

		text_print_json(object, 0, stdout);
		json_decref(object);
	} else if (done && !pattern) {
		print_providers(providers);
	} else if (done) {
		print_names(names, bare);
	}
	json_decref(providers);
	json_decref(names);
	json_decref(bare);
	return done;
}

/* ---- args ---- */

/* Of a source line, that of its first place. New reference. */
static json_t *place_of(struct client *client, const char *probe, GError **error)
{
	json_t *places = json_array(), *place = NULL;

	if (!probe_name_line(probe))
		place = text_json(probe);
	else if (probe_lines_list(client, probe, places, error))
		place = json_incref(json_array_get(places, 0));
	json_decref(places);
	return place;
}

static json_t *ask_arguments(const struct probe_values *given, struct client *client, const char *probe, GError **error)
{
	json_t *place = place_of(client, probe, error);
	json_t *answer = place ? engine_ask(client, "probe-args", json_pack("{s:o}", "probe", place), error) : NULL;

	/* The engine knows how it is written. */
	if (!answer || !probe_name_is_note(probe))
		return answer;
	json_decref(answer);
	struct user_symbols *copies = trace_program_copies(client, given->symfs);
	answer = trace_program_arguments(copies, probe, error);
	user_symbols_free(copies);
	return answer;
}

static bool probe_args(const struct probe_values *given, struct client *client, const char *probe, GError **error)
{
	json_t *answer = ask_arguments(given, client, probe, error);
	const json_t *arguments = json_object_get(answer, "arguments");

	if (!answer)
		return false;
	if (given->json)
		text_print_json(answer, 0, stdout);
	else
		print_arguments(arguments, json_object_get(answer, "types"));
	json_decref(answer);
	return true;
}

static int probe_run(void *values, unsigned n, char **arguments)
{
	const struct probe_values *given = values;
	g_autoptr(GError) error = NULL;
	bool args = n == 2 && strcmp(arguments[0], "args") == 0;
	bool list = n >= 1 && strcmp(arguments[0], "list") == 0;
	struct client *client;
	bool done;

	if (!args && !list)
		return usage_error("probe", "expected list, list PATTERN or args PROBE");
	client = engine_find(given->engine, &error);
	done = client && (list ? probe_list(given, client, n == 2 ? arguments[1] : NULL, &error)
	                       : probe_args(given, client, arguments[1], &error));
	client_free(client);
	return done ? STATUS_OK : failure(error);
}

const struct command command_probe = {
	.name = "probe",
	.summary = "List what can be traced in a running guest",
	.arguments = "list [PATTERN] | args PROBE",
	.max_arguments = 2,
	.argument_words = {"list args", "@probes"},
	.manual = "vprof-probe",
	.description =

		"list without PATTERN prints the providers and the syntax of their probes. With PATTERN, it prints\n"
		"the exits, system calls, kernel functions, trace points and functions of programs with matching\n"
		"names; of a source line, function:FILE:LINE, its places. args prints the arguments of a probe's\n"
		"events, and the types that a trace point's have in the kernel, or the operands of a static probe of\n"
		"a program.\n"
		"\n"
		"Examples:\n"
		"  vprof probe list\n"
		"  vprof probe list 'function:vfs_*'\n"
		"  vprof probe list 'tracepoint:sched:*'\n"
		"  vprof probe list function:fs/open.c:1023\n"
		"  vprof probe list 'user:/usr/bin/bash:read*' --symfs image\n"
		"  vprof probe list 'usdt:/opt/app/server:*:*' --symfs image\n"
		"  vprof probe args tracepoint:sched:sched_switch",
	.options = options,
	.values_bytes = sizeof(struct probe_values),
	.run = probe_run,
};
