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

#include "engine/engine_process.h"
#include "lib/client/client.h"
#include "lib/symbol/host_symbols.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"

#define RECORDER_ERROR recorder_error_quark()
GQuark recorder_error_quark(void);
enum recorder_error {
	RECORDER_ERROR_RING,
	RECORDER_ERROR_FILE,
};

struct recorder;

/* Starts a session with these arguments of session-start (stolen) and maps its rings. The guest has not started. */
struct recorder *recorder_new(struct engine_process *engine, json_t *session, GError **error);
/* Maps the rings of counters (counters.h) that have rings and have not started; the guest runs. */
struct recorder *recorder_new_of_counters(struct client *client, const json_t *counters, GError **error);
/* The file keeps what was recorded, finished or not. NULL is fine. */
void recorder_free(struct recorder *recorder);

/*
 * From now on, user space is unwound by the tables of the files in these sources, if the session has call chains of
 * it. Before the session's samples. `programs`: files of this host that the guest has, too; NULL.
 */
void recorder_use_tables(struct recorder *recorder, const struct user_symbol_sources *sources, char *const *programs);

/* The answer to session-start. */
const json_t *recorder_session(const struct recorder *recorder);
uint64_t recorder_samples(const struct recorder *recorder);
uint64_t recorder_lost(const struct recorder *recorder);
/* How often the host's kernel stopped an event. */
uint64_t recorder_throttles(const struct recorder *recorder);
/* Where the vCPUs' time went in the session, as query-vcpu-time answers. New reference; NULL: the engine does not say.
 */
json_t *recorder_time(const struct recorder *recorder);

/*
 * Creates the file and writes the guest's mappings: its kernel (image NULL: unknown), and the user code of a
 * freestanding image. An older file of this name is renamed to PATH.old, as perf record does.
 */
bool recorder_open_file(struct recorder *recorder, const char *path, const struct image *image,
                        const struct symtab *symtab, const char *kernel_path, GError **error);

/*
 * Ends the session, and begins an equal one, so that nothing is recorded in between. Before the guest's start, or while
 * it runs. The engine's statistics are those of the last session.
 */
bool recorder_pause(struct recorder *recorder, GError **error);
bool recorder_resume(struct recorder *recorder, GError **error);
/*
 * Reads for the recording where the time of the vCPUs went since the session's start; does nothing in a paused session,
 * which has it. Called at the end of the session and before that of the engine.
 */
void recorder_time_end(struct recorder *recorder);
/* The statistics of a paused session at its end, as query-stats; else NULL. Borrowed. */
const json_t *recorder_statistics(const struct recorder *recorder);

/*
 * From now on, the guest runs another kernel, or the same at another address (not NULL). `until`: the symbols of the
 * previous kernel, or NULL; they must live until recorder_finish, which gets those of the last kernel.
 */
bool recorder_kernel(struct recorder *recorder, const struct symtab *until, const struct image *image,
                     const struct symtab *symtab, GError **error);

/* Fills in one entry per ring and returns their number. An entry is readable when its ring should be drained. */
size_t recorder_poll(const struct recorder *recorder, struct pollfd *entries, size_t room);

/* Moves everything that is in the rings to the file. */
bool recorder_drain(struct recorder *recorder, GError **error);

/*
 * Asks the engine for symbols that only the guest has: those of its kernel's modules. Called after the end of the
 * session and before the end of the engine; without it, the recording has symbols from files only.
 */
void recorder_ask_symbols(struct recorder *recorder);

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

/* Whether there were more markers than a recording keeps. */
bool recorder_marks_left_out(const struct recorder *recorder);

struct recorder_summary {
	const json_t *guest;      /* as query-guest */
	const json_t *end;        /* as in guest-ended; NULL if the engine ended before it could send it */
	const json_t *statistics; /* as query-stats; NULL for the same reason */
	const json_t *exec;       /* as exec_json; NULL without a command */
	struct user_symbols *user_symbols;
	struct host_symbols *host_symbols; /* NULL: without the host's side */
};

/* Writes the symbols of the samples and everything else that a report needs, and closes the file. */
bool recorder_finish(struct recorder *recorder, const struct recorder_summary *summary, const struct image *image,
                     const struct symtab *symtab, const char *const *command_line, GError **error);

/* ---- a whole recording of counters ---- */

/*
 * Starts counters with rings (counters.h) and writes what those have to a file, for some time or until interrupted.
 * After a failure, the file keeps what was recorded until then.
 */
bool recorder_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error);

/* ---- what a command that records says about it ---- */

/* Prints the reason for the choice of the event, and with `verbose` how samples are taken. */
void recorder_say_session(const struct recorder *recorder, bool verbose);

/* Prints the number of samples and the size of the file, and warns of lost ones and of throttling. */
void recorder_say_written(const struct recorder *recorder, const char *path);

/* One line each. */
void recorder_say_warnings(const GPtrArray *warnings);

/* The top of the profile, by these columns; NULL: as `vprof report`. */
bool recording_print_top(const char *path, const char *sort, FILE *stream, GError **error);

/* The command line as the recording keeps it. */
char **recorder_command_line(void);

#endif
