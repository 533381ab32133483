// SPDX-License-Identifier: BSD-2-Clause
/* For the fingers of users of perf: `record` becomes `run` or `attach`, and says so. */
#include <string.h>

#include "cmd/command.h"
#include "ui/message.h"

/* Whether `command` takes these words, with any values: argv[1..argc-1]. *n: the arguments among them. */
static bool takes(const struct command *command, int argc, char **argv, unsigned *n)
{
	g_autofree char **copy = g_memdup2(argv, (gsize)(argc + 1) * sizeof(*argv));
	bool wants_help, taken;
	int first;

	taken = option_rows_parse(command->options, NULL, argc, copy, &first, &wants_help, NULL);
	*n = (unsigned)(argc - first);
	return taken && *n <= command->max_arguments;
}

static bool has_word(int argc, char **argv, const char *const *words)
{
	for (int i = 1; i < argc; i++)
		if (g_strv_contains(words, argv[i]))
			return true;
	return false;
}

/* The words behind "--" as one for --exec; NULL: there are none. *n_options: the words before. New string. */
static char *command_behind(int argc, char **argv, int *n_options)
{
	GString *command = NULL;

	*n_options = argc;
	for (int i = 1; i < argc; i++) {
		g_autofree char *quoted = g_shell_quote(argv[i]);
		const bool plain = argv[i][0] != '\0' && strspn(argv[i], G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS
		                                                "-_=+./:,%@") == strlen(argv[i]);

		if (command) {
			g_string_append_printf(command, "%s%s", command->len > 0 ? " " : "", plain ? argv[i] : quoted);
		} else if (strcmp(argv[i], "--") == 0) {
			command = g_string_new(NULL);
			*n_options = i;
		}
	}
	if (command && command->len > 0)
		return g_string_free(command, FALSE);
	if (command)
		g_string_free(command, TRUE);
	return NULL;
}

static void say_command(const GPtrArray *words)
{
	GString *line = g_string_new(NULL);

	for (guint i = 0; i < words->len; i++) {
		const char *word = g_ptr_array_index(words, i);
		g_autofree char *quoted = g_shell_quote(word);

		g_string_append_printf(line, " %s",
		                       strpbrk(word, " '\"\\$`*?;&|<>()") || *word == '\0' ? quoted : word);
	}
	say("record becomes: vprof%s", line->str);
	g_string_free(line, TRUE);
}

static int become(const struct command *command, int n_options, char **argv, const char *exec)
{
	g_autoptr(GPtrArray) words = g_ptr_array_new();

	g_ptr_array_add(words, (char *)command->name);
	if (exec) {
		g_ptr_array_add(words, (char *)"--exec");
		g_ptr_array_add(words, (char *)exec);
	}
	for (int i = 1; i < n_options; i++)
		g_ptr_array_add(words, argv[i]);
	say_command(words);
	g_ptr_array_add(words, NULL);
	return command_execute(command, (int)words->len - 1, (char **)words->pdata);
}

static int record_run(void *values, unsigned n, char **arguments)
{
	static const char *const attaching[] = {"--all", "-a", "--list", "-l", "--pid", "-p", NULL};
	char **argv = arguments - 1; /* as main has it: the command's name first */
	int argc = (int)n + 1, n_options;
	g_autofree char *exec = command_behind(argc, argv, &n_options);
	unsigned n_guests;

	(void)values;
	if (exec)
		return become(&command_run, n_options, argv, exec);
	if (takes(&command_attach, argc, argv, &n_guests) && (n_guests > 0 || has_word(argc, argv, attaching)))
		return become(&command_attach, argc, argv, NULL);
	return become(&command_run, argc, argv, NULL);
}

const struct command command_record = {
	.name = "record",
	.summary = "Another name for run and attach, as perf has it",
	.arguments = "[-- COMMAND [WORD...]] | [GUEST]",
	.raw = true,
	.manual = "vprof-run",
	.description =
		"With a guest's name, --pid or --all, record becomes `vprof attach`, else `vprof run`, with the same options; what follows -- becomes --exec. vprof prints what it has become. A command runs in a guest, which needs a kernel: --kernel, or the environment variable VPROF_KERNEL.\n"
		"\n"
		"Examples:\n"
		"  vprof record -g --kernel vmlinuz -- ./bench --fast\n"
		"  vprof record -F99 -g web01",
	.run = record_run,
};
