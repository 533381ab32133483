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

#define COUNTER_EVENTS_MAX VPROF_EVENTS_MAX

/*
 * The real-time signal of an overflow: SIGRTMIN + 5. No other code may use it, and none may block SIGTRAP or this on a
 * vCPU thread. The first set that is opened installs handlers for both and ignores SIGIO, for the whole process; system
 * calls of a vCPU thread that SA_RESTART does not cover (poll, nanosleep) may then return EINTR.
 */
int counter_signal(void);

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
	uint32_t frequency_hz; /* 1..VPROF_FREQUENCY_HZ_MAX: samples per second of vCPU time */
	uint64_t period;       /* events (ns for clocks) between two samples */
};

struct counter_backend {
	const char *name; /* "perf-hardware", "perf-clock", "timer", "step" */
	bool counts_time; /* the unit is nanoseconds */
	/*
	 * Counts only while the guest runs, and applies the event's :u and :k itself (perf hardware events,
	 * exclude_host). The others count the thread whatever it does: their overflows also fall into the VMM, and
	 * the sampler applies :u and :k by the mode it finds.
	 */
	bool guest_only;
	bool steps; /* every one is an overflow: the period is 1, and the guest is stepped (guest_debug_ops.step) */
	bool ticks_when_idle; /* overflows come by wall time; one that found no thread time consumed is no sample */
	/* NULL when this host can count `event`, else why not (static or interned text). */
	const char *(*unavailable)(const struct counter_event *event);
	/* open, close, set_period, ...: see counter_priv.h */
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
/* A sentence about one of these names; NULL for an unknown name. */
const char *counter_event_summary(const char *name);

/* The highest frequency of the event in Hz: VPROF_FREQUENCY_HZ_MAX, or less where the host's kernel allows less. At
 * least 1. */
uint32_t counter_frequency_max(const struct counter_event *event);

/* Errors: RANGE, with the limit and what sets it. */
bool counter_rate_check(const struct counter_rate *rate, const struct counter_event *event, GError **error);

/*
 * The attr under which the event is opened, and which stands in the recording. A delivery may add to it what concerns
 * signals only, and the set jitters the period; samples carry what was really counted. perf's own samples of an event
 * with a delivery have no fields, as nothing reads them.
 */
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
 * Finds the first delivery that hands overflows to their thread on this host, by letting a clock overflow on a scratch
 * thread and waiting for it (some 20 ms of CPU time at most for each). `wanted`: a name, or NULL. Errors: UNAVAILABLE.
 */
const struct counter_delivery *counter_delivery_probe(const char *wanted, GError **error);

/*
 * The counters of one vCPU thread: everything below is for that thread, outside KVM_RUN.
 *
 * A delivery with a handler sets *port->immediate_exit, so that an overflow between counter_set_collect and KVM_RUN is
 * not forgotten; a collect that is not `after_exit` resets it. A run loop that uses immediate_exit for requests of its
 * own therefore keeps these in a flag that it reads between collect and KVM_RUN.
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
 * Overflows since the last call, one for each event at most; returns how many. Neither blocks nor allocates.
 * `interrupted`: KVM_RUN has just returned EINTR. `after_exit`: the VMM has handled an exit since the last call. A
 * delivery that needs a system call to look does so only if one of them is true.
 */
size_t counter_set_collect(struct counter_set *set, bool interrupted, bool after_exit,
                           struct counter_overflow overflows[COUNTER_EVENTS_MAX]);

/*
 * The host's kernel stops an event that overflows more often than kernel.perf_event_max_sample_rate allows, until the
 * host's next tick (kernel/events/core.c, __perf_event_account_interrupt). A hardware event counts nothing meanwhile; a
 * clock goes on, without overflows.
 */
struct counter_throttle {
	unsigned event;   /* index into the events given to counter_set_open */
	bool ends;        /* it goes on; false: it is stopped */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/*
 * The next of these since the last call, for each event in order; false when there is none. To be called after a
 * collect with overflows until then, as an overflow behind a stop says nothing about the rate of the events. Neither
 * blocks nor allocates. Where the host limits locked memory, there may be none at all.
 */
bool counter_set_throttle(struct counter_set *set, struct counter_throttle *throttle);

/* Statistics of the overflows of all events of a set. */
struct counter_statistics {
	uint64_t overflows; /* returned by counter_set_collect */
	uint64_t throttled; /* came together with another one, or were held back by the host */
	uint64_t late;      /* parts of periods that passed before the next run of periods was armed, summed up */
	uint64_t idle;      /* timer ticks that found no thread time consumed */
	uint64_t expected;  /* what was counted, in periods */
	uint64_t signals;   /* signals that announced overflows, throttled and idle ones included */
	uint64_t ignored;   /* signals on this thread without an overflow of a set */
};

/* As of the last run of periods; no system call. */
void counter_set_statistics(const struct counter_set *set, struct counter_statistics *statistics);
/*
 * Whether overflows have come since the last collect; false also when the delivery cannot say without a system call.
 */
bool counter_set_pending(const struct counter_set *set);
/* Counts nothing until counter_set_resume. */
void counter_set_pause(struct counter_set *set);
void counter_set_resume(struct counter_set *set);
/* Updates the statistics. The last call before counter_set_close. */
void counter_set_finish(struct counter_set *set);

/*
 * A counter without overflows on one vCPU thread: it is only read. Opened and closed on that thread.
 */
struct counter_meter;

struct counter_reading {
	uint64_t value;
	uint64_t running_ns; /* the time that it could count; less than enabled_ns if the PMU is shared */
	uint64_t enabled_ns; /* the time that the thread ran with it */
};

/* Error: UNAVAILABLE, when the event cannot count exactly what its modifiers say. Any thread. */
bool counter_meter_check(const struct counter_event *event, GError **error);

/* Counts from 0. Errors: UNAVAILABLE, SYSTEM. */
struct counter_meter *counter_meter_open(const struct counter_event *event, GError **error);
void counter_meter_close(struct counter_meter *meter);
/*
 * No allocation, one system call. False when the counter does not answer; it then counts nothing of this thread any
 * more.
 */
bool counter_meter_read(struct counter_meter *meter, struct counter_reading *reading);

/*
 * A descriptor of perf's that reads it, as perf_event_open(2) has it: the value and the two times. For the caller to
 * close; -1: it is none of perf's, or there are too many descriptors.
 */
int counter_meter_descriptor(const struct counter_meter *meter);

/* kernel.perf_event_paranoid, for messages: digits, or "unknown"; new string. */
char *counter_perf_paranoid(void);

enum counter_setting { COUNTER_PARANOID, COUNTER_SAMPLE_RATE_MAX, COUNTER_SETTINGS };
/* Opens the files of the host's settings, which are kept open, and looks for its PMU, before a program gives up the
 * right to. */
void counter_settings_open(void);
/* What the file has now, without the end of its line; new string. NULL: cannot be read. */
char *counter_setting_read(enum counter_setting setting);

/* perf_event_open(2); tests put their own PMU here, and a program without the right to, a process that has it. */
extern int (*counter_perf_event_open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);
/* fcntl(2), F_SETOWN_EX: an event's overflows signal the calling thread. The same. */
extern bool (*counter_perf_owner)(int fd);

#endif
