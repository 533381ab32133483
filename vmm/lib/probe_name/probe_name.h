// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of a probe's text, which may be a pattern: for what looks for probes, before one is chosen. probe_spec.h
 * has the meaning of a whole one.
 */
#ifndef VPROF_PROBE_NAME_PROBE_NAME_H
#define VPROF_PROBE_NAME_PROBE_NAME_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define PROBE_NAME_FUNCTION "function:"
#define PROBE_NAME_TRACEPOINT "tracepoint:"
#define PROBE_NAME_PROGRAM "user:"
#define PROBE_NAME_NOTE "usdt:"
#define PROBE_NAME_RETURN ":return" /* behind a function of a program, or a system call */

/* With the provider's name: perf and bpftrace write syscalls:sys_enter_openat without it. New string. */
char *probe_name_full(const char *text);

/*
 * Whether it stands for several functions, places or trace points. The patterns of other providers are their engine's.
 */
bool probe_name_is_pattern(const char *text);

/* Of function:FILE:LINE, where the line is; NULL: it is not written so. `LINE` may be a pattern, `FILE` has a dot. */
const char *probe_name_line(const char *text);

/* Whether it is of a program, user: or usdt:, complete or not. */
bool probe_name_is_of_program(const char *text);
bool probe_name_is_note(const char *text);

/* BINARY:FUNCTION[+OFFSET], BINARY:FUNCTION:return or BINARY:PROVIDER:NAME, of which only BINARY may have colons. */
struct probe_in_program {
	char *path;   /* BINARY */
	char *name;   /* FUNCTION, or PROVIDER:NAME; may be empty, or a pattern */
	char *offset; /* what follows the "+"; NULL: nothing */
	bool is_note, returns;
};
/* False, and nothing to clear: it is not of a program, or has no FUNCTION or NAME. */
bool probe_in_program_parse(const char *text, struct probe_in_program *out);
void probe_in_program_clear(struct probe_in_program *program);

/* ---- in a script ---- */

/* A probe as a script has it: by the name of the engines, or by bpftrace's. */
struct probe_written {
	char *name;      /* for the engine */
	char *shown;     /* bpftrace's provider, where that is another one; NULL */
	const char *end; /* of the name, which bpftrace does not have; static */
};
/* Up to a blank, a comma, the predicate or the statements that follow it. */
size_t probe_written_length(const char *text);
void probe_written_parse(const char *text, size_t n, struct probe_written *out);
void probe_written_clear(struct probe_written *written);
/* bpftrace's provider, with the colon, if there is nothing like it; NULL: there may be. Static. */
const char *probe_written_elsewhere(const char *text);

#endif
