// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the demonstration guest shows of itself to those who read its memory. Its kernel has the symbols
 * `demo_programs`, an array with a struct vprof_demo_program for each vCPU, and `kernel_stacks` and `user_stacks`, with
 * VPROF_DEMO_STACK_BYTES for each.
 */
#ifndef VPROF_DEMO_H
#define VPROF_DEMO_H

#define VPROF_DEMO_VCPUS_MAX 64
#define VPROF_DEMO_STACK_BYTES 4096
#define VPROF_DEMO_NAME_BYTES 16

#ifndef __ASSEMBLER__

#include <stdint.h>

/* The program of a vCPU. */
struct vprof_demo_program {
	uint32_t runs;                    /* 1 from its entry to its end */
	uint32_t id;                      /* the number of the vCPU and 1, as 0 is for those that run no program */
	char name[VPROF_DEMO_NAME_BYTES]; /* ends with a NUL */
};
_Static_assert(sizeof(struct vprof_demo_program) == 24, "no padding");

#endif
#endif
