// SPDX-License-Identifier: BSD-2-Clause
/*
 * Subcommands as data. Each cmd_NAME.c defines one struct command; main.c lists them in one table; dispatch, help,
 * shell completion and the test of the man pages read that table.
 */
#ifndef VPROF_CLI_CMD_COMMAND_H
#define VPROF_CLI_CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/option.h"

#define COMMAND_ARGUMENTS 3u

struct command {
	const char *name;
	const char *summary;   /* one line, for `vprof help` */
	const char *arguments; /* in the usage line, behind the options; "" for none */
	unsigned max_arguments;
	/* What each argument may be, for completion, as option_row's `words`; the last also for those behind it. */
	const char *argument_words[COMMAND_ARGUMENTS];
	const char *manual;               /* the page that describes it, without the section: "vprof-run" */
	const char *description;          /* ends --help: what it does beyond its options, and examples */
	const struct option_row *options; /* NULL: none */
	size_t values_bytes;              /* size of the struct of the options' values; 0 without options */
	const void *defaults;             /* initial values; NULL: all zero */
	/*
	 * Exit status for a wrong command line and for lost output, if STATUS_USAGE and STATUS_FAILED have another
	 * meaning; or 0.
	 */
	int usage_status;
	bool pages; /* its output is long, and goes through a pager */
	/* Whether it takes the whole screen instead of printing, with these options; NULL: never. */
	bool (*takes_screen)(const void *values);
	bool raw; /* no options but --help: `run` gets all words as they are */
	/* `arguments`: those that are not options. Returns the exit status. */
	int (*run)(void *values, unsigned n, char **arguments);
};

extern const struct command *const commands[]; /* NULL-terminated */

extern const struct command command_run;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_script;
extern const struct command command_annotate;
extern const struct command command_attach;
extern const struct command command_diff;
extern const struct command command_gate;
extern const struct command command_history;
extern const struct command command_export;
extern const struct command command_push;
extern const struct command command_daemon;
extern const struct command command_list;
extern const struct command command_mpstat;
extern const struct command command_ctl;
extern const struct command command_stat;
extern const struct command command_ps;
extern const struct command command_stack;
extern const struct command command_counter;
extern const struct command command_probe;
extern const struct command command_trace;
extern const struct command command_top;
extern const struct command command_doctor;
extern const struct command command_completion;
extern const struct command command_help;
extern const struct command command_version;

/* NULL if no command has this name. */
const struct command *command_find(const char *name);
/* Says that the command does not exist and suggests one with a similar name; returns STATUS_USAGE. */
int command_unknown(const char *name);
/* What --help prints. New string. */
char *command_help_text(const struct command *command);
/* Parses options and arguments (argv[0] is the command's name) and runs it. */
int command_execute(const struct command *command, int argc, char **argv);

#endif
