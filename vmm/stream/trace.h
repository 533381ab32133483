// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine's own trace: lines of text with time and vCPU in a ring of bytes; new lines overwrite the oldest. Each
 * kind of line is off until it is switched on.
 */
#ifndef VPROF_STREAM_TRACE_H
#define VPROF_STREAM_TRACE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_BYTES (256u << 10)
#define TRACE_TEXT_BYTES_MAX (8u << 10) /* of what is added at once; longer text is cut */
#define TRACE_NO_VCPU UINT32_MAX        /* the engine itself */

/* Kinds of lines. */
#define TRACE_KINDS(X)                                                             \
	X(TRACE_EXITS, "exits", "each exit that the VMM has handled, by its name") \
	X(TRACE_PHASES, "phases", "phase marks of the guest")                      \
	X(TRACE_CONSOLE, "console", "lines of the guest's console")                \
	X(TRACE_REQUESTS, "requests", "requests of clients, and how they were answered")

#define X(id, name, help) id,
enum trace_kind { TRACE_KINDS(X) TRACE_KIND_COUNT };
#undef X

struct trace;

struct trace *trace_new(void);
void trace_free(struct trace *trace);

/* Any thread. */
bool trace_wants(const struct trace *trace, enum trace_kind kind);
/* Main thread. */
void trace_set(struct trace *trace, enum trace_kind kind, bool on);

/*
 * Adds the lines of `text`, each with the same time. Control characters but tabs become "?"; a newline at the end may
 * be missing. Any thread. If another thread is adding lines, these are dropped and counted once instead of waiting.
 */
void trace_add(struct trace *trace, uint32_t vcpu, const char *text);

/* Hides the lines written so far from readers. Main thread. */
void trace_clear(struct trace *trace);

/* Where the next line will begin, in bytes since the start. */
uint64_t trace_head(struct trace *trace);
uint64_t trace_dropped(const struct trace *trace);
/*
 * Copies whole lines from *offset on (a line longer than `room` in parts), and returns their bytes. If lines were
 * overwritten, *offset becomes the beginning of the oldest line.
 */
size_t trace_read(struct trace *trace, uint64_t *offset, char *to, size_t room);

#endif
