// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profiling session on a guest: its events, one sampler and one ring for each vCPU, and what became of every sample.
 * Main thread only, except where noted; the samplers run on the vCPU threads.
 */
#ifndef VPROF_SAMPLE_SESSION_H
#define VPROF_SAMPLE_SESSION_H

#include <glib.h>

#include "counter/counter.h"
#include "guest/guest.h"
#include "guest/kernel.h"
#include "sample/ring.h"
#include "sample/session_config.h"
#include "sample/statistics.h"

struct session;

/* Makes the session of `guest` and hangs its samplers into guest->watchers. Before the guest's threads start. */
struct session *session_new(struct guest *guest, GError **error);
void session_free(struct session *session); /* after the guest's threads have ended */

/*
 * The delivery, or the guest's route, for a configuration that names none. Error: COUNTER_ERROR_UNAVAILABLE, when it
 * does not work here.
 */
bool session_prefer_delivery(struct session *session, const char *name, GError **error);

bool session_start(struct session *session, const struct session_config *config, GError **error);
/* Closes the counters; what is in the rings stays readable. Also right after the guest has ended. */
bool session_stop(struct session *session, GError **error);
bool session_running(const struct session *session);

/*
 * Around a change of what a route samples: its guest's kernel (`other_kernel`) or the threads of its vCPUs. Sampling
 * stands still in between, and goes on with the rings and statistics that there are. When it cannot go on, the session
 * has stopped. For a guest without routes, and without a session, there is nothing to do.
 */
void session_suspend(struct session *session);
bool session_resume(struct session *session, bool other_kernel, GError **error);
/* Which session it is, from 1 on; 0 before the first start. The offsets of its rings mean nothing to another. */
uint64_t session_number(const struct session *session);

/* Has the readers of the rings told of all that was sampled until now, and puts down what was lost. Error: STATE. */
bool session_flush(struct session *session, GError **error);
/* The watermark of the rings there are, and of those to come with this configuration. */
void session_set_watermark(struct session *session, size_t bytes);
/* Lets counters that stand still since a ring was full go on, if it has room again; to be called now and then. */
void session_resume_stalled(struct session *session);

/* Adds a sample made by hand. Errors: STATE, when no session runs or the ring is full. */
bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error);

/* All statistics count from 0 again; sampling goes on. */
void session_reset_statistics(struct session *session);
/* As if there had been none: rings, statistics and configuration go. Error: STATE, while it runs. */
bool session_forget(struct session *session, GError **error);

/*
 * Has `watcher` told what that vCPU does beside the session, until session_unwatch. Both on the vCPU's thread, where
 * `started` is called now if the thread is there; `stopped` is called at the guest's end and takes the watcher out.
 * False when WATCHERS_MAX (watch_hub.h) are there.
 */
bool session_watch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher);
void session_unwatch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher);

/*
 * The delivery for whoever wants overflows beside the session: the one in use while there is one, else `wanted`, the
 * preferred or the first that works (all sets on a thread have the same). In use until session_delivery_release.
 * Errors: COUNTER_ERROR_UNAVAILABLE.
 */
const struct counter_delivery *session_delivery_acquire(struct session *session, const char *wanted, GError **error);
void session_delivery_release(struct session *session);

struct guest *session_guest(const struct session *session);
/* What can be read in the guest's kernel, never NULL; lives as long as the session. */
const struct kernel_layout *session_kernel(struct session *session);
/* What is known of the vCPU's tasks by now; on its thread. */
const struct task_cpu *session_task_cpu(const struct session *session, unsigned vcpu);
/* The kernel's unwind tables; NULL: it has none, or its image is not known. They live as long as the session. */
const struct orc *session_orc(struct session *session);

/*
 * A walk through the kernel's own page tables, for the main thread; false while no sampler has seen where they are.
 */
bool session_kernel_walk(const struct session *session, struct page_walk *walk);

/* Frees `data` with the session: when no vCPU's thread is left that might look at it. */
void session_free_later(struct session *session, void *data);

/* The configuration in force, or NULL before the first start. */
const struct session_config *session_configuration(const struct session *session);
/*
 * The attr of event e as it stands in the recording: with PERF_SAMPLE_CALLCHAIN if samples have call chains, with
 * PERF_SAMPLE_CGROUP if the guest's kernel has cgroups.
 */
void session_event_attr(const struct session *session, unsigned event, struct perf_event_attr *attr);
/* How call chains are found in the kernel, "orc" or "fp"; NULL: there are none. */
const char *session_unwinder(const struct session *session);
/* Why it is frame pointers, when that was left open: a sentence, or NULL. */
const char *session_unwinder_why(const struct session *session);
/* Whether samples carry the pid of the guest's task. */
bool session_has_tasks(const struct session *session);
/*
 * Why samples have no pid, processes no mappings, tasks no cgroup, and modules no names, though it was asked for:
 * sentences, or NULL.
 */
const char *session_tasks_why(const struct session *session);
const char *session_mappings_why(const struct session *session);
const char *session_cgroups_why(const struct session *session);
const char *session_modules_why(const struct session *session);
/* Why this event was taken, or NULL for one that was asked for; static text. */
const char *session_event_why(const struct session *session);
/* Which delivery or route was chosen; NULL before the first start. */
const char *session_delivery(const struct session *session);

/* NULL before the first start. Rings live from session_start to the next session_start or session_free. */
struct ring *session_ring(const struct session *session, unsigned vcpu);

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out);

#endif
