// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_RECORD_CLOCK_H
#define VPROF_RECORD_CLOCK_H

/* The host's clocks as records carry them, one number of nanoseconds; and timers that interrupt a thread. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/*
 * The time of `clock` in ns (clock_gettime(2)). CLOCK_MONOTONIC, which records are stamped with, is read through the
 * vDSO; CPU-time clocks cost a system call.
 */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/*
 * A timer that sends `signal`, with `value`, to the calling thread (timer_create(2), Linux). Linux checks timers of CPU
 * time (CLOCK_THREAD_CPUTIME_ID) at its own tick only (kernel/time/posix-cpu-timers.c). False: errno.
 */
static inline bool clock_timer_create(clockid_t clock, int signal, int value, timer_t *timer)
{
	struct sigevent to_thread = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal, .sigev_value.sival_int = value};

	to_thread._sigev_un._tid = gettid(); /* sigev_notify_thread_id: glibc 2.36 has no name */
	return timer_create(clock, &to_thread, timer) == 0;
}

#endif
