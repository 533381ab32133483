// SPDX-License-Identifier: BSD-2-Clause
/* What the files of a session share. */
#ifndef VPROF_SAMPLE_SESSION_PRIV_H
#define VPROF_SAMPLE_SESSION_PRIV_H

#include "sample/sampler.h"
#include "sample/session.h"
#include "sample/session_kernel.h"
#include "sample/switch_probe.h"
#include "sample/watch_hub.h"

/*
 * [I] immutable after session_new, [M] main thread only. The vCPU threads also read config between sampler_open and
 * sampler_close; the main thread does not change it then.
 */
struct session {
	struct switch_probe switch_probe;        /* first; [I] while a session with `switches` or `off_cpu` runs */
	struct guest *guest;                     /* [I] */
	struct sampler *samplers;                /* [I] one for each vCPU; their members have their own legend */
	struct watch_hub *hubs;                  /* [I] one for each vCPU, each with its sampler */
	struct vcpu_watcher **watchers;          /* [I] the hubs */
	struct ring **rings;                     /* [M] one for each vCPU once configured; the producers hold theirs */
	struct session_config config;            /* [M] */
	const struct counter_delivery *delivery; /* [M] NULL before the first start */
	const struct counter_delivery
		*in_use;                    /* [M] the delivery in use by the running session and others; NULL: none */
	unsigned n_users;                   /* [M] of it */
	const struct counter_route *route;  /* [M] instead of a delivery, for a guest with routes */
	char *route_why;                    /* [M] why `route` is not the best one; NULL: it is, or was asked for */
	char *waits_why;                    /* [M] why waits or switches of the last start are not seen; NULL */
	bool sees_switches;                 /* [M] the switch probe is there */
	bool open_call_graph;               /* [M] the last start, or a new kernel, left it to us how to unwind */
	const char *event_why;              /* [M] why the last start took its event; NULL: it was asked for */
	const char *preferred;              /* [M] the delivery for configurations that name none; NULL: any */
	struct session_kernel kernel;       /* [M] */
	struct table_store *tables;         /* [I] its members have their own legend */
	struct task_claims claims;          /* its members are atomic */
	bool cgroups;                       /* [M] samples of the last start have PERF_SAMPLE_CGROUP */
	bool configured;                    /* [M] `config` is of a start */
	bool running;                       /* [M] */
	bool suspended;                     /* [M] running, but its route is stopped */
	uint64_t number;                    /* [M] of the last start */
	GPtrArray *later;                   /* [M] freed with the session */
	struct session_statistics *zero;    /* [M] one for each vCPU: its statistics at the last reset */
	struct session_statistics *carried; /* [M] one for each vCPU: counted before the last session_resume */
	GMutex route_lock;       /* the route's thread and looks at waiting tasks take turns with the samplers */
	struct wall *wall;       /* [M] NULL: it does not look at them */
	struct off_cpu *off_cpu; /* [I] while a session with `off_cpu` runs; its members have their own legend */
	bool ended;              /* [M] the vCPU threads have ended or are ending; their rings stay */
};

/* session_route.c: opens the samplers and starts session->route; stops it and closes them; closes them alone. */
bool session_route_start(struct session *session, const struct sampler_config *config, GError **error);
void session_route_stop(struct session *session);
void session_route_close(struct session *session);

#endif
