// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/command.h"

#include <string.h>

#include "ui/message.h"
#include "ui/text.h"

#define SLIPS_MAX 2u

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static const struct command *command_find_near(const char *name)
{
	const struct command *best = NULL;
	unsigned best_slips = SLIPS_MAX + 1;

	for (size_t i = 0; commands[i]; i++) {
		unsigned slips = slips_between(name, commands[i]->name);

		/* With as many slips as letters, any short word would match. */
		if (slips < best_slips && slips < strlen(name)) {
			best = commands[i];
			best_slips = slips;
		}
	}
	return best;
}

int command_unknown(const char *name)
{
	const struct command *near = command_find_near(name);

	if (near)
		say("there is no command \"%s\"; did you mean `vprof %s`?", name, near->name);
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

static GOptionContext *command_context(const struct command *command, void *values)
{
	GOptionContext *context = g_option_context_new(command->arguments);
	g_autofree char *title = g_strdup_printf("vprof %s", command->name);
	g_autofree char *summary = g_strdup_printf("%s.", command->summary);
	g_autofree char *description = g_strdup_printf("%s\n\nManual: man %s", command->description, command->manual);

	g_set_prgname(title);
	g_option_context_set_summary(context, summary);
	g_option_context_set_description(context, description);
	option_rows_add(command->options, values, context);
	return context;
}

char *command_help_text(const struct command *command)
{
	void *values = values_new(command);
	g_autoptr(GOptionContext) context = command_context(command, values);
	char *text = g_option_context_get_help(context, TRUE, NULL);

	values_free(command, values);
	return text;
}

static int execute(const struct command *command, void *values, int argc, char **argv)
{
	g_autoptr(GOptionContext) context = command_context(command, values);
	g_autoptr(GError) error = NULL;
	int usage_status = command->usage_status != 0 ? command->usage_status : STATUS_USAGE;

	if (!g_option_context_parse(context, &argc, &argv, &error)) {
		usage_error(command->name, "%s", error->message);
		return usage_status;
	}
	/* GOption leaves a "--" that is followed by something looking like an option. */
	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if ((unsigned)argc - 1 > command->max_arguments) {
		usage_error(command->name, "unexpected argument \"%s\"", argv[1 + command->max_arguments]);
		return usage_status;
	}
	return command->run(values, (unsigned)argc - 1, argv + 1);
}

int command_execute(const struct command *command, int argc, char **argv)
{
	void *values = values_new(command);
	int status = execute(command, values, argc, argv);

	values_free(command, values);
	return status;
}
