// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profiling session on a guest: its events, a sampler and a ring for each vCPU, and statistics of all samples. Main
 * thread only, except where noted; the samplers run on the vCPU threads.
 */
#ifndef VPROF_SAMPLE_SESSION_H
#define VPROF_SAMPLE_SESSION_H

#include <glib.h>

#include "counter/counter.h"
#include "guest/guest.h"
#include "guest/os.h"
#include "sample/session_config.h"
#include "stream/ring.h"
#include "stream/statistics.h"

struct session;

/* Creates the session of `guest` and puts its samplers into guest->watchers. Call before the guest's threads start. */
struct session *session_new(struct guest *guest, GError **error);
void session_free(struct session *session); /* after the guest's threads have ended */

/*
 * Sets the delivery, or the route, for configurations that name none. Error: COUNTER_ERROR_UNAVAILABLE, when it does
 * not work on this host.
 */
bool session_prefer_delivery(struct session *session, const char *name, GError **error);

bool session_start(struct session *session, const struct session_config *config, GError **error);
/* Closes the counters; the rings stay readable. Also works right after the guest has ended. */
bool session_stop(struct session *session, GError **error);
bool session_running(const struct session *session);

/*
 * Call these around a change of what a route samples: the kernel of its guest (`other_kernel`) or the threads of its
 * vCPUs. Sampling stops in between, and goes on with the same rings and statistics. If it cannot go on, the session has
 * stopped. Without routes or without a session they do nothing.
 */
void session_suspend(struct session *session);
bool session_resume(struct session *session, bool other_kernel, GError **error);
/*
 * The number of the session, from 1 on; 0 before the first start. Offsets in its rings are not valid in another
 * session.
 */
uint64_t session_number(const struct session *session);

/* Wakes the readers of all rings, and writes the PERF_RECORD_LOST that are due. Error: STATE. */
bool session_flush(struct session *session, GError **error);
/* Sets the watermark of the present rings, and of new ones with this configuration. */
void session_set_watermark(struct session *session, size_t bytes);
/* Resumes counters that paused because a ring was full, if it has room again; to be called regularly. */
void session_resume_stalled(struct session *session);

/* Adds a sample of the client's making. Errors: STATE, when no session runs or the ring is full. */
bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error);

/* Statistics count from 0 again; sampling goes on. */
void session_reset_statistics(struct session *session);
/* Drops the rings, the statistics and the configuration. Error: STATE, while it runs. */
bool session_forget(struct session *session, GError **error);

/*
 * Calls `watcher` for what this vCPU does, in addition to the session, until session_unwatch. Both on the vCPU's
 * thread. `started` is called at once if the thread is there; `stopped` is called at the guest's end and removes the
 * watcher. False when there are WATCHERS_MAX (watch_hub.h) already.
 */
bool session_watch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher);
void session_unwatch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher);

/*
 * The delivery for overflows outside the session: the one in use, since all counter sets on a thread share it; if none
 * is, `wanted`, the preferred, or the first that works. In use until session_delivery_release. Errors:
 * COUNTER_ERROR_UNAVAILABLE.
 */
const struct counter_delivery *session_delivery_acquire(struct session *session, const char *wanted, GError **error);
void session_delivery_release(struct session *session);

struct guest *session_guest(const struct session *session);
/* What can be read in the guest's kernel; never NULL; lives as long as the session. */
const struct os_kernel *session_kernel(struct session *session);
/* What is known of the vCPU's tasks so far; on its thread. */
const struct task_cpu *session_task_cpu(const struct session *session, unsigned vcpu);
/* As session_kernel_unwinding; what it points to lives as long as the session. */
struct unwind_config session_unwinding(struct session *session);
/* The system of the guest's kernel; until that is known, the likeliest one. */
const struct guest_os *session_os(const struct session *session);

/* As session_kernel_unwind. */
bool session_unwind(struct session *session, const struct session_config *config, struct unwind_config *unwind,
                    GError **error);

/*
 * A walk through the kernel's own page tables, for the main thread, to which a vCPU leads now, or a sample has led;
 * false where none does. After session_kernel.
 */
bool session_kernel_walk(const struct session *session, struct page_walk *walk);

/* Frees `data` with the session, when no vCPU thread is left to read it. */
void session_free_later(struct session *session, void *data);

/* The unwind tables of the guest's programs. */
struct table_store *session_tables(struct session *session);

/* The configuration in force, or NULL before the first start. */
const struct session_config *session_configuration(const struct session *session);
/*
 * The attr of event e for a recording: with PERF_SAMPLE_CALLCHAIN if samples have call chains, with PERF_SAMPLE_CGROUP
 * if the guest's kernel has cgroups.
 */
void session_event_attr(const struct session *session, unsigned event, struct perf_event_attr *attr);
/* How call chains are found in the kernel, "orc" or "fp"; NULL: there are none. */
const char *session_unwinder(const struct session *session);
/* Why the kernel's ORC tables are not used, if the configuration left it open: a sentence, or NULL. */
const char *session_unwinder_why(const struct session *session);
/* Whether samples carry the pid of the guest's task. */
bool session_has_tasks(const struct session *session);
/*
 * Why samples have no pid, processes no mappings, tasks no cgroup, or modules no names, although asked for: sentences,
 * or NULL.
 */
const char *session_tasks_why(const struct session *session);
const char *session_mappings_why(const struct session *session);
const char *session_cgroups_why(const struct session *session);
const char *session_modules_why(const struct session *session);
/* Why the guest's waits or context switches are not recorded, although asked for: a sentence, or NULL. */
const char *session_waits_why(const struct session *session);
/* Why this event was chosen; NULL if it was asked for. Static text. */
const char *session_event_why(const struct session *session);
/*
 * The best route's name, and why another one was taken; NULL if it was not, or was asked for. Until the next start.
 */
const char *session_route_why(const struct session *session);
/* The delivery or route in use; NULL before the first start. */
const char *session_delivery(const struct session *session);

/* NULL before the first start. Rings live from session_start to the next session_start or session_free. */
struct ring *session_ring(const struct session *session, unsigned vcpu);

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out);

#endif
