// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "engine/engine_find.h"
#include "ui/message.h"
#include "ui/text.h"

struct probe_values {
	char *engine;
	gboolean json;
};

static const struct option_row options[] = {
	{"engine", 'E', OPTION_TEXT, offsetof(struct probe_values, engine),
         "engine, as in `vprof list` (default: the only one)", "ENGINE"},
	{"json", 'j', OPTION_FLAG, offsetof(struct probe_values, json), "print a JSON object", NULL},
	{NULL},
};

/* ---- list ---- */

/*
 * Adds all matching probes to *names, from as many answers as needed. Returns the providers of the last answer, or
 * NULL.
 */
static json_t *list_all(struct client *client, const char *pattern, json_t *names, GError **error)
{
	uint64_t from = 0;

	for (;;) {
		json_t *arguments = json_pack("{s:I}", "from", (json_int_t)from), *answer, *providers;
		bool more;

		if (pattern)
			json_object_set_new(arguments, "match", text_json(pattern));
		answer = engine_ask(client, "probe-list", arguments, error);
		if (!answer)
			return NULL;
		json_array_extend(names, json_object_get(answer, "probes"));
		more = member_number(answer, "next", 0) > from;
		from = member_number(answer, "next", 0);
		providers = json_incref(json_object_get(answer, "providers"));
		json_decref(answer);
		if (!more)
			return providers;
		json_decref(providers);
	}
}

static void print_providers(const json_t *providers)
{
	for (size_t i = 0; i < json_array_size(providers); i++) {
		const json_t *provider = json_array_get(providers, i);
		g_autofree char *syntax = text_printable(member_text(provider, "syntax"));
		g_autofree char *summary = text_printable(member_text(provider, "summary"));

		printf("%-50s %s\n", syntax, summary);
	}
}

static void print_names(const json_t *names)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		g_autofree char *name = text_printable(json_string_value(json_array_get(names, i)));

		puts(name);
	}
}

static bool probe_list(const struct probe_values *given, struct client *client, const char *pattern, GError **error)
{
	json_t *names = json_array(), *providers = list_all(client, pattern, names, error);
	bool done = providers != NULL;

	if (done && given->json) {
		json_t *object = json_pack("{s:O, s:O}", "providers", providers, "probes", names);

		text_print_json(object, 0, stdout);
		json_decref(object);
	} else if (done && !pattern) {
		print_providers(providers);
	} else if (done) {
		print_names(names);
	}
	json_decref(providers);
	json_decref(names);
	return done;
}

/* ---- args ---- */

static bool probe_args(const struct probe_values *given, struct client *client, const char *probe, GError **error)
{
	json_t *answer = engine_ask(client, "probe-args", json_pack("{s:o}", "probe", text_json(probe)), error);
	const json_t *arguments = json_object_get(answer, "arguments");

	if (!answer)
		return false;
	if (given->json)
		text_print_json(answer, 0, stdout);
	else
		print_names(arguments);
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
	.manual = "vprof-probe",
	.description =

		"list without PATTERN prints the providers and the syntax of their probes. With PATTERN, it prints\n"
		"the exits, system calls and kernel functions with matching names. args prints the arguments of a\n"
		"probe's events.\n"
		"\n"
		"Examples:\n"
		"  vprof probe list\n"
		"  vprof probe list 'function:vfs_*'\n"
		"  vprof probe args syscall:openat",
	.options = options,
	.values_bytes = sizeof(struct probe_values),
	.run = probe_run,
};
