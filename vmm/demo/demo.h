// SPDX-License-Identifier: BSD-2-Clause
/* What the demonstration guest's assembly, kernel and program agree on. */
#ifndef VPROF_DEMO_DEMO_H
#define VPROF_DEMO_DEMO_H

#define VCPUS_MAX 64
#define STACK_BYTES 4096

#ifndef __ASSEMBLER__

#include <stdint.h>

/* The number of a system call, and what its argument is. */
enum system_call {
	SYSTEM_CALL_WORK, /* does the kernel's slices at the argument, up to the first of the program's; returns how
	                     many */
	SYSTEM_CALL_DONE, /* the vCPU's program has ended; the argument: how often it looked at the clock */
};

/* The functions between which every vCPU divides its time. */
enum workload { RENDER_PAGE, TCP_CHECKSUM, PARSE_REQUEST, COPY_PAGE, WORKLOADS };

/* A round is this many slices of equal length, in an order that changes from round to round. */
#define ROUND_SLICES 20
#define SLICES_A_SECOND 1000

static inline int workload_in_kernel(enum workload workload)
{
	return workload == TCP_CHECKSUM || workload == COPY_PAGE;
}

/* The program's entry, in user mode. */
_Noreturn void user_main(uint64_t slice_ticks, uint64_t run_ticks, uint64_t seed);

#endif
#endif
