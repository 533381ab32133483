// SPDX-License-Identifier: BSD-2-Clause
/* Boots a guest and follows it to its end: common to `vprof run` and `vprof stat`. */
#ifndef VPROF_CLI_RUN_GUEST_RUN_H
#define VPROF_CLI_RUN_GUEST_RUN_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine_process.h"
#include "run/exec.h"
#include "run/run_loop.h"
#include "ui/option.h"

#define GUEST_RUN_ERROR guest_run_error_quark()
GQuark guest_run_error_quark(void);
enum guest_run_error { GUEST_RUN_ERROR_OPTIONS };

/* The options for the guest and for the command in it. */
struct guest_run_options {
	struct exec_options exec;
	char *kernel, *initrd, *append, *memory, *name, *boot, *console, *uart, *pmu, *pmu_filter, *quirks, *sandbox;
	uint64_t vcpus, duration_s; /* 0: not given */
	char **disks;               /* IMAGE[,ro] */
	char *on_panic;
	gboolean demo, stop_on_panic, fail_on_reboot, verbose;
};

extern const struct option_row guest_run_option_rows[];

/* Whether the options are valid; the error is for usage_error. The engine checks the size of memory. */
bool guest_run_check(struct guest_run_options *options, GError **error);

struct guest_run {
	struct guest_run_options *options; /* defaults are filled in */
	const char *modules;               /* NULL, or the folder of the kernel's modules */
	struct engine_process *engine;
	json_t *guest;          /* as query-guest */
	struct exec_plan *plan; /* NULL: no command runs in the guest */
	int initramfs;          /* of the command; 0: none */
	struct exec *exec;      /* NULL: no command runs in the guest */
	struct run_loop loop;
};

/* Starts the engine and creates the guest. Returns STATUS_OK, or prints the reason and returns the exit status. */
int guest_run_open(struct guest_run *run);
/* Closes what was opened; all zero is fine. */
void guest_run_clear(struct guest_run *run);

/* The path of the initramfs that the guest was booted with; NULL without one. New string. */
char *guest_run_initramfs(const struct guest_run *run);

/* From the guest's first instruction to its end; the rings of `recorder` (NULL: none) are drained meanwhile. */
bool guest_run_go(struct guest_run *run, struct recorder *recorder, GError **error);

/* Prints how the guest ended. `kept`: what to say of the results if the engine went away. */
void guest_run_say_end(const struct guest_run *run, const char *kept);
/* The exit status for it. */
int guest_run_status(const struct guest_run *run);

/* Ends the guest without waiting; returns the exit status. */
int guest_run_abandon(struct guest_run *run);

#endif
