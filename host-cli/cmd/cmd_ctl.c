// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "cmd/command.h"
#include "ctl_methods.h"
#include "engine/ctl_input.h"
#include "engine/ctl_request.h"
#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "ui/message.h"
#include "ui/text.h"

#define ARGUMENTS_MAX 66 /* an engine, a method, and more arguments than any method has */
#define NO_TIMEOUT_MS 3600000u

struct ctl_values {
	gboolean compact, events;
};

static const struct option_row options[] = {
	{"compact", OPTION_FLAG, offsetof(struct ctl_values, compact), "print each answer on one line", NULL},
	{"events", OPTION_FLAG, offsetof(struct ctl_values, events),
         "print events as they arrive, one per line, until the engine ends", NULL},
	{NULL},
};

/* A conversation with one engine. */
struct talk {
	const struct ctl_values *given;
	struct client *client;
	json_t *schema;
	bool asked_control; /* took the control role, or tried */
	bool warned_of_quit;
};

static bool is_method(const char *name)
{
	for (size_t i = 0; ctl_methods[i].name; i++)
		if (strcmp(ctl_methods[i].name, name) == 0)
			return true;
	return false;
}

/* Prints the class of the error as well, for programs that call this command. */
static int ctl_failure(const GError *error)
{
	bool misused = g_error_matches(error, CTL_ERROR, CTL_ERROR_WORDS) ||
	               client_refused(error, VPROF_ERROR_INVALID_ARGUMENT);

	say("%s", error->message);
	return misused ? STATUS_USAGE : STATUS_FAILED;
}

static void print_json(const struct ctl_values *given, const json_t *value)
{
	json_write(value, given->compact ? JSON_COMPACT : JSON_INDENT(2), stdout);
	putchar('\n');
	fflush(stdout);
}

static json_t *execute(struct talk *talk, const char *method, json_t *arguments, GError **error)
{
	unsigned patience_ms = ENGINE_ANSWER_TIMEOUT_MS + (unsigned)member_number(arguments, "timeout-ms", 0);

	return client_execute(talk->client, method, arguments, NULL, NULL, patience_ms, error);
}

static bool talk_open(struct talk *talk, const char *engine, GError **error)
{
	talk->client = engine_find(engine, error);
	if (!talk->client)
		return false;
	talk->schema = json_printable(execute(talk, "query-schema", NULL, error));
	ctl_schema_complete(talk->schema);
	return talk->schema != NULL;
}

static void talk_close(struct talk *talk)
{
	client_free(talk->client);
	json_decref(talk->schema);
}

/* Takes the control role for methods that need it. If another client has it, the method's own error says so. */
static void take_control(struct talk *talk, const char *method)
{
	if (talk->asked_control || !ctl_needs_control(ctl_method(talk->schema, method)))
		return;
	talk->asked_control = true;
	json_decref(execute(talk, "control-take", NULL, NULL));
}

/* Returns false. */
static bool refuse_method(const json_t *schema, const char *name, GError **error)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new();
	const json_t *method;
	const char *near;
	size_t i;

	json_array_foreach(json_object_get(schema, "methods"), i, method)
		g_ptr_array_add(names, (char *)member_text(method, "name"));
	near = word_near(name, (const char *const *)names->pdata, names->len);
	g_set_error(error, CTL_ERROR, CTL_ERROR_WORDS,
	            VPROF_ERROR_COMMAND_NOT_FOUND ": there is no method \"%s\"%s%s%s", name,
	            near ? "; did you mean " : "; `help` lists them", near ? near : "", near ? "?" : "");
	return false;
}

/* words[0] is the method. */
static bool talk_do(struct talk *talk, char *const *words, GError **error)
{
	json_t *arguments, *answer;

	if (!ctl_method(talk->schema, words[0]))
		return refuse_method(talk->schema, words[0], error);
	arguments = ctl_arguments(ctl_method(talk->schema, words[0]), words + 1, error);
	if (!arguments)
		return false;
	take_control(talk, words[0]);
	answer = execute(talk, words[0], arguments, error);
	if (answer)
		print_json(talk->given, answer);
	json_decref(answer);
	return answer != NULL;
}

static bool print_events(struct talk *talk, unsigned timeout_ms, GError **error)
{
	json_t *event;

	while ((event = client_next_event(talk->client, timeout_ms, error))) {
		json_write(event, JSON_COMPACT, stdout);
		putchar('\n');
		fflush(stdout);
		json_decref(event);
	}
	return !*error;
}

/* Runs until the engine closes the connection, which is no error. */
static int talk_listen(struct talk *talk)
{
	g_autoptr(GError) error = NULL;

	while (print_events(talk, NO_TIMEOUT_MS, &error))
		;
	return g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED) ? STATUS_OK : ctl_failure(error);
}

/* ---- interactive ---- */

static char **complete(const char *line, const char *word, void *data)
{
	return ctl_completions(data, line, word);
}

static void help_method(const json_t *method)
{
	const json_t *argument;
	size_t i;

	printf("%s (%s): %s\n", member_text(method, "name"), member_text(method, "role"),
	       member_text(method, "summary"));
	json_array_foreach(json_object_get(method, "arguments"), i, argument)
		printf("  %s%s: %s\n", member_text(argument, "name"),
		       json_is_true(json_object_get(argument, "optional")) ? "" : " (needed)",
		       member_text(argument, "summary"));
}

