// SPDX-License-Identifier: BSD-2-Clause
/* What can be probed, and the syntax of a probe: PROVIDER:WHAT, as in bpftrace and btrace. */
#ifndef VPROF_PROBE_PROBE_SPEC_H
#define VPROF_PROBE_PROBE_SPEC_H

#include "guest/guest_debug.h"

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

/* What tells a probe that it fires. */
enum probe_trigger { PROBE_BY_TIMER, PROBE_BY_BREAKPOINT, PROBE_BY_ACCESS, PROBE_BY_RECORDING };

/* The argument "by" of a marker's event. */
enum probe_marker { PROBE_MARKER_PORT, PROBE_MARKER_BEGIN, PROBE_MARKER_END };

struct probe_spec {
	const struct probe_provider *provider;
	char name[PROBE_NAME_BYTES];     /* the canonical form: equal probes have equal names */
	uint64_t period_ns;              /* of a timer */
	char symbol[PROBE_SYMBOL_BYTES]; /* of a function, MODULE:NAME of one in a module, "" for an address; a trace
	                                    point; a system call as the kernel's source has it; a pattern for markers of
	                                    clients, "" for none */
	uint64_t offset;                 /* offset from the symbol, or the address */
	uint64_t first, last;            /* ports, addresses, MSRs, exit reasons, system calls, markers */
	bool read, write;                /* of a recording: its start, its end */
};

struct probe_provider {
	const char *name;
	const char *syntax; /* "io:PORT[-PORT][:in|:out]" */
	const char *summary;
	enum probe_trigger trigger;
	const char *const *arguments; /* names of an event's arguments, up to NULL; at most PROBE_ARGUMENTS_MAX */
	bool every_vcpu;              /* of a timer */
	unsigned needs;               /* of enum processor_probes: what the guest's processor has to have; 0: nothing */
	bool traces;   /* PROBE_BY_BREAKPOINT: a static trace point; its arguments depend on the kernel */
	bool programs; /* PROBE_BY_BREAKPOINT: of user space, PATH:FUNCTION in `symbol` */
	bool notes;    /* of `programs`: static probes, PATH:PROVIDER:NAME in `symbol` */
	bool returns;  /* PROBE_BY_BREAKPOINT: it fires where the function returns, with what it returns and the time */
	bool calls;    /* PROBE_BY_BREAKPOINT: behind the first, its arguments are those of the system call `symbol` */
	/*
	 * PROBE_BY_BREAKPOINT: kernel functions at the first instruction of which the probe is, best first, up to NULL;
	 * NULL: those of the spec.
	 */
	const char *const *entries;
	/* Parses what follows "NAME:". */
	bool (*parse)(struct probe_spec *spec, const char *text, GError **error);
	/* PROBE_BY_ACCESS: whether the exit matches the probe, and the arguments of the event. */
	bool (*access)(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments);
	/* PROBE_BY_BREAKPOINT: whether the breakpoint matches, and the arguments of the event. The vCPU's thread. */
	bool (*hit)(const struct probe_spec *spec, struct guest *guest, const struct guest_regs *regs,
	            const struct guest_gprs *gprs, uint64_t *arguments);
};

extern const struct probe_provider *const probe_providers[]; /* up to NULL */

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
