// SPDX-License-Identifier: BSD-2-Clause
/* Threads of the VMM beside its main one. */
#ifndef VPROF_KVM_THREAD_H
#define VPROF_KVM_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * As pthread_create, with all signals blocked but SIGSYS: they are the main thread's, and a thread takes up itself what
 * it wants; SIGSYS is what the sandbox says on the thread that made the call.
 */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *data), void *data);

#endif
