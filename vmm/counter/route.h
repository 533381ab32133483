// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sampling a guest with vCPU threads in another process. None of our code runs on those threads. A route observes from
 * outside what a vCPU was doing when a counter on its thread overflowed; for such a guest it replaces the delivery.
 */
#ifndef VPROF_COUNTER_ROUTE_H
#define VPROF_COUNTER_ROUTE_H

#include "counter/counter.h"
#include "guest/os.h"
#include "guest/task.h"
#include "guest/unwind.h"

struct record_sample;
struct vprof_wait;

/* What is known of a wait, besides its state and its time. */
struct counter_wait {
	const struct vprof_wait *facts;
	const struct task *waker, *owner; /* that it names; NULL: none */
};

/* One overflow, as a route saw it, or as our vCPU's thread did, which stands still meanwhile. */
struct counter_sample {
	unsigned vcpu;
	struct counter_overflow overflow;
	uint64_t time_ns;       /* CLOCK_MONOTONIC */
	bool in_guest;          /* false: the thread was in KVM or the VMM, or `nested` */
	bool nested;            /* the vCPU ran a guest of the guest's own, of which nothing is known */
	struct guest_regs regs; /* a route's: the ip and the mode only, unless it has registers */
	uint64_t exit_ip;       /* outside the guest: of the exit that is handled (vprof/exit.h); 0: not known */
	/* The stack at that moment, for the call chain; NULL: it is read from the guest, which has gone on. */
	const struct snapshot *snapshot;
	bool user_stack; /* it has the top of user space's, too, so that unwind tables can be used */
	/* Where the stack pointer is not known, and is to be found in the snapshot; NULL: it is known. */
	const struct unwind_stacks *stacks;
	bool by_frames; /* the call chain is walked by frame pointers, whatever the kernel has */
	uint64_t area;  /* the vCPU's per-CPU area, where it is known without its registers; 0 */
	uint64_t task;  /* the address of the task at that moment; 0: it is read from the guest, which has gone on */
	/*
	 * For a sample outside the guest, if the session wants the host's side: the host's instruction pointer; 0: not
	 * known.
	 */
	uint64_t host_ip;
	uint8_t task_state;              /* enum vprof_task_state (vprof/recording.h) */
	const struct counter_wait *wait; /* of a task that waits; else NULL */
	/*
	 * Asked once the call chain was read, which takes a while: whether it is still that of the task; else the
	 * sample is dropped. NULL: it is.
	 */
	bool (*stands)(const struct counter_sample *sample);
	/* Told what went into the ring, with all that announces it; `record` is valid during the call. NULL: not told.
	 */
	void (*written)(const struct counter_sample *sample, const struct record_sample *record);
	const uint64_t *host_chain; /* with PERF_CONTEXT_* words, innermost first, from host_ip on; NULL: none */
	size_t n_host_chain;
};

/* What a session asks of a route; valid until `stop` has returned. */
struct counter_route_config {
	const struct counter_event *events;
	size_t n_events;
	struct counter_rate rate;
	const struct unwind_config *unwind; /* NULL: no call chains */
	const struct os_kernel *kernel;     /* NULL: not known */
	bool tasks;                         /* tasks are told apart */
	bool user_stack;                    /* samples shall have user_stack */
	bool host;                          /* samples outside the guest have host_ip and host_chain */
	/* These are called on the thread of the route, for all vCPUs. */
	void (*take)(void *data, const struct counter_sample *sample);
	void (*statistics)(void *data, unsigned vcpu, const struct counter_statistics *statistics);
	void (*throttle)(void *data, unsigned vcpu, const struct counter_throttle *throttle);
	void *data;
};

struct counter_route {
	const char *name; /* "bpf", "perf", "monitor" */
	const char *summary;
	/* What samples of a Linux guest tell on this host: "tasks; kernel chains: ...; user chains: ..." */
	const char *(*gives)(struct guest *guest);
	const char *event_default; /* NULL: counter_event_default */
	unsigned frequency_hz_default;
	unsigned frequency_hz_max; /* 0: that of the event */
	bool registers;            /* samples have all registers, which tasks and call chains need */
	bool host;                 /* it sees where the thread is outside the guest */
	/* Whether kernel samples may have no stack pointer but `stacks`, on this host; NULL: never. */
	bool (*lacks_stack)(struct guest *guest);
	/* Whether nothing could make it work for this guest, so that it is not what another is compared with; NULL: no.
	 */
	bool (*impossible)(struct guest *guest);
	/* NULL when it works for this guest, else why not and what to do; new string. */
	char *(*unavailable)(struct guest *guest);
	bool (*start)(struct guest *guest, const struct counter_route_config *config, GError **error);
	/* `take`, `statistics` and `throttle` are not called after it returns. */
	void (*stop)(struct guest *guest);
};

/*
 * The route with this name; with NULL, the first that works for `guest`, which has routes, and that has registers if
 * they are needed. *why_not: if that is not the best one that could be, that one's name and why it does not work, else
 * NULL; new string; unchanged on error. Errors: UNAVAILABLE, with a reason for each route tried.
 */
const struct counter_route *counter_route_choose(struct guest *guest, const char *name, bool registers, char **why_not,
                                                 GError **error);

#endif
