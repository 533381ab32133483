// SPDX-License-Identifier: BSD-2-Clause
/*
 * A command that runs in the guest: the exchange with the agent, from its greeting to the end of the last repetition,
 * and the command's standard streams, which are connected to those of vprof.
 */
#ifndef VPROF_CLI_RUN_EXEC_H
#define VPROF_CLI_RUN_EXEC_H

#include <glib.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/agent/agent_stream.h"
#include "run/agent_mappings.h"
#include "run/agent_reads.h"
#include "run/exec_plan.h"

#define EXEC_POLL_ENTRIES 4u

/* Callbacks. */
struct exec_hooks {
	/* The first measured repetition is about to start; false with an error prevents it. */
	bool (*begin)(void *data, GError **error);
	/* The last repetition has ended, or there will be none. Only called after `begin`. */
	void (*end)(void *data);
	/* A phase begins or ends, at a time of the host's CLOCK_MONOTONIC. */
	void (*mark)(const char *name, bool begins, uint64_t time_ns, void *data);
	void *data;
	/* Queried from time to time while the command runs; NULL: not queried. */
	struct agent_mappings *mappings;
	/* Asked for while the command runs; NULL: nothing is read. */
	struct agent_reads *reads;
};

struct exec;

/* fd: the stream to the agent, which is closed by exec_free. The plan stays the caller's. */
struct exec *exec_new(const struct exec_plan *plan, int fd);
void exec_free(struct exec *exec);
void exec_set_hooks(struct exec *exec, const struct exec_hooks *hooks);

/* The entries for poll(2); exec_serve takes the same entries afterwards. */
void exec_poll(const struct exec *exec, struct pollfd entries[EXEC_POLL_ENTRIES]);
void exec_serve(struct exec *exec, const struct pollfd entries[EXEC_POLL_ENTRIES]);

/* Forwards a signal to the command; false if it does not run. */
bool exec_signal(struct exec *exec, int number);
/* Whether the command was started at least once. */
bool exec_has_started(const struct exec *exec);
/* Whether output of the command waits for a terminal. */
bool exec_writes_here(const struct exec *exec);
/*
 * Its current state ("booting", "repeat-3 of 10"); NULL if a status line would mix with its input or output. New
 * string.
 */
char *exec_progress(const struct exec *exec);
/* The guest is not needed any more and should be ended. */
bool exec_wants_end(const struct exec *exec);
/* Takes the last messages of the agent after the guest's end. */
void exec_guest_ended(struct exec *exec);
/* Whether all output of the command has been written. */
bool exec_is_flushed(const struct exec *exec);

/* Prints on standard error how the command ended, if that is not obvious. */
void exec_say_end(const struct exec *exec);
/* The exit status of the command; -1 if it did not end. */
int exec_status(const struct exec *exec);
/* For the recording: {"command": [...], "runs": [...]}. New reference. */
json_t *exec_json(const struct exec *exec);

#endif
