// SPDX-License-Identifier: BSD-2-Clause
/*
 * What there is to probe, and how a probe is written: PROVIDER:WHAT, as bpftrace and btrace write it.
 */
#ifndef VPROF_SAMPLE_PROBE_SPEC_H
#define VPROF_SAMPLE_PROBE_SPEC_H

#include "guest/guest_debug.h"

#define PROBE_ERROR probe_error_quark()
GQuark probe_error_quark(void);
enum probe_error {
	PROBE_ERROR_SYNTAX,  /* no such provider, or not how one of its probes is written */
	PROBE_ERROR_UNKNOWN, /* no such function, system call, register or probe */
	PROBE_ERROR_EXISTS,  /* the client has that probe already */
	PROBE_ERROR_STATE,   /* not while recording, or not before */
	PROBE_ERROR_UNSUPPORTED,
};

#define PROBE_NAME_BYTES 160u
#define PROBE_SYMBOL_BYTES 128u
#define PROBE_ARGUMENTS_MAX 7u
#define PROBE_TIMER_HZ_MAX 1000u

/* What tells a probe that it fires. */
enum probe_trigger { PROBE_BY_TIMER, PROBE_BY_BREAKPOINT, PROBE_BY_ACCESS };

/* The argument "by" of a marker's event. */
enum probe_marker { PROBE_MARKER_PORT, PROBE_MARKER_BEGIN, PROBE_MARKER_END };

struct probe_spec {
	const struct probe_provider *provider;
	char name[PROBE_NAME_BYTES];     /* in full and in one way of writing it: two of one name are the same */
	uint64_t period_ns;              /* of a timer */
	char symbol[PROBE_SYMBOL_BYTES]; /* of a function, "" for an address; a pattern of clients' markers, "" for none
	                                  */
	uint64_t offset;                 /* behind the symbol, or the address */
	uint64_t first, last;            /* ports, addresses, MSRs, exit reasons, system calls, markers */
	bool read, write;
};

struct probe_provider {
	const char *name;
	const char *syntax; /* "io:PORT[-PORT][:in|:out]" */
	const char *summary;
	enum probe_trigger trigger;
	const char *const *arguments; /* of an event, up to NULL; at most PROBE_ARGUMENTS_MAX */
	bool every_vcpu;              /* of a timer */
	/* Reads what stands behind "NAME:". */
	bool (*parse)(struct probe_spec *spec, const char *text, GError **error);
	/* PROBE_BY_ACCESS: whether it is one of the probe's, and the event's arguments. */
	bool (*access)(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments);
	/* PROBE_BY_BREAKPOINT: likewise. The vCPU's thread. */
	bool (*hit)(const struct probe_spec *spec, struct guest *guest, const struct guest_regs *regs,
	            const struct guest_gprs *gprs, uint64_t *arguments);
};

extern const struct probe_provider *const probe_providers[]; /* up to NULL */

/* Reads a probe, of which `text` may be anything. Errors: PROBE_ERROR_SYNTAX, PROBE_ERROR_UNKNOWN. */
bool probe_spec_parse(const char *text, struct probe_spec *spec, GError **error);

/* The kernel functions at whose first instruction system calls arrive, the first that there is; up to NULL. */
extern const char *const probe_syscall_entries[];

/* For the providers' own parsers. */
bool probe_syntax_error(const struct probe_spec *spec, const char *text, GError **error);
/* A number of either base, all of the text, at most `max`. */
bool probe_number(const char *text, uint64_t max, uint64_t *number);
/* "N" or "N-N", at most `max`, or "*" for all. */
bool probe_range(const char *text, uint64_t max, uint64_t *first, uint64_t *last);

#endif
