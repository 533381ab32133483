// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sampling a guest with vCPU threads in another process. None of our code runs on those threads; a route is a
 * way to learn from outside what a vCPU was doing when a counter on its thread overflowed. It stands where a delivery
 * stands for a guest of our own.
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
	/* The stack at that moment, of which a call chain can be made; NULL: it is read in the guest, which runs on. */
	const struct snapshot *snapshot;
	uint64_t task; /* the task_struct of who ran at that moment; 0: it is looked up in the guest, which runs on */
	/* Of a sample outside the guest, if the session wants the host's side: where the thread was; 0: not known. */
	uint64_t host_ip;
	const uint64_t
		*host_chain; /* with perf's marks (PERF_CONTEXT_*), innermost first, from host_ip on; NULL: none */
	size_t n_host_chain;
};

/* What a session wants of a route; all of it outlives `stop`. */
struct counter_route_config {
	const struct counter_event *events;
	size_t n_events;
	struct counter_rate rate;
	const struct unwind_config *unwind; /* NULL: no call chains */
	const struct task_layout *tasks;    /* NULL: tasks are not told apart */
	gva_t interrupt_stack;              /* of struct kernel_layout; 0: not known */
	bool host;                          /* samples outside the guest have host_ip and host_chain */
	/* Both on one thread, the route's own, for all vCPUs. */
	void (*take)(void *data, const struct counter_sample *sample);
	void (*statistics)(void *data, unsigned vcpu, const struct counter_statistics *statistics);
	void *data;
};

struct counter_route {
	const char *name; /* "bpf", "perf", "monitor" */
	const char *summary;
	const char *event_default; /* NULL: that of the host, counter_event_default */
	unsigned frequency_hz_default;
	unsigned frequency_hz_max; /* 0: that of the event */
	bool registers;            /* samples have all registers, so that tasks and call chains can be found */
	bool host;                 /* it can tell where the thread is when it is outside the guest */
	/* NULL when it can be used on this guest, else why not, and what to do; new string. */
	char *(*unavailable)(struct guest *guest);
	bool (*start)(struct guest *guest, const struct counter_route_config *config, GError **error);
	/* No call of `take` or `statistics` comes after it. */
	void (*stop)(struct guest *guest);
};

/*
 * The route of this name, or with NULL the first that can be used on `guest`, which has routes, and has `registers` if
 * those are needed. Errors: UNAVAILABLE,
 * with the reason of each that was tried.
 */
const struct counter_route *counter_route_choose(struct guest *guest, const char *name, bool registers, GError **error);

#endif
