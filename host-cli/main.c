// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "ui/message.h"
#include "ui/output_file.h"
#include "ui/pager.h"

const struct command *const commands[] = {
	&command_run,     &command_attach,   &command_record,
	&command_report,  &command_annotate, &command_script,
	&command_diff,    &command_gate,     &command_history,
	&command_export,  &command_push,     &command_daemon,
	&command_top,     &command_stat,     &command_ps,
	&command_stack,   &command_list,     &command_mpstat,
	&command_counter, &command_probe,    &command_trace,
	&command_ctl,     &command_doctor,   &command_completion,
	&command_help,    &command_version,  NULL,
};

/* Options that replace the subcommand. */
static const char *command_of_flag(const char *word)
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return command_help.name;
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return command_version.name;
	return word;
}

/*
 * Write errors must not look like success, and buffered output fails only here. If a status of 1 is a result (gate: a
 * regression), write errors get another status.
 */
static int stdout_close(const struct command *command, int status)
{
	int lost = output_file_lost(stdout);

	if (fclose(stdout) != 0 && lost == 0)
		lost = errno;
	pager_end();
	if (lost == 0)
		return status;
	say("cannot write to standard output: %s", g_strerror(lost));
	if (command->usage_status != 0)
		return command->usage_status;
	return status != STATUS_OK ? status : STATUS_FAILED;
}

int main(int argc, char **argv)
{
	const struct command *command;

	setlocale(LC_CTYPE, "");
	/* A file at its limit (`ulimit -f`) is an error of the write, which has a message. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		say("no command given; `vprof help` lists the commands");
		return STATUS_USAGE;
	}
	command = command_find(command_of_flag(argv[1]));
	if (!command)
		return command_unknown(argv[1]);
	return stdout_close(command, command_execute(command, argc - 1, argv + 1));
}
