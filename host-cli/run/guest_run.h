// SPDX-License-Identifier: BSD-2-Clause
/* Running a guest of our own from its start to its end: what `vprof run` and `vprof stat` have in common. */
#ifndef VPROF_CLI_GUEST_RUN_H
#define VPROF_CLI_GUEST_RUN_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "engine/run_engine.h"
#include "run/exec.h"
#include "run/run_loop.h"

#define GUEST_RUN_ERROR guest_run_error_quark()
GQuark guest_run_error_quark(void);
enum guest_run_error { GUEST_RUN_ERROR_OPTIONS };

/* What the user said about the guest. */
struct guest_run_options {
	char *kernel, *initrd, *append, *memory, *vcpus, *duration, *name, *boot, *console, *pmu, *pmu_filter, *quirks,
		*sandbox;
	char **disks; /* IMAGE[,ro] */
	gboolean demo, stop_on_panic, verbose;
};
extern struct guest_run_options guest_run_options;

/* Their rows in a command's table. */
#define GUEST_RUN_OPTIONS                                                                                                \
	{"kernel",                                                                                                       \
	 'k',                                                                                                            \
	 0,                                                                                                              \
	 G_OPTION_ARG_FILENAME,                                                                                          \
	 &guest_run_options.kernel,                                                                                      \
	 "vmlinux, vmlinuz, or another ELF that has a PVH entry",                                                        \
	 "IMAGE"},                                                                                                       \
		{"initrd", 0, 0, G_OPTION_ARG_FILENAME, &guest_run_options.initrd, "initial RAM file system", "FILE"},   \
		{"disk",                                                                                                 \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_FILENAME_ARRAY,                                                                            \
	         &guest_run_options.disks,                                                                               \
	         "a disk, /dev/vda and on; may be given again",                                                          \
	         "IMAGE[,ro]"},                                                                                          \
		{"append",                                                                                               \
	         'a',                                                                                                    \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.append,                                                                              \
	         "kernel command line, behind vprof's own",                                                              \
	         "TEXT"},                                                                                                \
		{"memory", 'm', 0, G_OPTION_ARG_STRING, &guest_run_options.memory, "guest memory, as 512M or 2G",        \
	         "SIZE"},                                                                                                \
		{"vcpus", 0, 0, G_OPTION_ARG_STRING, &guest_run_options.vcpus, "number of virtual CPUs", "N"},           \
		{"duration",                                                                                             \
	         'd',                                                                                                    \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.duration,                                                                            \
	         "end the guest after TIME, as 10s or 2m",                                                               \
	         "TIME"},                                                                                                \
		{"demo", 0, 0, G_OPTION_ARG_NONE, &guest_run_options.demo, "run the built-in guest: no --kernel needed", \
	         NULL},                                                                                                  \
		{"console",                                                                                              \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.console,                                                                             \
	         "the guest's first serial port: stdio, stderr, none or a file",                                         \
	         "WHERE"},                                                                                               \
		{"stop-on-panic",                                                                                        \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_NONE,                                                                                      \
	         &guest_run_options.stop_on_panic,                                                                       \
	         "end the guest when its console says panic",                                                            \
	         NULL},                                                                                                  \
		{"name",                                                                                                 \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.name,                                                                                \
	         "name in `vprof list` and in the recording",                                                            \
	         "NAME"},                                                                                                \
		{"boot",    0, 0, G_OPTION_ARG_STRING, &guest_run_options.boot, "boot protocol: auto, linux or pvh",     \
	         "PROTOCOL"},                                                                                            \
		{"pmu",  0, 0, G_OPTION_ARG_STRING, &guest_run_options.pmu, "the guest's own PMU: off, emulated or kvm", \
	         "WHICH"},                                                                                               \
		{"pmu-filter",                                                                                           \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.pmu_filter,                                                                          \
	         "with --pmu kvm: events the guest may count, or deny:LIST",                                             \
	         "LIST"},                                                                                                \
		{"quirks",                                                                                               \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.quirks,                                                                              \
	         "what this host's KVM needs of a guest: auto or off",                                                   \
	         "WHEN"},                                                                                                \
		{"sandbox",                                                                                              \
	         0,                                                                                                      \
	         0,                                                                                                      \
	         G_OPTION_ARG_STRING,                                                                                    \
	         &guest_run_options.sandbox,                                                                             \
	         "system calls of the guest's VMM are limited: on or off",                                               \
	         "WHICH"},                                                                                               \
	{                                                                                                                \
		"verbose", 'v', 0, G_OPTION_ARG_NONE, &guest_run_options.verbose, "say what is done to the guest",       \
			NULL                                                                                             \
	}

/* Whether these and exec_options make sense; an error is the user's. Sizes and numbers are checked by the engine. */
bool guest_run_check(GError **error);

struct guest_run {
	struct engine *engine;
	json_t *guest;          /* as query-guest */
	struct exec_plan *plan; /* NULL: no command runs in the guest */
	int initramfs;          /* with it; 0: none */
	struct exec *exec;      /* likewise */
	struct run_loop loop;
};

/* Starts the engine and has it make the guest. STATUS_OK, or it has said why not and returns the exit status. */
int guest_run_open(struct guest_run *run);
/* What was opened; all zero is fine. */
void guest_run_clear(struct guest_run *run);

/* The path of the initramfs that the guest was booted with; NULL without one. New string. */
char *guest_run_initramfs(const struct guest_run *run);

/* From the guest's first instruction to its end; the rings of `capture` (NULL: none) are drained meanwhile. */
bool guest_run_go(struct guest_run *run, struct capture *capture, GError **error);

/* Says how it ended, and when the engine went away what became of `kept`. */
void guest_run_say_end(const struct guest_run *run, const char *kept);
/* The exit status for it. */
int guest_run_status(const struct guest_run *run);

/* For somebody who did not want to wait; returns the exit status. */
int guest_run_abandon(struct guest_run *run);

#endif
