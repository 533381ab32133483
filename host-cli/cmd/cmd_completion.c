// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "ctl_methods.h"
#include "ui/message.h"

/* The options of one command as words: "--input -i --sort ...". */
static void bash_print_words(const struct command *command)
{
	g_autoptr(GArray) rows = option_rows_flatten(command->options);

	for (guint i = 0; i < rows->len; i++) {
		const struct option_row *option = &g_array_index(rows, struct option_row, i);

		printf(" --%s", option->name);
		if (option->letter != 0)
			printf(" -%c", option->letter);
	}
}

/* Whether recordings or folders are among the arguments. */
static bool takes_files(const struct command *command)
{
	static const char *const words[] = {"FILE", "NOW", "DIR"};

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		if (strstr(command->arguments, words[i]))
			return true;
	return false;
}

static void bash_print_command(const struct command *command)
{
	g_autoptr(GArray) rows = option_rows_flatten(command->options);

	printf("\t%s)\n\t\tcase $previous in\n", command->name);
	for (guint i = 0; i < rows->len; i++) {
		const struct option_row *option = &g_array_index(rows, struct option_row, i);

		if (option->type == OPTION_FLAG)
			continue;
		printf("\t\t--%s", option->name);
		if (option->letter != 0)
			printf(" | -%c", option->letter);
		if (option->type == OPTION_FILE)
			printf(") mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n");
		else
			printf(") return ;;\n");
	}
	printf("\t\tesac\n\t\twords=\"--help");
	bash_print_words(command);
	printf("\"%s\n\t\t;;\n", takes_files(command) ? " files=yes" : "");
}

static void commands_print_names(void)
{
	for (size_t i = 0; commands[i]; i++)
		printf("%s%s", i == 0 ? "" : " ", commands[i]->name);
}

static void methods_print_names(void)
{
	for (size_t i = 0; ctl_methods[i].name; i++)
		printf(" %s", ctl_methods[i].name);
}

/* A method is followed by its arguments, which end with "=". */
static void bash_print_methods(void)
{
	puts("\tif [[ ${COMP_WORDS[1]} == ctl ]]; then");
	printf("\t\twords+=\"");
	methods_print_names();
	puts("\"\n"
	     "\t\tfor previous in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
	     "\t\t\tcase $previous in");
	for (size_t i = 0; ctl_methods[i].name; i++)
		printf("\t\t\t%s) words=\"%s\" ;;\n", ctl_methods[i].name, ctl_methods[i].keys);
	puts("\t\t\tesac\n"
	     "\t\tdone\n"
	     "\t\t[[ $words == *= ]] && compopt -o nospace 2>/dev/null\n"
	     "\tfi");
}

static void bash_print(void)
{
	puts("# bash completion for vprof, printed by `vprof completion bash`\n"
	     "_vprof() {\n"
	     "\tlocal word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= files=\n"
	     "\tCOMPREPLY=()");
	printf("\tlocal commands=\"");
	commands_print_names();
	puts("\"\n"
	     "\tif ((COMP_CWORD == 1)); then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- \"$word\")\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase ${COMP_WORDS[1]} in");
	for (size_t i = 0; commands[i]; i++)
		bash_print_command(commands[i]);
	puts("\tesac");
	bash_print_methods();
	puts("\t[[ ${COMP_WORDS[1]} == help ]] && words=$commands\n"
	     "\t[[ ${COMP_WORDS[1]} == completion ]] && words=\"bash zsh\"\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; [[ -z $files ]] || compgen -f -- \"$word\")\n"
	     "}\n"
	     "complete -o filenames -F _vprof vprof");
}

/* For the double-quoted specifications of _arguments and _values. */
static void zsh_print_escaped(const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("[]:\\\"`$", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void zsh_print_option(const struct option_row *option)
{
	bool repeats = option->type == OPTION_TEXTS;

	printf(" \\\n\t\t\t");
	if (option->letter != 0 && !repeats)
		printf("\"(-%c --%s)\"", option->letter, option->name);
	if (option->letter != 0)
		printf("%s{-%c,--%s}", repeats ? "\\*" : "", option->letter, option->name);
	else
		printf("%s--%s", repeats ? "\\*" : "", option->name);
	printf("\"[");
	zsh_print_escaped(option->help);
	putchar(']');
	if (option->type != OPTION_FLAG) {
		putchar(':');
		zsh_print_escaped(option->argument);
		printf(":%s", option->type == OPTION_FILE ? "_files" : "");
	}
	putchar('"');
}

static void zsh_print_command(const struct command *command)
{
	g_autoptr(GArray) rows = option_rows_flatten(command->options);

	printf("\t%s)\n\t\t_arguments \"--help[explain the command]\"", command->name);
	for (guint i = 0; i < rows->len; i++)
		zsh_print_option(&g_array_index(rows, struct option_row, i));
	if (command == &command_help)
		printf(" \\\n\t\t\t\":command:($commands)\"");
	if (takes_files(command))
		printf(" \\\n\t\t\t\"*:file:_files\"");
	if (command == &command_ctl) {
		printf(" \\\n\t\t\t\"*:method:(");
		methods_print_names();
		printf(")\"");
	}
	if (command == &command_completion)
		printf(" \\\n\t\t\t\":shell:(bash zsh)\"");
	printf("\n\t\t;;\n");
}

static void zsh_print(void)
{
	puts("#compdef vprof\n"
	     "# zsh completion for vprof, printed by `vprof completion zsh`");
	printf("local -a commands=(");
	commands_print_names();
	puts(")\n"
	     "if ((CURRENT == 2)); then\n"
	     "\tlocal -a described=(");
	for (size_t i = 0; commands[i]; i++) {
		printf("\t\t\"%s:", commands[i]->name);
		zsh_print_escaped(commands[i]->summary);
		puts("\"");
	}
	puts("\t)\n"
	     "\t_describe command described\n"
	     "\treturn\n"
	     "fi\n"
	     "shift words\n"
	     "((CURRENT--))\n"
	     "case $words[1] in");
	for (size_t i = 0; commands[i]; i++)
		zsh_print_command(commands[i]);
	puts("esac");
}

static int completion_run(void *values, unsigned n, char **arguments)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} shells[] = {{"bash", bash_print}, {"zsh", zsh_print}};

	(void)values;
	for (size_t i = 0; n == 1 && i < G_N_ELEMENTS(shells); i++)
		if (strcmp(arguments[0], shells[i].shell) == 0) {
			shells[i].print();
			return STATUS_OK;
		}
	return usage_error(command_completion.name, "which shell? bash and zsh are supported");
}

const struct command command_completion = {
	.name = "completion",
	.summary = "Print the completion script of a shell",
	.arguments = "bash|zsh",
	.max_arguments = 1,
	.manual = "vprof",
	.description = "Examples:\n"
		       "  source <(vprof completion bash)\n"
		       "  vprof completion zsh > ~/.zfunc/_vprof",
	.run = completion_run,
};
