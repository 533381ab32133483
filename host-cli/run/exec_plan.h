// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof run --exec` is to do: the command, where it runs, how often, and the initramfs that brings it there. */
#ifndef VPROF_CLI_EXEC_PLAN_H
#define VPROF_CLI_EXEC_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define EXEC_ERROR exec_error_quark()
GQuark exec_error_quark(void);
enum exec_error {
	EXEC_ERROR_OPTIONS,   /* the user's */
	EXEC_ERROR_NOT_FOUND, /* the command */
	EXEC_ERROR_NOT_EXECUTABLE,
	EXEC_ERROR_SYSTEM,
	EXEC_ERROR_AGENT, /* it did not do what was asked for */
};

#define EXEC_STATUS_TIME_LIMIT 124 /* as timeout(1) */
/* As a shell reports that it could not run a command. */
#define EXEC_STATUS_NOT_EXECUTABLE 126
#define EXEC_STATUS_NOT_FOUND 127

/* What the user said about the command. */
struct exec_options {
	char *command, *folder, *time_limit, *repeat, *warmup, *root;
	char **variables, **files;
	gboolean from_boot;
};
extern struct exec_options exec_options;

/* Their rows in a command's table. */
#define EXEC_OPTIONS                                                                                                   \
	{"exec",                                                                                                       \
	 'x',                                                                                                          \
	 0,                                                                                                            \
	 G_OPTION_ARG_STRING,                                                                                          \
	 &exec_options.command,                                                                                        \
	 "run a program of this host in the guest, and profile that",                                                  \
	 "COMMAND"},                                                                                                   \
		{"env",                                                                                                \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         G_OPTION_ARG_STRING_ARRAY,                                                                            \
	         &exec_options.variables,                                                                              \
	         "environment variable for it; without =VALUE, as it is here",                                         \
	         "NAME=VALUE"},                                                                                        \
		{"add",                                                                                                \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         G_OPTION_ARG_FILENAME_ARRAY,                                                                          \
	         &exec_options.files,                                                                                  \
	         "a file or folder that it needs; may be given again",                                                 \
	         "FILE[:PATH]"},                                                                                       \
		{"workdir",                                                                                            \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         G_OPTION_ARG_FILENAME,                                                                                \
	         &exec_options.folder,                                                                                 \
	         "its working directory in the guest (default: as here)",                                              \
	         "PATH"},                                                                                              \
		{"time-limit", 0, 0, G_OPTION_ARG_STRING, &exec_options.time_limit, "end it after TIME, as 10s or 2m", \
	         "TIME"},                                                                                              \
		{"root",                                                                                               \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         G_OPTION_ARG_STRING,                                                                                  \
	         &exec_options.root,                                                                                   \
	         "run in the system on this disk of the guest (/dev/vda1)",                                            \
	         "DEVICE[,TYPE]"},                                                                                     \
		{"repeat", 0, 0, G_OPTION_ARG_STRING, &exec_options.repeat, "run it N times; each is a phase", "N"},   \
		{"warmup", 0, 0, G_OPTION_ARG_STRING, &exec_options.warmup, "and W times before that, not profiled",   \
	         "W"},                                                                                                 \
	{                                                                                                              \
		"from-boot", 0, 0, G_OPTION_ARG_NONE, &exec_options.from_boot, "profile the boot and warm-ups, too",   \
			NULL                                                                                           \
	}

struct exec_plan {
	char **arguments; /* from argv[0] on */
	char **variables; /* "NAME=value" */
	char *path;       /* the file to execute */
	char *folder;
	char *root;             /* "DEVICE,TYPE"; NULL: in memory */
	uint32_t time_limit_ms; /* 0: none */
	unsigned repeats;       /* 1.. */
	unsigned warmups;
	bool from_boot;
};

/* Whether the options make sense; an error is the user's. */
bool exec_options_check(GError **error);
/* The plan for exec_options, or NULL; EXEC_ERROR_NOT_FOUND and EXEC_ERROR_NOT_EXECUTABLE when the command is to blame.
 */
struct exec_plan *exec_plan_new(GError **error);
void exec_plan_free(struct exec_plan *plan);

/* What it is made for. */
struct exec_guest {
	const char *kernel;
	const char *base; /* NULL, or the initramfs on which it is laid */
	bool has_disks;
};

/* The initramfs with the agent, the command, kernel modules and what was added: a descriptor, or -1. */
int exec_plan_initramfs(const struct exec_plan *plan, const struct exec_guest *guest, GError **error);

#endif
