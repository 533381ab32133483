// SPDX-License-Identifier: BSD-2-Clause
/*
 * The same as exit_program.h for users who may open perf events of KVM's trace points and load no BPF program: their
 * records, and those of context switches, are read by a thread. It costs a vCPU's exit more, and while a thread waits
 * for a processor after a wake-up it counts as asleep: the scheduler's trace points are not a thread's own.
 * Main thread, unless it says otherwise. Errors: EXIT_PROGRAM_ERROR.
 */
#ifndef VPROF_EXITS_EXIT_EVENTS_H
#define VPROF_EXITS_EXIT_EVENTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "exits/exit_clock.h"

struct exit_events;

/* Reads the trace points' formats, which takes rights that an engine gives up later, and tries whether they open. */
struct exit_events *exit_events_load(unsigned vcpus, GError **error);
void exit_events_free(struct exit_events *events);

/* Starts the thread. A second call does nothing. */
bool exit_events_attach(struct exit_events *events, GError **error);

/* As exit_program_follow. */
bool exit_events_follow(struct exit_events *events, unsigned vcpu, pid_t thread, GError **error);

/* As exit_source has it: `data` is a struct exit_events. Up to the moment of the call. Any thread. */
void exit_events_copy(void *data, unsigned vcpu, struct exit_times_vcpu *to);

/* ---- for exit_events.c and its test ---- */

enum exit_point {
	EXIT_POINT_EXIT,
	EXIT_POINT_ENTRY,
	EXIT_POINT_RETURN,
	EXIT_POINT_RUN,
	EXIT_POINT_PORT,
	EXIT_POINT_MMIO,
	EXIT_POINT_HALTED,
	EXIT_POINTS
};

/* Takes a record of perf's into account. `ids`: numbers of the trace points. Records of other kinds are skipped. */
struct perf_event_header;
void exit_events_take(const struct perf_event_header *record, size_t bytes, const uint64_t ids[EXIT_POINTS],
                      struct exit_times_vcpu *vcpu);

#endif
