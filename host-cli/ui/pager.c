// SPDX-License-Identifier: BSD-2-Clause
#include "ui/pager.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/message.h"
#include "ui/text.h"

static pid_t pager; /* 0: none */

/* NULL: none. */
static const char *pager_command(void)
{
	const char *terminal = g_getenv("TERM");
	const char *command = g_getenv("VPROF_PAGER");
	g_autofree char *less = NULL;

	if (!isatty(STDOUT_FILENO) || !terminal || strcmp(terminal, "dumb") == 0)
		return NULL;
	if (!command)
		command = g_getenv("PAGER");
	if (!command) {
		less = g_find_program_in_path("less");
		command = less ? "less" : "";
	}
	return command[0] == '\0' || strcmp(command, "cat") == 0 ? NULL : command;
}

void pager_begin(void)
{
	const char *command = pager_command();
	g_auto(GStrv) environment = g_get_environ();
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
	g_autoptr(GError) error = NULL;
	int input;

	if (!command)
		return;
	environment = g_environ_setenv(environment, "LESS", "FRX", FALSE);
	fflush(stdout);
	if (!g_spawn_async_with_pipes(NULL, argv, environment, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL,
	                              NULL, &pager, &input, NULL, NULL, &error)) {
		warn("cannot start the pager %s: %s", command, error->message);
		return;
	}
	dup2(input, STDOUT_FILENO);
	text_set_paged();
	close(input);
	/* Ctrl-C is the pager's; when that ends, a write of ours does. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

void pager_end(void)
{
	while (pager != 0 && waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
