// SPDX-License-Identifier: BSD-2-Clause
/* The loop from the guest's start to its end: drains the rings, handles the engine's events and the user's signals. */
#ifndef VPROF_CLI_RUN_RUN_LOOP_H
#define VPROF_CLI_RUN_RUN_LOOP_H

#include <glib.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "engine/engine_process.h"
#include "record/recorder.h"
#include "run/agent_service.h"
#include "run/exec.h"
#include "run/run_terminal.h"

struct run_loop {
	/* Set by the caller. */
	struct engine_process *engine;
	struct recorder *recorder;   /* NULL: nothing is recorded */
	struct exec *exec;           /* NULL: no command runs in the guest */
	struct agent_service *agent; /* NULL: no agent */
	int signalfd;                /* of run_loop_signals */
	/* The guest has booted another kernel; NULL: not possible. */
	void (*on_kernel)(void *data);
	/* It was paused, or runs again: "data" of guest-pause; NULL: not possible. */
	void (*on_pause)(const json_t *pause, void *data);
	void *data;
	/* Called every interval_s seconds; NULL: never. */
	void (*on_interval)(void *data);
	void *interval_data;
	uint64_t interval_s;
	/* Set by run_loop_run. */
	struct terminal *terminal;
	bool handed_on;    /* a signal that would stop the guest went to the command instead */
	bool end_asked;    /* the command needs nothing more from the guest */
	bool stop_asked;   /* the user asked for the end */
	bool left_at_once; /* and then did not wait for it */
	bool engine_gone;  /* without saying how the guest ended */
	json_t *end;       /* "data" of guest-ended; NULL if it did not come. Owned by the caller */
};

/*
 * Blocks the signals that the loop takes and returns a descriptor for them; -1 on error. Ignores SIGPIPE. for_command:
 * also those that only a command in the guest would take.
 */
int run_loop_signals(bool for_command, GError **error);
/* Restores the default effect of SIGINT and the other signals, so that they end a hanging vprof. */
void run_loop_signals_release(void);

/*
 * Starts the guest, and returns when it has ended or the user does not wait for it. The rings may still contain
 * records. console: the terminal is the guest's console.
 */
bool run_loop_run(struct run_loop *loop, bool console, GError **error);
/* The recording could not be written, and the guest was stopped for that. */
bool run_loop_failed(const struct run_loop *loop);
/* After a loop with a recorder: gets the last answers of an engine that still runs, and ends it. */
void run_loop_close(struct run_loop *loop);

#endif
