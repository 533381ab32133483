// SPDX-License-Identifier: BSD-2-Clause
/* What a session is to do, and what of it cannot be done. */
#ifndef VPROF_SAMPLE_SESSION_CONFIG_H
#define VPROF_SAMPLE_SESSION_CONFIG_H

#include "counter/route.h"
#include "guest/unwind.h"

#define SESSION_ERROR session_error_quark()
GQuark session_error_quark(void);
enum session_error {
	SESSION_ERROR_STATE, /* started twice, stopped without a start */
	SESSION_ERROR_RANGE,
	SESSION_ERROR_SYSTEM,
	SESSION_ERROR_BUSY,        /* somebody else has it; the message says who */
	SESSION_ERROR_DENIED,      /* it is somebody else's */
	SESSION_ERROR_UNSUPPORTED, /* this guest or this host cannot do it */
};

/* How call chains are found in the guest's kernel; in user space it is always by frame pointers. */
enum session_call_graph {
	SESSION_CALL_GRAPH_NONE,
	SESSION_CALL_GRAPH_AUTO, /* ORC if the kernel image has its tables, else frame pointers */
	SESSION_CALL_GRAPH_ORC,
	SESSION_CALL_GRAPH_FP,
};

struct session_config {
	struct counter_event events[COUNTER_EVENTS_MAX];
	size_t n_events;          /* 1..COUNTER_EVENTS_MAX; 0: the default */
	struct counter_rate rate; /* all zero: the default */
	size_t ring_data_bytes;   /* 0: VPROF_RING_DATA_BYTES_DEFAULT */
	const char *delivery;     /* NULL: the first that works */
	const char *route;        /* in its place, for a guest that has routes; NULL: the first that works */
	enum session_call_graph call_graph;
	unsigned call_depth; /* 1..UNWIND_DEPTH_MAX frames; 0: UNWIND_DEPTH_DEFAULT */
	bool call_kernel_only;
	bool host;                /* samples outside the guest say where, with a call chain of the host's code */
	bool no_tasks;            /* samples have pid 0, whoever ran */
	const char *no_tasks_why; /* the session's own: why they have; NULL: it was asked for */
	bool switches;            /* context switches are recorded, too; takes one of the guest's breakpoints */
	bool stall;             /* when a ring is nearly full: stop counting until there is room, instead of dropping */
	size_t watermark_bytes; /* unread in a ring when its reader is told; 0: a quarter of it */
};

static inline bool session_config_has_chains(const struct session_config *config)
{
	return config->call_graph != SESSION_CALL_GRAPH_NONE;
}

/*
 * Fills in what the configuration leaves open, and checks that it can be done, by the route if there is one.
 * *event_why: why the event was taken, or NULL; static text. Errors: SESSION_ERROR_RANGE, those of counter_rate_check.
 */
bool session_config_settle(struct session_config *config, const struct counter_route *route, const char **event_why,
                           GError **error);

/* session_event_attr, for samples with or without PERF_SAMPLE_CGROUP. */
void session_config_attr(const struct session_config *config, bool cgroups, unsigned event,
                         struct perf_event_attr *attr);

/* The id (PERF_SAMPLE_IDENTIFIER) of event e on vCPU v. */
uint64_t session_event_id(unsigned event, unsigned vcpu);

/* A sample made by hand. It is the first event's, and flagged with VPROF_SAMPLE_ADDED. */
struct session_sample {
	unsigned vcpu;
	uint64_t ip;
	uint16_t mode; /* PERF_RECORD_MISC_KERNEL, _USER or _HYPERVISOR */
	uint32_t pid, tid;
	uint64_t period;
};
#endif
