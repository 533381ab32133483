// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/completion.h"
#include "ui/message.h"

#define WORDS_MAX 1024u
#define PATIENCE_S 5u /* a libvirt or an engine that does not answer must not keep a shell */

/*
 * completion_scripts.S, from shells/. Each script passes the words up to the cursor to `vprof completion words`, and
 * gets lines "WORD\tEXPLANATION"; the line ":files" stands for names of files.
 */
extern const char completion_bash[], completion_zsh[], completion_fish[];

static int words_print(char *const *words, unsigned n)
{
	struct completion completion = {.lines = g_string_new(NULL)};

	alarm(PATIENCE_S);
	if (n > 0)
		completion_find(&completion, words, n);
	fputs(completion.lines->str, stdout);
	if (completion.files)
		puts(":files");
	g_string_free(completion.lines, TRUE);
	return STATUS_OK;
}

static int completion_run(void *values, unsigned n, char **arguments)
{
	static const struct {
		const char *shell, *script;
	} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	(void)values;
	if (n > 0 && strcmp(arguments[0], "words") == 0)
		return words_print(arguments + 1, n - 1);
	for (size_t i = 0; n == 1 && i < G_N_ELEMENTS(shells); i++)
		if (strcmp(arguments[0], shells[i].shell) == 0) {
			fputs(shells[i].script, stdout);
			return STATUS_OK;
		}
	return usage_error(command_completion.name, "which shell? bash, zsh and fish are supported");
}

const struct command command_completion = {
	.name = "completion",
	.summary = "Print the completion script of a shell",
	.arguments = "bash|zsh|fish|words -- [WORD...]",
	.max_arguments = WORDS_MAX,
	.argument_words = {"bash zsh fish", ""},
	.manual = "vprof",
	.description =
		"The script completes commands, options and their values: columns, formats, events, phases of the recording, running engines and guests, probes. It gets them from `vprof completion words`, which prints what may follow the words of a command line, the last one possibly incomplete.\n"
		"\n"
		"Examples:\n"
		"  source <(vprof completion bash)\n"
		"  vprof completion zsh > ~/.zfunc/_vprof\n"
		"  vprof completion fish > ~/.config/fish/completions/vprof.fish\n"
		"  vprof completion words -- report --sort=mode,s",
	.run = completion_run,
};
