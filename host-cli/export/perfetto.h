// SPDX-License-Identifier: BSD-2-Clause
/*
 * A trace as Perfetto reads it (google/perfetto, protos/perfetto/trace/): packets, of one sequence, with texts, frames
 * and call stacks once each. Readers sort the packets, so they may be put in any order. Times are ns of one clock.
 */
#ifndef VPROF_CLI_EXPORT_PERFETTO_H
#define VPROF_CLI_EXPORT_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"

struct perfetto;

/* counter: the name of what samples count. */
struct perfetto *perfetto_new(FILE *to, const char *counter);
void perfetto_free(struct perfetto *trace);

/* A track of its own; never 0. */
uint64_t perfetto_track(struct perfetto *trace, const char *name);
/* A track of a number that goes up; `unit`: "ns", "events". */
uint64_t perfetto_counter_track(struct perfetto *trace, const char *name, const char *unit);
void perfetto_counter(struct perfetto *trace, uint64_t track, uint64_t time_ns, uint64_t value);
/* The track of a thread; `process`: the name of its process. */
uint64_t perfetto_thread_track(struct perfetto *trace, uint32_t pid, uint32_t tid, const char *process,
                               const char *thread);

/* frames: the innermost first. Never 0. */
uint64_t perfetto_stack(struct perfetto *trace, const struct export_frame *frames, size_t n);
/* How many callers and functions that have called them there are: what the trace takes in memory goes with it. */
size_t perfetto_places(const struct perfetto *trace);

/* stack: of its begin; 0: none. waker: what has ended it; NULL: not told. */
void perfetto_slice(struct perfetto *trace, uint64_t track, uint64_t begin_ns, uint64_t end_ns, const char *name,
                    uint64_t stack, const char *waker);

/* counted: on this processor until then. */
void perfetto_sample(struct perfetto *trace, const struct record_sample *sample, uint64_t counted, uint64_t stack);

/* GenericKernelTaskStateEvent.TaskStateEnum */
enum perfetto_state {
	PERFETTO_RUNNABLE = 2,
	PERFETTO_RUNNING = 3,
	PERFETTO_SLEEPING = 4,
	PERFETTO_DISK_SLEEP = 5,
	PERFETTO_STOPPED = 6,
};

/* From then on; cpu: the one that it runs on, or leaves. */
void perfetto_task_state(struct perfetto *trace, uint64_t time_ns, uint32_t cpu, uint32_t tid, const char *comm,
                         enum perfetto_state state);

#endif
