// SPDX-License-Identifier: BSD-2-Clause
/* The BPF program of the route "bpf" (bpf/guest_sample.bpf.c) in the kernel. Main thread, unless it says otherwise. */
#ifndef VPROF_ATTACH_GUEST_PROGRAM_H
#define VPROF_ATTACH_GUEST_PROGRAM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach/bpf/guest_sample.h"

#define GUEST_PROGRAM_ERROR guest_program_error_quark()
GQuark guest_program_error_quark(void);
enum guest_program_error {
	GUEST_PROGRAM_ERROR_ABSENT, /* vprof was built without it */
	GUEST_PROGRAM_ERROR_DENIED, /* the kernel lets us load none */
	GUEST_PROGRAM_ERROR_KERNEL, /* this kernel, or its KVM, lacks what the program needs */
};

struct guest_program;

/* Some 0.1 s of the kernel's time. */
struct guest_program *guest_program_load(GError **error);
void guest_program_free(struct guest_program *program);

/* What it does from the next sample on. */
void guest_program_set(struct guest_program *program, const struct guest_sample_settings *settings);

/* Sends a vCPU's samples to the ring of an event of type PERF_COUNT_SW_BPF_OUTPUT on its thread. */
bool guest_program_output(struct guest_program *program, unsigned vcpu, int event_fd, GError **error);

/*
 * Runs the program at every overflow of an event, which is enabled and is the link's from now on; on error it stays the
 * caller's.
 */
struct guest_program_link;
struct guest_program_link *guest_program_attach(struct guest_program *program, int event_fd, unsigned vcpu,
                                                unsigned event, GError **error);
void guest_program_detach(struct guest_program_link *link);

/* Samples that did not even come to a full ring, since the program was loaded. Any thread. */
uint64_t guest_program_unsent(const struct guest_program *program, unsigned vcpu);

#endif
