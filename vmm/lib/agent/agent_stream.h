// SPDX-License-Identifier: BSD-2-Clause
/*
 * The host's end of the conversation with the agent (vprof/agent.h). Its input comes from a guest: every length is
 * checked, text is cut to the size of its frame, and after a malformed frame the stream is refused for good. It uses no
 * descriptors: bytes go in and frames come out, so any transport, or a fuzzer, can feed it.
 */
#ifndef VPROF_AGENT_AGENT_STREAM_H
#define VPROF_AGENT_AGENT_STREAM_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/agent.h>

#define AGENT_ERROR agent_error_quark()
GQuark agent_error_quark(void);
enum agent_error {
	AGENT_ERROR_FRAME,    /* a frame that cannot be: what it is and what is wrong with it */
	AGENT_ERROR_PROTOCOL, /* no agent, or one of another protocol */
	AGENT_ERROR_LIMIT,    /* what was to be sent is longer than a frame */
};

/*
 * A frame of a known type with a complete payload. Text (`text`, with a NUL) is what follows the
 * structure: the release, a name, a path, a sentence; without control characters and valid UTF-8.
 */
struct agent_message {
	enum vprof_agent_says type;
	union {
		uint8_t head[48]; /* the structure, whichever it is */
		struct vprof_agent_hello hello;
		struct vprof_agent_pong pong;
		struct vprof_agent_started started;
		struct vprof_agent_refused refused;
		struct vprof_agent_stdin_room stdin_room;
		struct vprof_agent_exited exited;
		struct vprof_agent_mark mark;
		struct vprof_agent_task task;
		struct vprof_agent_mapping mapping;
		struct vprof_agent_statistics statistics;
		struct vprof_agent_read_done read_done;
	};
	const char *text;
	const uint8_t *bytes; /* of STDOUT and STDERR */
	size_t n_bytes;
};

struct agent_stream;

struct agent_stream *agent_stream_new(void);
void agent_stream_free(struct agent_stream *stream);

/* Appends received bytes. */
void agent_stream_put(struct agent_stream *stream, const uint8_t *bytes, size_t n);
/*
 * The next message; its text and bytes live until the next call. False without error: more bytes are needed. False with
 * an error, on this and every later call: the stream is not an agent's.
 */
bool agent_stream_next(struct agent_stream *stream, struct agent_message *message, GError **error);
/* How many frames had a type that this program does not know. */
uint64_t agent_stream_skipped(const struct agent_stream *stream);

/* The host's frames; each is appended to `to`. */
void agent_say_ping(GByteArray *to, uint64_t cookie);
void agent_say_stdin(GByteArray *to, const uint8_t *bytes, size_t n);
void agent_say_stdin_end(GByteArray *to);
void agent_say_signal(GByteArray *to, int number);
void agent_say_power_off(GByteArray *to);
/* Asks for TASK and MAPPING of a process, or of all with pid 0, and MAPPINGS_END. */
void agent_say_mappings(GByteArray *to, uint32_t pid);

/* Asks for READ_DONE, of an agent that can (vprof_agent_hello). */
void agent_say_read(GByteArray *to, const struct vprof_agent_read *read);

struct agent_order {
	uint32_t run;
	uint32_t time_limit_ms;       /* 0: none */
	const char *path, *folder;    /* the file to execute, the working directory */
	const char *const *arguments; /* from argv[0] on; NULL-terminated */
	const char *const *variables; /* "NAME=value"; NULL-terminated */
};

/* AGENT_ERROR_LIMIT: nothing was appended. */
bool agent_say_run(GByteArray *to, const struct agent_order *order, GError **error);

#endif
