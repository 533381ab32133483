// SPDX-License-Identifier: BSD-2-Clause
/* Recording: a session on the engine, its rings, and the file that they are drained into. */
#ifndef VPROF_CLI_RECORD_RECORDER_H
#define VPROF_CLI_RECORD_RECORDER_H

#include <glib.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vprof/agent.h>

#include "engine/guest_kernel.h"
#include "lib/client/client.h"
#include "reading/symbol_options.h"

#define RECORDER_ERROR recorder_error_quark()
GQuark recorder_error_quark(void);
enum recorder_error {
	RECORDER_ERROR_RING,
	RECORDER_ERROR_FILE,
};

struct recorder;

/* What is recorded. All that it points to but JSON, which is shared, must live as long as the recorder. */
struct recorder_config {
	struct client *client; /* the engine's */
	json_t *guest;         /* as query-guest */
	/* Arguments of session-start, */
	json_t *session;
	/* or counters (counters.h) that have rings and have not started. */
	json_t *counters;
	/* Shared by several recordings; NULL: it is loaded, and a warning says why addresses will have no names. */
	const struct guest_kernel *kernel;
	/* Where user space has its symbols; NULL: in the guest only. initrd: the guest's, or NULL. */
	const struct symbol_options *symbols;
	const char *initrd;
	/* User space is unwound by the tables of those files, if the session has call chains of it, */
	bool tables;
	/* and of these, which are this host's and the guest's; NULL: none. */
	char *const *programs;
};

/*
 * Starts the session and maps its rings, or those of the counters; reads the kernel's symbols, and those of the host's
 * side if the session has it. Nothing is written yet.
 */
struct recorder *recorder_new(const struct recorder_config *config, GError **error);
/* The file keeps what was recorded, finished or not. NULL is fine. */
void recorder_free(struct recorder *recorder);

/*
 * Creates the file, writes the guest's mappings (of its kernel, and of the user code of a freestanding image), and
 * starts the counters. An older file of this name is renamed to PATH.old, as perf record does.
 */
bool recorder_open(struct recorder *recorder, const char *path, GError **error);

/* The answer to session-start. */
const json_t *recorder_session(const struct recorder *recorder);
uint64_t recorder_samples(const struct recorder *recorder);
/* The file could not be written; recorder_finish says why. */
bool recorder_failed(const struct recorder *recorder);
/* The statistics of a session that was ended or paused, as query-stats; else NULL. Borrowed. */
const json_t *recorder_statistics(const struct recorder *recorder);

/*
 * Ends the session, and begins an equal one, so that nothing is recorded in between. Before the guest's start, or while
 * it runs. The engine's statistics are those of the last session.
 */
bool recorder_pause(struct recorder *recorder, GError **error);
bool recorder_resume(struct recorder *recorder, GError **error);

/*
 * The guest has booted: from now on, it runs another kernel, or the same at another address, which the engine is asked
 * for. Returns its release ("": unknown), or NULL if it has no kernel yet. Borrowed. Not with config->kernel.
 */
const char *recorder_reboot(struct recorder *recorder);

/* Fills in one entry per ring and returns their number. An entry is readable when its ring should be drained. */
size_t recorder_poll(const struct recorder *recorder, struct pollfd *entries, size_t room);

/* Moves everything that is in the rings to the file. After a failure, it fails again with the same error. */
bool recorder_drain(struct recorder *recorder, GError **error);

/* A guest-phase event's data; kept for the recording's description. */
void recorder_phase(struct recorder *recorder, json_t *phase);
/* A marker; kept as well. */
void recorder_mark(struct recorder *recorder, const char *name, bool begins, uint64_t time_ns);
/* A marker event's data; kept as well. */
void recorder_marker(struct recorder *recorder, json_t *marker);
/*
 * What the agent tells of the guest's processes at this moment; the next drain reports write errors. recorder_mapping
 * returns false if the recording has this mapping already.
 */
bool recorder_mapping(struct recorder *recorder, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                      const char *path);
void recorder_comm(struct recorder *recorder, uint32_t pid, uint32_t tid, const char *comm);

/*
 * The file that the agent in the guest is to read next, so that the guest has all of it in memory: what a process
 * executes, for its unwind table and its names. False: none at present.
 */
bool recorder_read_next(struct recorder *recorder, struct vprof_agent_read *read);
/* It has read it. */
void recorder_read_done(struct recorder *recorder, uint32_t number);
/* At the end, while the agent still answers: from now on, the next are what names code that processes have made. */
void recorder_reads_finish(struct recorder *recorder);

/*
 * Ends the session, or stops the counters, and asks the engine for its last answers: the time of the vCPUs, the
 * statistics, and symbols that only the guest has. Before the end of the engine; without it, the recording has none of
 * them.
 */
bool recorder_stop(struct recorder *recorder, GError **error);

/* What a recording says of its end. */
struct recorder_end {
	const json_t *guest; /* as query-guest */
	const json_t *end;   /* as in guest-ended; NULL if the engine ended before it could send it */
	const json_t *exec;  /* as exec_json; NULL without a command */
};

/*
 * Drains the rings, writes the symbols of the samples and everything else that a report needs, and closes the file.
 * Warns of symbols that could not be read.
 */
bool recorder_finish(struct recorder *recorder, const struct recorder_end *end, GError **error);

/* ---- what a command that records says about it ---- */

/* Prints the reason for the choice of the event, and with `verbose` how samples are taken. */
void recorder_say_session(const struct recorder *recorder, bool verbose);

/*
 * Finishes, and prints the number of samples, the size of the file and what is wrong with it, and then the top of the
 * profile to `report` (NULL: not wanted). Returns the exit status.
 */
int recorder_conclude(struct recorder *recorder, const struct recorder_end *end, FILE *report);

/* The top of the profile, by these columns; NULL: as `vprof report`. */
bool recording_print_top(const char *path, const char *sort, FILE *stream, GError **error);

/* ---- a whole recording of counters ---- */

/*
 * Starts counters with rings (counters.h) and writes what those have to a file, for some time or until interrupted.
 * After a failure, the file keeps what was recorded until then.
 */
bool recorder_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error);

#endif
