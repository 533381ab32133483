// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters on a vCPU thread, and how their overflow becomes an exit.
 *
 * A backend knows how to count (perf hardware events, perf clocks, a POSIX timer). A delivery knows how an overflow on
 * a thread makes KVM_RUN return there (a signal mask with sigtimedwait, sigtrap, F_SETSIG with a handler). All calls
 * but the probes and the event parser are for the vCPU's own thread.
 */
#ifndef VPROF_COUNTER_COUNTER_H
#define VPROF_COUNTER_COUNTER_H

#include <glib.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/guest.h"

#define COUNTER_EVENTS_MAX 8u /* sampled at once by one session */
#define COUNTER_FREQUENCY_HZ_MAX 50000u

#define COUNTER_ERROR counter_error_quark()
GQuark counter_error_quark(void);
enum counter_error {
	COUNTER_ERROR_UNKNOWN_EVENT, /* no such name; the message lists near ones */
	COUNTER_ERROR_UNAVAILABLE,   /* the host cannot count it; the message says why */
	COUNTER_ERROR_RANGE,         /* frequency or period out of range */
	COUNTER_ERROR_SYSTEM,        /* errno in the message, with what to do */
};

/* An event as asked for: "cycles", "instructions:u", "r01c2:k", "task-clock", "timer". */
struct counter_event {
	char name[64];     /* as the user wrote it */
	uint32_t type;     /* perf_event_attr.type; PERF_TYPE_SOFTWARE for clocks and timer */
	uint64_t config;   /* perf_event_attr.config */
	bool user, kernel; /* count guest user mode, guest kernel mode; both without a modifier */
	const struct counter_backend *backend;
};

/* How often: exactly one of the two is not 0. */
struct counter_rate {
	uint32_t frequency_hz; /* 1..COUNTER_FREQUENCY_HZ_MAX: samples per second of vCPU time */
	uint64_t period;       /* events (ns for clocks) between two samples */
};

struct counter; /* one open event on one thread */

struct counter_backend {
	const char *name; /* "perf-hardware", "perf-clock", "timer" */
	bool counts_time; /* the unit is nanoseconds */
	/* NULL when this host can count `event`, else why not (static or interned text). */
	const char *(*unavailable)(const struct counter_event *event);
	/* ... open, close, set_period, read: see counter_priv.h */
	const struct counter_backend_ops *ops;
};

extern const struct counter_backend *const counter_backends[]; /* NULL-terminated, best first */

/* Parses "name[:u|:k|:uk]" against every backend and fills *event. Errors: UNKNOWN_EVENT, UNAVAILABLE. */
bool counter_event_parse(const char *text, struct counter_event *event, GError **error);

/*
 * The event `vprof run` takes without -e: cycles if the host has a PMU that can count it for a guest, else task-clock.
 * *why gets a sentence for the user; static text.
 */
void counter_event_default(struct counter_event *event, const char **why);

/* Every event name that counter_event_parse knows, for help, completion and doctor; NULL-terminated, static. */
const char *const *counter_event_names(void);

bool counter_rate_check(const struct counter_rate *rate, const struct counter_event *event, GError **error);

/* The attr under which the event is opened, and which stands in the recording. */
void counter_event_attr(const struct counter_event *event, const struct counter_rate *rate,
                        struct perf_event_attr *attr);

/* Deliveries. */
struct counter_delivery {
	const char *name; /* "sigmask", "sigtrap", "setsig" */
	const char *summary;
	const struct counter_delivery_ops *ops; /* counter_priv.h */
};

extern const struct counter_delivery *const counter_deliveries[]; /* NULL-terminated, in order of preference */

/*
 * Finds the first delivery that hands an overflow to its thread on this host, by letting a clock overflow and waiting
 * for it (a millisecond at most for each). `wanted`: a name, or NULL. The choice holds for the process.
 */
const struct counter_delivery *counter_delivery_probe(const char *wanted, GError **error);

/*
 * The counters of one vCPU thread. Open and close on that thread.
 */
struct counter_set;

/* One overflow, as counter_set_collect returns it. */
struct counter_overflow {
	unsigned event;  /* index into the events given to counter_set_open */
	uint64_t period; /* events since the previous overflow of this one */
};

struct counter_set *counter_set_open(const struct counter_delivery *delivery, const struct vcpu_port *port,
                                     const struct counter_event *events, size_t n_events,
                                     const struct counter_rate *rate, GError **error);
void counter_set_close(struct counter_set *set);

/*
 * Overflows since the last call, at most COUNTER_EVENTS_MAX; returns how many. Neither blocks nor allocates.
 * `interrupted`: KVM_RUN has just returned EINTR; when false a delivery that needs a system call to look may do it only
 * if the VMM handled an exit in between, which is the caller's promise in `after_exit`.
 */
size_t counter_set_collect(struct counter_set *set, bool interrupted, bool after_exit,
                           struct counter_overflow overflows[COUNTER_EVENTS_MAX]);

/* What was counted so far, and what it takes to know whether overflows were lost. */
struct counter_totals {
	uint64_t value;     /* events counted */
	uint64_t overflows; /* overflows collected */
	uint64_t throttled; /* periods that the host took back, or coalesced signals */
};
bool counter_set_read(struct counter_set *set, unsigned event, struct counter_totals *totals);

#endif
