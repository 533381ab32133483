// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/thread.h"

#include <fcntl.h>
#include <signal.h>
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
