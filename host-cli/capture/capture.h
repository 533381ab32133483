// SPDX-License-Identifier: BSD-2-Clause
/* The recording half of `vprof run`: a session on the engine, its rings, and the file they are drained into. */
#ifndef VPROF_CLI_CAPTURE_CAPTURE_H
#define VPROF_CLI_CAPTURE_CAPTURE_H

#include <glib.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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
/* Maps the rings of counters in a sampling mode that have not started, as counters.h has them, of a guest that runs. */
struct capture *capture_new_of_counters(struct client *client, const json_t *counters, GError **error);
/* What was recorded stays in the file, finished or not. NULL is fine. */
void capture_free(struct capture *capture);

/* The answer to session-start. */
const json_t *capture_session(const struct capture *capture);
uint64_t capture_samples(const struct capture *capture);
uint64_t capture_lost(const struct capture *capture);

/*
 * Makes the file (image NULL: of a guest whose kernel is not known), which takes the name of an older one (that gets
 * ".old" behind its name, as perf record does it), and writes what the guest's memory looks like: its kernel, and the
 * user code of a freestanding image.
 */
bool capture_open_file(struct capture *capture, const char *path, const struct image *image,
                       const struct symtab *symtab, const char *kernel_path, GError **error);

/*
 * Ends the session, and begins one like it, so that nothing is recorded meanwhile. Before the guest's start, or while
 * it runs. What the engine says of the samples is that of the last session.
 */
bool capture_pause(struct capture *capture, GError **error);
bool capture_resume(struct capture *capture, GError **error);
/* The session's statistics as query-stats has them, at its end, if it was ended here; else NULL. Borrowed. */
const json_t *capture_statistics(const struct capture *capture);

/*
 * The guest runs another kernel from now on, or the same elsewhere (not NULL). `until`: the symbols of the one before,
 * or NULL; they stay the caller's until capture_finish, which is given those of the last.
 */
bool capture_kernel(struct capture *capture, const struct symtab *until, const struct image *image,
                    const struct symtab *symtab, GError **error);

/* Fills in one entry for each ring; returns how many. They are readable when a ring wants to be drained. */
size_t capture_poll(const struct capture *capture, struct pollfd *entries, size_t room);

/* Moves everything that is in the rings to the file. */
bool capture_drain(struct capture *capture, GError **error);

/*
 * Asks the engine for what only the guest has: symbols of its kernel's modules. When the session has ended, and before
 * the engine does; without it, the recording has those of the files alone.
 */
void capture_ask_symbols(struct capture *capture);

/* A guest-phase event's data; kept for the recording's description. */
void capture_phase(struct capture *capture, json_t *phase);
/* A marker, likewise. */
void capture_mark(struct capture *capture, const char *name, bool begins, uint64_t time_ns);
/* A marker event's data, likewise. */
void capture_marker(struct capture *capture, json_t *marker);
/*
 * What somebody else than the engine knows of the guest's processes, now; what cannot be written is said by a drain.
 * capture_mapping is false for what the recording has already.
 */
bool capture_mapping(struct capture *capture, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                     const char *path);
void capture_comm(struct capture *capture, uint32_t pid, uint32_t tid, const char *comm);

/* There were more markers than a recording keeps. */
bool capture_marks_left_out(const struct capture *capture);

struct capture_summary {
	const json_t *guest;      /* as query-guest */
	const json_t *end;        /* as in guest-ended; NULL when the engine did not live to say it */
	const json_t *statistics; /* as query-stats; NULL likewise */
	const json_t *exec;       /* as exec_json; NULL without a command */
	struct user_symbols *user_symbols;
	struct host_symbols *host_symbols; /* NULL: without the host's side */
};

/* Writes the symbols that were hit and everything else that a report wants, and closes the file. */
bool capture_finish(struct capture *capture, const struct capture_summary *summary, const struct image *image,
                    const struct symtab *symtab, const char *const *command_line, GError **error);

/* ---- a whole recording of counters ---- */

/*
 * Starts counters in a sampling mode (counters.h), and writes what they sample to a file, for some time or until it is
 * interrupted. What was recorded until a failure stays in the file.
 */
bool capture_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error);

/* ---- what a command that records says about it ---- */

/* Why it samples what it samples. */
void capture_say_session(const struct capture *capture, bool verbose);

/* How much there is in the file. */
void capture_say_written(const struct capture *capture, const char *path);

/* One line each. */
void capture_say_warnings(const GPtrArray *warnings);

/* The top of the profile. */
bool recording_print_top(const char *path, FILE *stream, GError **error);

/* The command line as the recording keeps it. */
char **capture_command_line(void);

#endif
