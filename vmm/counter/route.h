// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sampling a guest with vCPU threads in another process. None of our code runs on those threads. A route observes from
 * outside what a vCPU was doing when a counter on its thread overflowed; for such a guest it replaces the delivery.
 */
#ifndef VPROF_COUNTER_ROUTE_H
#define VPROF_COUNTER_ROUTE_H

#include "counter/counter.h"
#include "guest/task.h"
#include "guest/unwind.h"

/* One overflow, as a route saw it. */
struct counter_sample {
	unsigned vcpu;
	struct counter_overflow overflow;
	uint64_t time_ns;       /* CLOCK_MONOTONIC */
	bool in_guest;          /* false: the thread was in KVM or QEMU */
	struct guest_regs regs; /* rip and cpl only, unless the route has registers */
	/* The stack at that moment, for the call chain; NULL: it is read from the guest, which has gone on. */
	const struct snapshot *snapshot;
	uint64_t task; /* the task_struct of the task at that moment; 0: it is read from the guest, which has gone on */
	/*
	 * For a sample outside the guest, if the session wants the host's side: the host's instruction pointer; 0: not
	 * known.
	 */
	uint64_t host_ip;
	const uint64_t *host_chain; /* with PERF_CONTEXT_* words, innermost first, from host_ip on; NULL: none */
	size_t n_host_chain;
};

/* What a session asks of a route; valid until `stop` has returned. */
struct counter_route_config {
	const struct counter_event *events;
	size_t n_events;
	struct counter_rate rate;
	const struct unwind_config *unwind; /* NULL: no call chains */
	const struct task_layout *tasks;    /* NULL: tasks are not told apart */
	gva_t interrupt_stack;              /* of struct kernel_layout; 0: not known */
	bool host;                          /* samples outside the guest have host_ip and host_chain */
	/* Both are called on the thread of the route, for all vCPUs. */
	void (*take)(void *data, const struct counter_sample *sample);
	void (*statistics)(void *data, unsigned vcpu, const struct counter_statistics *statistics);
	void *data;
};

struct counter_route {
	const char *name; /* "bpf", "perf", "monitor" */
	const char *summary;
	const char *event_default; /* NULL: counter_event_default */
	unsigned frequency_hz_default;
	unsigned frequency_hz_max; /* 0: that of the event */
	bool registers;            /* samples have all registers, which tasks and call chains need */
	bool host;                 /* it sees where the thread is outside the guest */
	/* NULL when it works for this guest, else why not and what to do; new string. */
	char *(*unavailable)(struct guest *guest);
	bool (*start)(struct guest *guest, const struct counter_route_config *config, GError **error);
	/* `take` and `statistics` are not called after it returns. */
	void (*stop)(struct guest *guest);
};

/*
 * The route with this name; with NULL, the first that works for `guest`, which has routes, and that has registers if
 * they are needed. Errors: UNAVAILABLE, with a reason for each route tried.
 */
const struct counter_route *counter_route_choose(struct guest *guest, const char *name, bool registers, GError **error);

#endif
