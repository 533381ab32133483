// SPDX-License-Identifier: BSD-2-Clause
/* Which threads of a process run vCPUs, where KVM cannot be asked: by the system calls that they are in. */
#ifndef VPROF_ATTACH_VCPU_CALLS_H
#define VPROF_ATTACH_VCPU_CALLS_H

#include <sys/types.h>

#include "guest/guest.h"
#include "lib/process/kvm_process.h"

/* The vCPU file that a system call runs: the text of /proc/PID/task/TID/syscall; -1: another call, or none. */
int vcpu_calls_parse(const char *text);

/*
 * Of a process with these files: the thread of each vCPU, by the number that it has in the profile, and as the result
 * the highest number and one. Takes up to 0.3 s: a thread that runs shows no call, one that sleeps does, and most vCPUs
 * sleep now and then. 0: not all were seen; or their calls may not be read (ptrace(2), PTRACE_MODE_ATTACH).
 */
unsigned vcpu_calls_find(const struct kvm_process *process, pid_t threads[GUEST_VCPUS_MAX]);

/* The number of the i-th of `n` vCPUs with ascending ids: KVM's own, as long as there is room for all of them. */
unsigned vcpu_number(unsigned id, unsigned i, unsigned last_id);

#endif
