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

#define CAPTURE_ERROR capture_error_quark()
GQuark capture_error_quark(void);
enum capture_error {
	CAPTURE_ERROR_RING,
	CAPTURE_ERROR_FILE,
};

struct capture;

/* Starts a session with these arguments of session-start (stolen) and maps its rings. The guest has not started. */
struct capture *capture_new(struct engine_process *engine, json_t *session, GError **error);
/* Maps the rings of counters (counters.h) that have rings and have not started; the guest runs. */
struct capture *capture_new_of_counters(struct client *client, const json_t *counters, GError **error);
/* The file keeps what was recorded, finished or not. NULL is fine. */
void capture_free(struct capture *capture);

/*
 * From now on, user space is unwound by the tables of the files in these sources, if the session has call chains of
 * it. Before the session's samples. `programs`: files of this host that the guest has, too; NULL.
 */
void capture_use_tables(struct capture *capture, const struct user_symbol_sources *sources, char *const *programs);

/* The answer to session-start. */
const json_t *capture_session(const struct capture *capture);
uint64_t capture_samples(const struct capture *capture);
uint64_t capture_lost(const struct capture *capture);
/* How often the host's kernel stopped an event. */
uint64_t capture_throttles(const struct capture *capture);
/* Where the vCPUs' time went in the session, as query-vcpu-time answers. New reference; NULL: the engine does not say.
 */
json_t *capture_time(const struct capture *capture);

/*
 * Creates the file and writes the guest's mappings: its kernel (image NULL: unknown), and the user code of a
 * freestanding image. An older file of this name is renamed to PATH.old, as perf record does.
 */
bool capture_open_file(struct capture *capture, const char *path, const struct image *image,
                       const struct symtab *symtab, const char *kernel_path, GError **error);

/*
 * Ends the session, and begins an equal one, so that nothing is recorded in between. Before the guest's start, or while
 * it runs. The engine's statistics are those of the last session.
 */
bool capture_pause(struct capture *capture, GError **error);
bool capture_resume(struct capture *capture, GError **error);
/*
 * Reads for the recording where the time of the vCPUs went since the session's start; does nothing in a paused session,
 * which has it. Called at the end of the session and before that of the engine.
 */
void capture_time_end(struct capture *capture);
/* The statistics of a paused session at its end, as query-stats; else NULL. Borrowed. */
const json_t *capture_statistics(const struct capture *capture);

/*
 * From now on, the guest runs another kernel, or the same at another address (not NULL). `until`: the symbols of the
 * previous kernel, or NULL; they must live until capture_finish, which gets those of the last kernel.
 */
bool capture_kernel(struct capture *capture, const struct symtab *until, const struct image *image,
                    const struct symtab *symtab, GError **error);

/* Fills in one entry per ring and returns their number. An entry is readable when its ring should be drained. */
size_t capture_poll(const struct capture *capture, struct pollfd *entries, size_t room);

/* Moves everything that is in the rings to the file. */
bool capture_drain(struct capture *capture, GError **error);

/*
 * Asks the engine for symbols that only the guest has: those of its kernel's modules. Called after the end of the
 * session and before the end of the engine; without it, the recording has symbols from files only.
 */
void capture_ask_symbols(struct capture *capture);

/* A guest-phase event's data; kept for the recording's description. */
void capture_phase(struct capture *capture, json_t *phase);
/* A marker; kept as well. */
void capture_mark(struct capture *capture, const char *name, bool begins, uint64_t time_ns);
/* A marker event's data; kept as well. */
void capture_marker(struct capture *capture, json_t *marker);
/*
 * What the agent tells of the guest's processes at this moment; the next drain reports write errors. capture_mapping
 * returns false if the recording has this mapping already.
 */
bool capture_mapping(struct capture *capture, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                     const char *path);
void capture_comm(struct capture *capture, uint32_t pid, uint32_t tid, const char *comm);

/*
 * The file that the agent in the guest is to read next, so that the guest has all of it in memory: what a process
 * executes, for its unwind table and its names. False: none at present.
 */
bool capture_read_next(struct capture *capture, struct vprof_agent_read *read);
/* It has read it. */
void capture_read_done(struct capture *capture, uint32_t number);
/* At the end, while the agent still answers: from now on, the next are what names code that processes have made. */
void capture_reads_finish(struct capture *capture);

/* Whether there were more markers than a recording keeps. */
bool capture_marks_left_out(const struct capture *capture);

struct capture_summary {
	const json_t *guest;      /* as query-guest */
	const json_t *end;        /* as in guest-ended; NULL if the engine ended before it could send it */
	const json_t *statistics; /* as query-stats; NULL for the same reason */
	const json_t *exec;       /* as exec_json; NULL without a command */
	struct user_symbols *user_symbols;
	struct host_symbols *host_symbols; /* NULL: without the host's side */
};

/* Writes the symbols of the samples and everything else that a report needs, and closes the file. */
bool capture_finish(struct capture *capture, const struct capture_summary *summary, const struct image *image,
                    const struct symtab *symtab, const char *const *command_line, GError **error);

/* ---- a whole recording of counters ---- */

/*
 * Starts counters with rings (counters.h) and writes what those have to a file, for some time or until interrupted.
 * After a failure, the file keeps what was recorded until then.
 */
bool capture_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error);

/* ---- what a command that records says about it ---- */

/* Prints the reason for the choice of the event, and with `verbose` how samples are taken. */
void capture_say_session(const struct capture *capture, bool verbose);

/* Prints the number of samples and the size of the file, and warns of lost ones and of throttling. */
void capture_say_written(const struct capture *capture, const char *path);

/* One line each. */
void capture_say_warnings(const GPtrArray *warnings);

/* The top of the profile, by these columns; NULL: as `vprof report`. */
bool recording_print_top(const char *path, const char *sort, FILE *stream, GError **error);

/* The command line as the recording keeps it. */
char **capture_command_line(void);

#endif
