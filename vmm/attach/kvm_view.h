// SPDX-License-Identifier: BSD-2-Clause
/*
 * KVM's own view of a process's machine (bpf/kvm_view.bpf.c): any VMM, whatever it calls its threads, whoever runs it
 * and wherever its root is. The process is neither asked nor touched. Main thread only.
 */
#ifndef VPROF_ATTACH_KVM_VIEW_H
#define VPROF_ATTACH_KVM_VIEW_H

#include <sys/types.h>

#include "attach/kvm_machine.h"

struct kvm_view;

/*
 * Needs the rights to load BPF programs and to read the BTF of modules; reading the view needs the first alone. Errors:
 * GUEST_PROGRAM_ERROR.
 */
struct kvm_view *kvm_view_open(pid_t pid, GError **error);
void kvm_view_close(struct kvm_view *view);

/* The process's machine as it is now; some 0.1 ms. Errors: GUEST_PROGRAM_ERROR_KERNEL, KVM_MACHINE_ERROR. */
bool kvm_view_read(struct kvm_view *view, struct kvm_machine *machine, GError **error);

/*
 * The statistics of the vCPU with this id that KVM counts up ("exits", "halt_wait_ns", ...: those that are in
 * KVM_GET_STATS_FD too); returns how many, 0 when there is no such vCPU.
 */
size_t kvm_view_counters(struct kvm_view *view, unsigned id, struct guest_counter counters[GUEST_COUNTERS_MAX]);

#endif
