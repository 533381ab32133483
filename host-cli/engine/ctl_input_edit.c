// SPDX-License-Identifier: BSD-2-Clause
/* Input by libedit, using only calls that readline has as well. */
#include <editline/readline.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/ctl_input.h"

static ctl_complete complete_words;
static void *complete_data;
static char **candidates; /* of the current word; libedit takes the strings one by one */

static char *next_candidate(const char *word, int state)
{
	static size_t at;

	(void)word;
	at = state == 0 ? 0 : at + 1;
	return candidates[at] ? strdup(candidates[at]) : NULL;
}

static char **complete(const char *word, int start, int end)
{
	char **matches;

	(void)start;
	(void)end;
	rl_attempted_completion_over = 1; /* no file names */
	rl_completion_append_character = '\0';
	candidates = complete_words(rl_line_buffer, word, complete_data);
	matches = rl_completion_matches(word, next_candidate);
	g_strfreev(candidates);
	candidates = NULL;
	return matches;
}

void ctl_input_init(ctl_complete words, void *data)
{
	complete_words = words;
	complete_data = data;
	rl_readline_name = (char *)"vprof";
	rl_attempted_completion_function = complete;
	using_history();
}

char *ctl_input_line(const char *prompt)
{
	char *line, *copy;

	if (!isatty(STDIN_FILENO)) /* libedit would echo the prompt and the input */
		prompt = "";
	line = readline(prompt);
	if (!line)
		return NULL;
	if (*line != '\0')
		add_history(line);
	copy = g_strdup(line);
	free(line);
	return copy;
}