static void help(const json_t *schema, const char *name)
{
	const json_t *method = name ? ctl_method(schema, name) : NULL;
	size_t i;

	if (method) {
		help_method(method);
		return;
	}
	json_array_foreach(json_object_get(schema, "methods"), i, method)
		printf("  %-20s %s\n", member_text(method, "name"), member_text(method, "summary"));
	puts("\nMETHOD [KEY=VALUE...] executes one, \"help METHOD\" explains it, \"exit\" leaves.");
}

/* Users who type "quit" mostly want to leave vprof ctl, not to end the guest. */
static bool means_quit(struct talk *talk, const char *word)
{
	if (strcmp(word, "quit") != 0 || talk->warned_of_quit || !isatty(STDIN_FILENO))
		return true;
	talk->warned_of_quit = true;
	say("quit ends the guest and its engine; repeat it to confirm, or type \"exit\" to leave both running");
	return false;
}

/* False at the end of the conversation; *error is set unless the user typed "exit". */
static bool talk_line(struct talk *talk, const char *line, GError **error)
{
	g_autoptr(GError) why = NULL;
	g_auto(GStrv) words = NULL;

	if (!g_shell_parse_argv(line, NULL, &words, &why)) {
		if (!g_error_matches(why, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING))
			say("%s", why->message);
		return true;
	}
	if (strcmp(words[0], "exit") == 0)
		return false;
	if (strcmp(words[0], "help") == 0)
		help(talk->schema, words[1]);
	else if (means_quit(talk, words[0]) && !talk_do(talk, words, &why))
		say("%s", why->message);
	if (!g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
		return true;
	g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

static int talk_interactively(struct talk *talk)
{
	const json_t *guest = json_object_get(client_greeting(talk->client), "guest");
	g_autofree char *name = text_printable(member_text(guest, "name"));
	g_autofree char *prompt = g_strdup_printf("%s> ", name);
	g_autoptr(GError) error = NULL;
	char *line;
	bool more = true;

	ctl_input_init(complete, talk->schema);
	while (more && print_events(talk, 0, &error) && (line = ctl_input_line(prompt))) {
		more = talk_line(talk, line, &error);
		g_free(line);
	}
	return !error ? STATUS_OK : ctl_failure(error);
}

/* What names no engine may be a method with a slip. */
static void suggest_method(const char *name, GError **error)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new();
	const char *near;

	for (size_t i = 0; ctl_methods[i].name; i++)
		g_ptr_array_add(names, (char *)ctl_methods[i].name);
	near = name && g_error_matches(*error, ENGINE_FIND_ERROR, ENGINE_FIND_ERROR_NONE)
	               ? word_near(name, (const char *const *)names->pdata, names->len)
	               : NULL;
	if (near) {
		g_autofree char *message =
			g_strdup_printf("there is no engine or method \"%s\"; did you mean %s?", name, near);

		g_clear_error(error);
		g_set_error_literal(error, CTL_ERROR, CTL_ERROR_WORDS, message);
	}
}

/*
 * [ENGINE] [METHOD [KEY=VALUE...]]. A first word that is the name of a method is a method; an engine of the same name
 * is given by its path.
 */
static int ctl_run(void *values, unsigned n, char **arguments)
{
	const struct ctl_values *given = values;
	bool has_engine = n > 0 && !is_method(arguments[0]);
	const char *engine = has_engine ? arguments[0] : NULL;
	char **words = arguments + has_engine;
	struct talk talk = {.given = given};
	g_autoptr(GError) error = NULL;
	int status;

	if (given->events && n > has_engine)
		return usage_error(command_ctl.name, "--events executes no method; omit \"%s\"", *words);
	if (!talk_open(&talk, engine, &error)) {
		suggest_method(engine, &error);
		status = ctl_failure(error);
	} else if (given->events)
		status = talk_listen(&talk);
	else if (n == has_engine)
		status = talk_interactively(&talk);
	else
		status = talk_do(&talk, words, &error) ? STATUS_OK : ctl_failure(error);
	talk_close(&talk);
	return status;
}

const struct command command_ctl = {
	.name = "ctl",
	.summary = "Send requests to the control socket of a running engine",
	.arguments = "[ENGINE] [METHOD [KEY=VALUE...]]",
	.max_arguments = ARGUMENTS_MAX,
	.argument_words = {"@engines @methods", "@methods"},
	.manual = "vprof-ctl",
	.description =

		"ENGINE is a name or process id from `vprof list`, or the path of a socket. It may be omitted if\n"
		"only one engine runs.\n"
		"Without METHOD, lines are read and executed; on a terminal, with history and completion. For\n"
		"methods and their arguments, see man 7 vprof-control, or type \"help\" there.\n"
		"\n"
		"Examples:\n"
		"  vprof ctl query-status\n"
		"  vprof ctl bzImage-1234 session-start events=cycles frequency-hz=500\n"
		"  vprof ctl --compact samples-read vcpu=1 timeout-ms=1000\n"
		"  vprof ctl 1234 --events\n"
		"  vprof ctl",
	.options = options,
	.values_bytes = sizeof(struct ctl_values),
	.run = ctl_run,
};
