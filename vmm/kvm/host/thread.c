// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/thread.h"

#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

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

static void (*_Atomic settle_thread)(enum thread_kind kind);
static _Thread_local bool settled;

void thread_on_work(void (*settle)(enum thread_kind kind))
{
	/* Release: what it reads was written before. */
	atomic_store_explicit(&settle_thread, settle, memory_order_release);
}

void thread_works(enum thread_kind kind)
{
	if (G_LIKELY(settled))
		return;
	void (*settle)(enum thread_kind kind) = atomic_load_explicit(&settle_thread, memory_order_acquire);

	if (!settle)
		return;
	settled = true;
	settle(kind);
}

int thread_schedstat_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* "time on a CPU, run delay, timeslices" in ns (Documentation/scheduler/sched-stats.rst). */
uint64_t thread_waited_ns(int schedstat_fd)
{
	char text[96], *after_cpu_time;
	ssize_t n = schedstat_fd < 0 ? 0 : pread(schedstat_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &after_cpu_time, 10);
	return strtoull(after_cpu_time, NULL, 10);
}
