// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/command.h"

#include <stdio.h>
#include <string.h>

#include "ui/message.h"
#include "ui/pager.h"
#include "ui/text.h"

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int command_unknown(const char *name)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new();
	const char *near;

	for (size_t i = 0; commands[i]; i++)
		g_ptr_array_add(names, (char *)commands[i]->name);
	near = word_near(name, (const char *const *)names->pdata, names->len);
	if (near)
		say("there is no command \"%s\"; did you mean `vprof %s`?", name, near);
	else
		say("there is no command \"%s\"; `vprof help` lists them", name);
	return STATUS_USAGE;
}

/* To be freed by values_free. */
static void *values_new(const struct command *command)
{
	return command->defaults ? g_memdup2(command->defaults, command->values_bytes)
	                         : g_malloc0(command->values_bytes);
}

static void values_free(const struct command *command, void *values)
{
	option_rows_clear(command->options, values);
	g_free(values);
}

/* Lines that begin with a blank are kept: examples and lists. */
static void description_print(GString *out, const char *description)
{
	g_auto(GStrv) lines = g_strsplit(description, "\n", -1);
	g_autoptr(GString) paragraph = g_string_new(NULL);

	for (char **line = lines;; line++) {
		if (*line && **line != '\0' && **line != ' ') {
			g_string_append_printf(paragraph, "%s ", *line);
			continue;
		}
		if (paragraph->len > 0) {
			text_wrap(out, paragraph->str, 0);
			g_string_append_c(out, '\n');
			g_string_truncate(paragraph, 0);
		}
		if (!*line)
			return;
		g_string_append_printf(out, "%s\n", *line);
	}
}

char *command_help_text(const struct command *command)
{
	GString *out = g_string_new(NULL);
	g_autofree char *options = option_rows_help(command->options);
	g_autofree char *summary = g_strdup_printf("%s.", command->summary);

	g_string_append_printf(out, "usage: vprof %s [OPTION...]%s%s\n\n", command->name,
	                       *command->arguments != '\0' ? " " : "", command->arguments);
	text_wrap(out, summary, 0);
	g_string_append_printf(out, "\n\n%s\n", options);
	description_print(out, command->description);
	g_string_append_printf(out, "\nManual: man %s\n", command->manual);
	return g_string_free(out, FALSE);
}

static int execute(const struct command *command, void *values, int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	int usage_status = command->usage_status != 0 ? command->usage_status : STATUS_USAGE;
	bool wants_help;
	int first;

	if (command->raw && !(argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)))
		return command->run(values, (unsigned)argc - 1, argv + 1);
	if (!option_rows_parse(command->options, values, argc, argv, &first, &wants_help, &error)) {
		usage_error(command->name, "%s", error->message);
		return usage_status;
	}
	if (wants_help) {
		g_autofree char *text = command_help_text(command);

		pager_begin();
		fputs(text, stdout);
		return STATUS_OK;
	}
	if ((unsigned)(argc - first) > command->max_arguments) {
		usage_error(command->name, "unexpected argument \"%s\"",
		            argv[(unsigned)first + command->max_arguments]);
		return usage_status;
	}
	if (command->pages && !(command->takes_screen && command->takes_screen(values)))
		pager_begin();
	return command->run(values, (unsigned)(argc - first), argv + first);
}

int command_execute(const struct command *command, int argc, char **argv)
{
	void *values = values_new(command);
	int status = execute(command, values, argc, argv);

	values_free(command, values);
	return status;
}
