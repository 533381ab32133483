// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "ui/message.h"

static void overview_print(void)
{
	puts("usage: vprof COMMAND [OPTION...]\n"
	     "\n"
	     "Profiles a guest from its hypervisor: its own virtual machine, or one that\n"
	     "another VMM runs. Nothing has to be installed in the guest.\n"
	     "\n"
	     "Commands:");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
	puts("\n"
	     "Start here:\n"
	     "  vprof doctor                        show what this host can do\n"
	     "  vprof run --demo                    profile the built-in guest\n"
	     "  vprof run --kernel vmlinuz --initrd initrd.img\n"
	     "  vprof help run                      show the options of `vprof run`\n"
	     "\n"
	     "Manual: man vprof");
}

static int help_run(void *values, unsigned n, char **arguments)
{
	g_autofree char *text = NULL;
	const struct command *command;

	(void)values;
	if (n == 0) {
		overview_print();
		return STATUS_OK;
	}
	command = command_find(arguments[0]);
	if (!command)
		return command_unknown(arguments[0]);
	text = command_help_text(command);
	fputs(text, stdout);
	return STATUS_OK;
}

const struct command command_help = {
	.name = "help",
	.summary = "Show an overview, or explain one command",
	.arguments = "[COMMAND]",
	.max_arguments = 1,
	.argument_words = {"@commands"},
	.pages = true,
	.manual = "vprof",
	.description = "Examples:\n"
		       "  vprof help\n"
		       "  vprof help run",
	.run = help_run,
};
