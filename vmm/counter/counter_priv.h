// SPDX-License-Identifier: BSD-2-Clause
/* What backends, deliveries and the set share. */
#ifndef VPROF_COUNTER_COUNTER_PRIV_H
#define VPROF_COUNTER_COUNTER_PRIV_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "counter/counter.h"
#include "lib/record/ring_reader.h"

/* One open event on one thread. */
struct counter {
	struct counter_event event;
	uint32_t cookie;     /* carried by signals to identify the counter: tag of its set, index in it */
	int fd;              /* perf backends; else -1 */
	timer_t timer;       /* timer backend, with a delivery */
	bool ticks;          /* `timer` is there */
	uint64_t base;       /* timer backend: thread CPU time when enabled, and what passed while paused */
	uint64_t paused_at;  /* timer backend: thread CPU time then */
	uint64_t value;      /* counted up to the last overflow */
	uint64_t running_ns; /* the time that it could count up to the last overflow */

	/* The schedule of overflows, see counter_set.c. */
	uint64_t nominal;     /* period asked for, or adapted to the frequency */
	uint64_t due;         /* value at which the armed run of periods should end */
	unsigned adapted;     /* times `nominal` was replaced */
	uint64_t armed;       /* period that the backend was given */
	uint64_t armed_at;    /* value then */
	uint64_t run_samples; /* since then */
	bool rearm;           /* `armed` is too far from `nominal` */
	bool stopped;         /* by the host's kernel, as of the last call of counter_set_throttle */
	uint64_t ticked;      /* timer backend: value at the last tick, sample or not */

	/* Perf backends, with a delivery: PERF_RECORD_THROTTLE. NULL: no memory for it. */
	struct ring_reader *ring;

	uint64_t overflows, throttled, idle, signals;
	double expected;
	double withheld; /* periods that the schedule gave up; whole ones are in `throttled`, too */
};

/* All members belong to the thread that opened the set; its signal handler shares those marked [h]. */
struct counter_set {
	const struct counter_delivery *delivery;
	struct counter_set *next; /* of those attached to this thread */
	uint64_t ignored;         /* counter_signal_ignored when it was opened */
	unsigned tag;             /* unlike that of any other of them */
	struct vcpu_port port;
	struct counter_rate rate;
	uint64_t random; /* xorshift64 state, never 0 */
	size_t n;
	struct counter counters[COUNTER_EVENTS_MAX];
	atomic_bool signalled;                   /* [h] some pending[] is not 0 */
	atomic_uint pending[COUNTER_EVENTS_MAX]; /* [h] overflows counted by the handler and not taken yet */
};

#define COUNTER_COOKIE(tag, index) ((uint32_t)(tag) << 8 | (uint32_t)(index))

struct counter_backend_ops {
	/*
	 * Opens, stopped, with counter->armed as its period; overflows go to the calling thread by `delivery`, or
	 * nowhere without one.
	 */
	bool (*open)(struct counter *counter, const struct counter_delivery *delivery,
	             const struct perf_event_attr *attr, GError **error);
	void (*close)(struct counter *counter);
	void (*enable)(struct counter *counter);
	/* Counts nothing in between. */
	void (*pause)(struct counter *counter);
	void (*resume)(struct counter *counter);
	/* Overflows come every `period` from now. */
	void (*set_period)(struct counter *counter, uint64_t period);
	bool (*read)(struct counter *counter, struct counter_reading *reading);
};

extern const struct counter_backend counter_backend_hardware;
extern const struct counter_backend counter_backend_clock;
extern const struct counter_backend counter_backend_timer;
extern const struct counter_backend counter_backend_step;

struct counter_delivery_ops {
	/* Called before the first and after the last event of a set: prepares the thread. */
	bool (*attach)(struct counter_set *set, GError **error);
	void (*detach)(struct counter_set *set);
	/* Before and after perf_event_open: the signal of one event. */
	void (*prepare)(struct perf_event_attr *attr, uint32_t cookie);
	bool (*route)(int perf_fd, const struct perf_event_attr *attr);
	/* Adds each event's overflows since the last call to taken[]; false when there were none. */
	bool (*take)(struct counter_set *set, bool interrupted, bool after_exit, unsigned taken[COUNTER_EVENTS_MAX]);
};

extern const struct counter_delivery counter_delivery_setsig;
extern const struct counter_delivery counter_delivery_sigtrap;
extern const struct counter_delivery counter_delivery_sigmask;

/* delivery_signal.c: shared by the deliveries. */

/* Sends a perf event's overflows to the calling thread as counter_signal() with its descriptor in si_fd. */
bool counter_signal_route(int perf_fd);
/* Counts the overflow of a signal in pending[] of its set on this thread, if any. Async-signal-safe. */
void counter_signal_note(const siginfo_t *info);
/* Signals that were noted on this thread, and belong to no set. */
uint64_t counter_signal_ignored(void);
/* Adds pending[] of `set` to taken[], and empties it; false when there was none. */
bool counter_signal_take(struct counter_set *set, unsigned taken[COUNTER_EVENTS_MAX]);
/*
 * Installs the handlers of counter_signal() and SIGTRAP, once for the process. A signal that comes late, when its event
 * is closed already, then finds a handler that ignores it, instead of ending the process.
 */
void counter_signal_install(void);
/* Signals on this thread now count in pending[] of the set; the second function ends that. */
void counter_signal_attach(struct counter_set *set);
void counter_signal_detach(struct counter_set *set);
/* Whether any set on this thread has overflows that were not taken. */
bool counter_signal_pending(void);
/* Whether another set on this thread has the same delivery. */
bool counter_signal_shared(const struct counter_set *set);

/* Why perf_event_open failed, and what to do about it; interned text. */
const char *counter_perf_reason(int errnum);

/* Where the period of a counted event starts in frequency mode: occurrences a second on a busy vCPU, rather too few. */
uint64_t counter_event_guess_hz(const struct counter_event *event);

#endif
