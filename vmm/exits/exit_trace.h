// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the threads of a guest's vCPUs do, by KVM's trace points: summed up in the kernel by a BPF program
 * (exit_program.h), or from perf's records of them where a BPF program may not be loaded (exit_events.h). Main thread.
 */
#ifndef VPROF_EXITS_EXIT_TRACE_H
#define VPROF_EXITS_EXIT_TRACE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "exits/exit_clock.h"

struct exit_trace;

/*
 * For this many vCPUs (1..GUEST_VCPUS_MAX), with the rights that an engine gives up later. It costs the vCPUs nothing
 * before exit_trace_attach. Errors: EXIT_PROGRAM_ERROR, of the BPF program.
 */
struct exit_trace *exit_trace_load(unsigned vcpus, GError **error);
void exit_trace_free(struct exit_trace *trace);

/* Why there is no BPF program, a clause; NULL: there is one. Valid while the trace is. */
const char *exit_trace_without_bpf(const struct exit_trace *trace);

/* Counts from now on. A second call does nothing. */
bool exit_trace_attach(struct exit_trace *trace, GError **error);

/* Counts this thread as the vCPU, from now on and from 0. Replaces the one that it had. */
bool exit_trace_follow(struct exit_trace *trace, unsigned vcpu, pid_t thread, GError **error);

/* What is counted of this vCPU. */
struct exit_source exit_trace_source(struct exit_trace *trace, unsigned vcpu);

#endif
