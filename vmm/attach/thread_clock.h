// SPDX-License-Identifier: BSD-2-Clause
/* What the host's scheduler says of another process's thread (proc(5)). */
#ifndef VPROF_ATTACH_THREAD_CLOCK_H
#define VPROF_ATTACH_THREAD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Since the thread began, in ns. The first two are exact; user and guest come in clock ticks. */
struct thread_clock {
	uint64_t cpu_ns;      /* on a CPU */
	uint64_t runnable_ns; /* waiting for one */
	uint64_t user_ns;     /* of cpu: in user mode, or in a guest */
	uint64_t guest_ns;    /* of user: in a guest */
};

/* False when there is no such thread, or the host does not tell. */
bool thread_clock_read(pid_t pid, pid_t thread, struct thread_clock *clock);

/*
 * The same out of the texts of /proc/PID/task/TID/schedstat and .../stat, with `ticks_hz` ticks a second.
 */
bool thread_clock_parse(const char *schedstat, const char *stat, uint64_t ticks_hz, struct thread_clock *clock);

#endif
