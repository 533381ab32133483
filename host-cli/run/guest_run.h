// SPDX-License-Identifier: BSD-2-Clause
/* Running a guest of our own from its start to its end: what `vprof run` and `vprof stat` have in common. */
#ifndef VPROF_CLI_GUEST_RUN_H
#define VPROF_CLI_GUEST_RUN_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "engine/engine_process.h"
#include "run/exec.h"
#include "run/run_loop.h"
#include "ui/option.h"

#define GUEST_RUN_ERROR guest_run_error_quark()
GQuark guest_run_error_quark(void);
enum guest_run_error { GUEST_RUN_ERROR_OPTIONS };

/* What the user said about the guest, and about the command in it. */
struct guest_run_options {
	struct exec_options exec;
	char *kernel, *initrd, *append, *memory, *vcpus, *duration, *name, *boot, *console, *pmu, *pmu_filter, *quirks,
		*sandbox;
	char **disks; /* IMAGE[,ro] */
	gboolean demo, stop_on_panic, verbose;
};

extern const struct option_row guest_run_option_rows[];

/* Whether they make sense; an error is the user's. Sizes and numbers are checked by the engine. */
bool guest_run_check(const struct guest_run_options *options, GError **error);

struct guest_run {
	struct guest_run_options *options; /* completed with what they leave open */
	const char *modules;               /* NULL, or the folder of the kernel's modules */
	struct engine_process *engine;
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
