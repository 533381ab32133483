// SPDX-License-Identifier: BSD-2-Clause
/*
 * The BPF program (bpf/exit_times_program.h) that sums up, at the trace points of KVM and of the scheduler, what the
 * threads of a guest's vCPUs do. Main thread, unless it says otherwise.
 */
#ifndef VPROF_EXITS_EXIT_PROGRAM_H
#define VPROF_EXITS_EXIT_PROGRAM_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "exits/bpf/exit_times.h"

#define EXIT_PROGRAM_ERROR exit_program_error_quark()
GQuark exit_program_error_quark(void);
enum exit_program_error {
	EXIT_PROGRAM_ERROR_ABSENT, /* vprof was built without it */
	EXIT_PROGRAM_ERROR_DENIED, /* the kernel lets us load no program, or read no trace points */
	EXIT_PROGRAM_ERROR_KERNEL, /* this kernel, or its KVM, lacks what the program needs */
};

struct exit_program;

/*
 * Loads the program for this many vCPUs (1..GUEST_VCPUS_MAX), and takes what attaching it needs the rights for that an
 * engine gives up later. It costs the vCPUs nothing before exit_program_attach.
 */
struct exit_program *exit_program_load(unsigned vcpus, GError **error);
void exit_program_free(struct exit_program *program);

/* Runs it at the trace points from now on. A second call does nothing. */
bool exit_program_attach(struct exit_program *program, GError **error);

/* Counts this thread as the vCPU, from now on and from 0. Replaces the one that it had. */
bool exit_program_follow(struct exit_program *program, unsigned vcpu, pid_t thread, GError **error);

/* What the program writes, while it writes it; for exit_clock.c. Any thread. */
const struct exit_times_vcpu *exit_program_vcpu(const struct exit_program *program, unsigned vcpu);

#endif
