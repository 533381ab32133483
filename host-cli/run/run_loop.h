// SPDX-License-Identifier: BSD-2-Clause
/* From the guest's start to its end: drains the rings, follows the engine's events and the user's signals. */
#ifndef VPROF_CLI_RUN_LOOP_H
#define VPROF_CLI_RUN_LOOP_H

#include <glib.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "capture/capture.h"
#include "engine/engine_process.h"
#include "run/agent_service.h"
#include "run/exec.h"
#include "run/run_terminal.h"

struct run_loop {
	/* Set by the caller. */
	struct engine_process *engine;
	struct capture *capture;     /* NULL: nothing is recorded */
	struct exec *exec;           /* NULL: no command runs in the guest */
	struct agent_service *agent; /* NULL: no agent is listened to */
	struct terminal *terminal;
	int signalfd; /* of run_loop_signals */
	/* The guest has another kernel since now; NULL: it cannot. */
	void (*on_kernel)(void *data);
	void *data;
	/* Set by run_loop_run. */
	bool handed_on;       /* a signal that would stop the guest went to the command instead */
	bool end_asked;       /* the command has nothing more to expect of the guest */
	bool stop_asked;      /* the user wanted the end */
	bool left_at_once;    /* and then did not want to wait for it */
	bool engine_gone;     /* without saying how the guest ended */
	json_t *end;          /* "data" of guest-ended; NULL if it did not come. Owned by the caller */
	GError *output_error; /* the file could not be written; owned by the caller */
};

/*
 * Blocks the signals that the loop takes and returns a descriptor for them; -1 on error. Ignores SIGPIPE. for_command:
 * also those that only a command in the guest would take.
 */
int run_loop_signals(bool for_command, GError **error);
/* Gives SIGINT and its like their usual effect back, so that they end what hangs. */
void run_loop_signals_release(void);

/* Returns when the guest has ended or nobody waits for it any more. The rings may hold a rest. */
void run_loop_run(struct run_loop *loop);

#endif
