// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof run --exec` does: the command, where and how often it runs, and the initramfs that contains it. */
#ifndef VPROF_CLI_RUN_EXEC_PLAN_H
#define VPROF_CLI_RUN_EXEC_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "ui/option.h"

#define EXEC_ERROR exec_error_quark()
GQuark exec_error_quark(void);
enum exec_error {
	EXEC_ERROR_OPTIONS,   /* the user's */
	EXEC_ERROR_NOT_FOUND, /* the command */
	EXEC_ERROR_NOT_EXECUTABLE,
	EXEC_ERROR_SYSTEM,
	EXEC_ERROR_AGENT, /* it cannot run here, or failed to do what was requested */
};

#define EXEC_STATUS_TIME_LIMIT 124 /* as timeout(1) */
/* The exit statuses of a shell that cannot run a command. */
#define EXEC_STATUS_NOT_EXECUTABLE 126
#define EXEC_STATUS_NOT_FOUND 127

/* The options for the command. */
struct exec_options {
	char *command, *folder, *root;
	uint64_t time_limit_s, repeats, warmups; /* 0: not given */
	char **variables, **files;
	gboolean from_boot;
};

extern const struct option_row exec_option_rows[];

struct exec_plan {
	const struct exec_options *options;
	char **arguments; /* from argv[0] on */
	char **variables; /* "NAME=value" */
	char *path;       /* the file to execute */
	char *folder;
	char *root;             /* "DEVICE,TYPE"; NULL: in memory */
	uint32_t time_limit_ms; /* 0: none */
	unsigned repeats;       /* 1.. */
	unsigned warmups;
	bool from_boot;
	char **programs; /* paths on this host of the ELF files in the initramfs; NULL: there is none yet */
};

/* Whether the options are valid; the error is for usage_error. */
bool exec_options_check(const struct exec_options *options, GError **error);
/*
 * The plan for `options`, which outlive it; NULL with EXEC_ERROR_NOT_FOUND or EXEC_ERROR_NOT_EXECUTABLE when the
 * command is to blame.
 */
struct exec_plan *exec_plan_new(const struct exec_options *options, GError **error);
void exec_plan_free(struct exec_plan *plan);

/*
 * The path of the agent that runs the command in the guest, a program for this host's architecture. New string; errors
 * of program_find and of reading the file, or EXEC_ERROR_AGENT.
 */
char *exec_agent_find(GError **error);

/* The guest that the initramfs is for. */
struct exec_guest {
	const char *kernel;
	const char *base;    /* NULL, or the initramfs to extend */
	const char *modules; /* NULL, or the folder of its kernel modules */
	bool has_disks;
};

/* An initramfs with the agent, the command, kernel modules and the files of --add: a descriptor, or -1. Sets
 * plan->programs. */
int exec_plan_initramfs(struct exec_plan *plan, const struct exec_guest *guest, GError **error);

#endif
