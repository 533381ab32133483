// SPDX-License-Identifier: BSD-2-Clause
/* Threads of the VMM beside its main one, and how long one waits for a host CPU. */
#ifndef VPROF_KVM_HOST_THREAD_H
#define VPROF_KVM_HOST_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/*
 * As pthread_create, with all signals blocked but SIGSYS. Signals go to the main thread; a thread unblocks the ones
 * that it wants. SIGSYS comes from the sandbox, on the thread that made the call.
 */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *data), void *data);

/* What a thread does, for what it may do. */
enum thread_kind { THREAD_VCPU, THREAD_DEVICE };
/* Has `settle` called once on each thread of these kinds, before it works for the guest. Before the guest starts. */
void thread_on_work(void (*settle)(enum thread_kind kind));
/* On such a thread, before each piece of work. */
void thread_works(enum thread_kind kind);

/* The calling thread's /proc/.../schedstat; -1 where the host has none. */
int thread_schedstat_open(void);
/* How long that thread has been ready to run without a host CPU, in ns since its start; 0 on failure. */
uint64_t thread_waited_ns(int schedstat_fd);

#endif
