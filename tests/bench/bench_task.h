// SPDX-License-Identifier: BSD-2-Clause
/* The task of a sample: the running task and its cgroup, read in a guest's memory. */
#ifndef VPROF_TEST_BENCH_BENCH_TASK_H
#define VPROF_TEST_BENCH_BENCH_TASK_H

#include <stdbool.h>

void bench_task_open(void);
/* Thread time of one look at the task, with or without its cgroup, in nanoseconds. */
double bench_task_ns(bool with_cgroup);

#endif
