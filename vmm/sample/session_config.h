// SPDX-License-Identifier: BSD-2-Clause
/* The configuration of a session, and what of it cannot be done. */
#ifndef VPROF_SAMPLE_SESSION_CONFIG_H
#define VPROF_SAMPLE_SESSION_CONFIG_H

#include "counter/route.h"
#include "guest/unwind.h"
#include "stream/ring.h"

#define SESSION_WALL_HZ_MAX 100u

#define SESSION_ERROR session_error_quark()
GQuark session_error_quark(void);
enum session_error {
	SESSION_ERROR_STATE, /* started twice, stopped without a start */
	SESSION_ERROR_RANGE,
	SESSION_ERROR_SYSTEM,
	SESSION_ERROR_BUSY,        /* another client has it; the message says which */
	SESSION_ERROR_DENIED,      /* it belongs to another client */
	SESSION_ERROR_UNSUPPORTED, /* this guest or this host cannot do it */
};

/* How call chains are found in the guest's kernel. In user space: by tables and frame pointers; with FP, without
 * tables. */
enum session_call_graph {
	SESSION_CALL_GRAPH_NONE,
	SESSION_CALL_GRAPH_AUTO, /* ORC if the kernel image has its tables, else frame pointers */
	SESSION_CALL_GRAPH_ORC,
	SESSION_CALL_GRAPH_FP,
};

struct session_config {
	/* Behind the n_events ones that are counted, those of waiting tasks: with wall_hz, and with off_cpu. */
	struct counter_event events[COUNTER_EVENTS_MAX + 2];
	size_t n_events;          /* 1..COUNTER_EVENTS_MAX; 0: the default */
	struct counter_rate rate; /* all zero: the default */
	size_t ring_data_bytes;   /* 0: VPROF_RING_DATA_BYTES_DEFAULT */
	const char *delivery;     /* NULL: the first that works */
	const char *route;        /* instead of a delivery, for a guest with routes; NULL: the first that works */
	enum session_call_graph call_graph;
	unsigned call_depth; /* 1..UNWIND_DEPTH_MAX frames; 0: UNWIND_DEPTH_DEFAULT */
	bool call_kernel_only;
	bool host;                /* samples outside the guest have the call chain of the host */
	bool no_tasks;            /* samples have pid 0 for all tasks */
	const char *no_tasks_why; /* set by the session: why samples have pid 0; NULL: it was asked for */
	const char *rate_why; /* set by the session: why the default rate is lower here; NULL: it is not. Static text */
	unsigned wall_hz;     /* looks per second at the tasks that wait; 0: none */
	bool idle_threads;    /* with wall_hz or off_cpu: kernel threads without work, too */
	bool off_cpu;         /* samples of each wait of a task; takes one of the guest's breakpoints */
	bool switches;        /* also record context switches; takes one of the guest's breakpoints */
	bool stall; /* when a ring is nearly full: pause counting until there is room, instead of dropping samples */
	size_t watermark_bytes; /* unread bytes at which the reader of a ring is woken; 0: a quarter of the ring */
};

static inline bool session_config_has_chains(const struct session_config *config)
{
	return config->call_graph != SESSION_CALL_GRAPH_NONE;
}

/* The numbers of the events of waiting tasks. */
static inline unsigned session_config_wall(const struct session_config *config)
{
	return (unsigned)config->n_events;
}

static inline unsigned session_config_off_cpu(const struct session_config *config)
{
	return (unsigned)config->n_events + (config->wall_hz != 0);
}

/* The events of its samples. */
static inline unsigned session_config_n_events(const struct session_config *config)
{
	return session_config_off_cpu(config) + config->off_cpu;
}

/*
 * Fills in what the configuration leaves open, and checks it against the route, if there is one. *event_why: why the
 * event was chosen, or NULL; static text. Errors: SESSION_ERROR_RANGE, those of counter_rate_check.
 */
bool session_config_settle(struct session_config *config, const struct counter_route *route, const char **event_why,
                           GError **error);

/* As session_event_attr; `cgroups`: with PERF_SAMPLE_CGROUP. */
void session_config_attr(const struct session_config *config, bool cgroups, unsigned event,
                         struct perf_event_attr *attr);

/* The id (PERF_SAMPLE_IDENTIFIER) of event e on vCPU v. */
uint64_t session_event_id(unsigned event, unsigned vcpu);

/* As sample_rings_make. Errors: RANGE, SYSTEM. */
bool session_rings_make(struct ring **rings, unsigned n, size_t data_bytes, GError **error);

/* A sample that a client makes. It belongs to the first event, and has the flag VPROF_SAMPLE_ADDED. */
struct session_sample {
	unsigned vcpu;
	uint64_t ip;
	uint16_t mode; /* PERF_RECORD_MISC_KERNEL, _USER or _HYPERVISOR */
	uint32_t pid, tid;
	uint64_t period;
};
#endif
