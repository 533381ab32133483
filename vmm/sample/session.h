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
#include "guest/unwind.h"
#include "sample/ring.h"

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

/*
 * What became of every overflow and every record; the names are the control protocol's. Where one of the kernels'
 * profilers has a word it is that: NetBSD's tprof (sample to dropbuf_sample), OpenBSD's dt (readevt to recurevt),
 * FreeBSD's hwpmc (intr_*). All are exact but for what is said of them.
 */
#define SESSION_STATISTICS(X)                                                                                       \
	X(sample, "samples written to the ring")                                                                    \
	X(overflow, "counter overflows seen: sample + dropbuf_sample + filtered + quirk")                           \
	X(expected, "overflows that the counted events amount to, as of the last overflow")                         \
	X(buf, "times that the ring's reader was told to come: at the watermark, by a flush, at the end")           \
	X(emptybuf, "flushes and ends that found nothing new in the ring")                                          \
	X(dropbuf, "times that the ring was full, until there was room again: a PERF_RECORD_LOST each")             \
	X(dropbuf_sample, "samples dropped because the ring was full")                                              \
	X(dropbuf_task, "records about tasks that found no room in the ring, and were tried again")                 \
	X(readevt, "records that the ring's reader has given back")                                                 \
	X(dropevt, "records of any kind that found no room in the ring")                                            \
	X(skiptick, "timer ticks that found the vCPU thread asleep, not written")                                   \
	X(recurevt,                                                                                                 \
	  "times that an overflow came while others were being recorded; it is taken next. Deliveries with a "      \
	  "handler only: sigmask sees it next, and does not know when it came")                                     \
	X(intr_processed, "overflow signals taken: overflow, skiptick and those that came together")                \
	X(intr_ignored, "overflow signals on the vCPU thread that were for no open event, as of the last overflow") \
	X(intr_bufferfull, "overflows that found the ring full: dropbuf_sample, and stalls")                        \
	X(stalls, "times that the counters were stopped because the ring was nearly full")                          \
	X(stalled_ns, "nanoseconds for which they were")                                                            \
	X(throttled, "overflows that the host throttled or coalesced")                                              \
	X(in_hypervisor, "samples that fell outside the guest, written as HYPERVISOR")                              \
	X(filtered, "overflows in a mode or a task that is left out, not written")                                  \
	X(quirk, "overflows inside a page of a host quirk, not written")                                            \
	X(added, "samples made by hand (sample-add), written beside the others")                                    \
	X(switches, "context switches written, twice each: out of one task, into another")                          \
	X(truncated, "call chains that do not reach the first frame of their stack")                                \
	X(chain_end, "call chains that reached the first frame of their stack")                                     \
	X(chain_bad_frame, "call chains cut where a frame cannot be right")                                         \
	X(chain_no_entry, "call chains cut at code that the unwind table does not cover")                           \
	X(chain_depth, "call chains cut at the depth limit")                                                        \
	X(chain_unreadable, "call chains cut at guest memory that cannot be read")                                  \
	X(unstepped, "times that the guest ran what this host cannot step, with the event steps: CPL 3 on some")    \
	X(no_task, "samples whose task could not be read, written with pid -1")

struct session_statistics {
#define X(name, help) uint64_t name;
	SESSION_STATISTICS(X)
#undef X
};

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
 * stands still in between, and goes on with the rings and figures that there are. When it cannot go on, the session
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

/* A sample made by hand. It is the first event's, and flagged with VPROF_SAMPLE_ADDED. */
struct session_sample {
	unsigned vcpu;
	uint64_t ip;
	uint16_t mode; /* PERF_RECORD_MISC_KERNEL, _USER or _HYPERVISOR */
	uint32_t pid, tid;
	uint64_t period;
};
/* Errors: STATE, when no session runs or the ring is full. */
bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error);

/* All figures count from 0 again; sampling goes on. */
void session_reset_statistics(struct session *session);
/* As if there had been none: rings, figures and configuration go. Error: STATE, while it runs. */
bool session_forget(struct session *session, GError **error);

/*
 * Has `watcher` told what that vCPU does beside the session, until session_unwatch. Both on the vCPU's thread, where
 * `started` is called now if the thread is there; `stopped` is called at the guest's end and takes the watcher out.
 * False when SESSION_WATCHERS_MAX are there.
 */
#define SESSION_WATCHERS_MAX 64u
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

/* The id (PERF_SAMPLE_IDENTIFIER) of event e on vCPU v. */
uint64_t session_event_id(unsigned event, unsigned vcpu);

/* NULL before the first start. Rings live from session_start to the next session_start or session_free. */
struct ring *session_ring(const struct session *session, unsigned vcpu);

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out);

#endif
