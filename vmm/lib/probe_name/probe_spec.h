// SPDX-License-Identifier: BSD-2-Clause
/* What can be probed, and what a probe's text means: PROVIDER:WHAT, as in bpftrace and btrace. */
#ifndef VPROF_PROBE_NAME_PROBE_SPEC_H
#define VPROF_PROBE_NAME_PROBE_SPEC_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_ERROR probe_error_quark()
GQuark probe_error_quark(void);
enum probe_error {
	PROBE_ERROR_SYNTAX,  /* no such provider, or a syntax error in its probe */
	PROBE_ERROR_UNKNOWN, /* no such function, system call, register or probe; no instruction */
	PROBE_ERROR_EXISTS,  /* the client has this probe already */
	PROBE_ERROR_STATE,   /* only while recording, or only while not recording */
	PROBE_ERROR_UNSUPPORTED,
};

#define PROBE_NAME_BYTES 160u
#define PROBE_SYMBOL_BYTES 128u
#define PROBE_ARGUMENTS_MAX 12u
#define PROBE_MODULE_SEPARATOR ':' /* in a function's symbol */
#define PROBE_TIMER_HZ_MAX 1000u

/* One row of probe_providers each. Rows with the same name follow each other; the first row parses for all of them. */
enum probe_kind {
	PROBE_PROFILE,
	PROBE_INTERVAL,
	PROBE_EXIT,
	PROBE_IO,
	PROBE_MMIO,
	PROBE_MSR,
	PROBE_SYSCALL,
	PROBE_SYSCALL_RETURN,
	PROBE_FUNCTION,
	PROBE_FUNCTION_RETURN,
	PROBE_PROGRAM,
	PROBE_PROGRAM_RETURN,
	PROBE_NOTE, /* a static probe of a program */
	PROBE_TRACEPOINT,
	PROBE_CALL_TRACE, /* the trace points of system calls, which are probes of system calls */
	PROBE_CALL_RETURN_TRACE,
	PROBE_ALL_CALLS_TRACE,
	PROBE_ALL_CALL_RETURNS_TRACE,
	PROBE_MARKER,
	PROBE_RECORDING,
	PROBE_KINDS,
};

struct probe_spec {
	enum probe_kind kind;
	char name[PROBE_NAME_BYTES];     /* the canonical form: equal probes have equal names */
	uint64_t period_ns;              /* of a timer */
	char symbol[PROBE_SYMBOL_BYTES]; /* of a function, MODULE:NAME of one in a module, "" for an address; a trace
	                                    point; a system call as the kernel's source has it; BINARY:FUNCTION or
	                                    BINARY:PROVIDER:NAME; a pattern for markers of clients, "" for none */
	size_t path_bytes;               /* of BINARY in `symbol` */
	uint64_t offset;                 /* offset from the symbol, or the address */
	uint64_t first, last;            /* ports, addresses, MSRs, exit reasons, system calls, markers */
	bool read, write;                /* of a recording: its start, its end */
};

struct probe_provider {
	const char *name;
	const char *syntax; /* "io:PORT[-PORT][:in|:out]" */
	const char *summary;
	const char *const *arguments; /* names of an event's arguments, up to NULL; at most PROBE_ARGUMENTS_MAX */
	/* Parses what follows "NAME:"; spec->kind is set, and may become another one of this name. */
	bool (*parse)(struct probe_spec *spec, const char *text, GError **error);
};

extern const struct probe_provider probe_providers[PROBE_KINDS];

/* Parses a probe; `text` may be anything. Errors: PROBE_ERROR_SYNTAX, PROBE_ERROR_UNKNOWN. */
bool probe_spec_parse(const char *text, struct probe_spec *spec, GError **error);

/*
 * The number of a system call by its name in the kernel's source, which is another one than that of <asm/unistd.h> for
 * some: newstat.
 */
bool probe_call_number(const char *name, uint32_t *number);

/* What follows "vmlinux:", as bpftrace calls the kernel itself where a module may be named; all of it without that. */
const char *probe_skip_kernel(const char *text);

/* For the parsers of providers. */
bool probe_syntax_error(const struct probe_spec *spec, const char *text, GError **error);
/* A decimal or hexadecimal number, all of the text, at most `max`. */
bool probe_number(const char *text, uint64_t max, uint64_t *number);
/* "N" or "N-N", at most `max`, or "*" for all. */
bool probe_range(const char *text, uint64_t max, uint64_t *first, uint64_t *last);

#endif
