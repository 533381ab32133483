// SPDX-License-Identifier: BSD-2-Clause
/* Input lines without editing. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/ctl_input.h"

void ctl_input_init(ctl_complete words, void *data)
{
	(void)words;
	(void)data;
}

char *ctl_input_line(const char *prompt)
{
	char *line = NULL, *copy;
	size_t room = 0;
	ssize_t n;

	if (isatty(STDIN_FILENO)) {
		fputs(prompt, stdout);
		fflush(stdout);
	}
	n = getline(&line, &room, stdin);
	if (n > 0 && line[n - 1] == '\n')
		line[n - 1] = '\0';
	copy = n >= 0 ? g_strdup(line) : NULL;
	free(line);
	return copy;
}
