// SPDX-License-Identifier: BSD-2-Clause
/* What the files of the session share. */
#ifndef VPROF_SAMPLE_SESSION_PRIV_H
#define VPROF_SAMPLE_SESSION_PRIV_H

#include "sample/sampler.h"
#include "sample/session.h"
#include "sample/switch_probe.h"
#include "sample/watch_hub.h"

/*
 * [I] immutable after session_new, [M] main thread only. config is also read by the vCPU threads, but only between
 * sampler_open and sampler_close, when the main thread leaves it alone.
 */
struct session {
	struct switch_probe switch_probe;        /* first; [I] while a session with `switches` runs */
	struct guest *guest;                     /* [I] */
	struct sampler *samplers;                /* [I] one for each vCPU; their members have their own legend */
	struct watch_hub *hubs;                  /* [I] one for each vCPU, each with its sampler */
	struct vcpu_watcher **watchers;          /* [I] the hubs */
	struct ring **rings;                     /* [M] one for each vCPU once configured; the producers hold theirs */
	struct session_config config;            /* [M] */
	const struct counter_delivery *delivery; /* [M] NULL before the first start */
	const struct counter_delivery *in_use;   /* [M] by the running session and others; NULL: by nobody */
	unsigned n_users;                        /* [M] of it */
	const struct counter_route *route;       /* [M] in place of a delivery, of a guest that has routes */
	const char *event_why;                   /* [M] why the event of the last start; NULL: it was asked for */
	const char *preferred;                   /* [M] delivery of a configuration without one; NULL: any */
	struct orc *orc;                         /* [M] NULL: not needed yet, or the kernel has none */
	char *orc_why;                           /* [M] why it has none; NULL */
	struct unwind_config unwind;             /* [M] read by the vCPU threads as config is */
	struct kernel_layout *kernel;            /* [M] NULL: not needed yet; read by the vCPU threads as config is */
	struct task_claims claims;               /* its members are atomic */
	GPtrArray *old_kernels, *old_orcs;       /* [M] of kernels that the guest had before; others may know them */
	bool cgroups;                            /* [M] samples of the last start have PERF_SAMPLE_CGROUP */
	bool configured;                         /* [M] `config` is of a start */
	bool running;                            /* [M] */
	bool suspended;                          /* [M] running, and its route stands still */
	uint64_t number;                         /* [M] of the last start */
	GPtrArray *later;                        /* [M] to be freed with it */
	struct session_statistics *zero;         /* [M] one for each vCPU: its figures at the last reset */
	struct session_statistics *carried; /* [M] likewise: counted by its sampler until the last session_resume */
	bool ended; /* [M] the vCPU threads have gone, or still are about to; their rings stay */
};

static inline bool session_config_has_chains(const struct session_config *config)
{
	return config->call_graph != SESSION_CALL_GRAPH_NONE;
}

/*
 * session_config.c: fills in what the configuration leaves open, and checks that it can be done, by the route if there
 * is one. *event_why: why the event was taken, or NULL. Errors: SESSION_ERROR_RANGE, those of counter_rate_check.
 */
bool session_config_settle(struct session_config *config, const struct counter_route *route, const char **event_why,
                           GError **error);

/* session_kernel.c: what samplers need of the guest's kernel image, which is opened for it once. */
bool session_kernel_prepare(struct session *session, const struct session_config *config, GError **error);
/* The guest has another kernel. Pids begin anew with it, and so do the tasks that have been announced. */
void session_kernel_forget(struct session *session);

#endif
