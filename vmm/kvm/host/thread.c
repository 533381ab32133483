// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *data), void *data)
{
	pthread_attr_t attr;
	sigset_t blocked, before;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	sigfillset(&blocked);
	sigdelset(&blocked, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	int failed = pthread_create(thread, &attr, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return failed;
}
