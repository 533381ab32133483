// SPDX-License-Identifier: BSD-2-Clause
/* What it costs to walk a call chain of the guest's kernel, or of a process. */
#ifndef VPROF_TEST_BENCH_BENCH_CHAIN_H
#define VPROF_TEST_BENCH_BENCH_CHAIN_H

#include <stdbool.h>

void bench_chain_open(void);
/* Nanoseconds for a chain of `depth` frames (1..127), by ORC tables or by frame pointers. */
double bench_chain_ns(bool by_orc, unsigned depth);
/* The same for user space, by tables of call frame information. */
double bench_chain_user_ns(unsigned depth);

#endif
