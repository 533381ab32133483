// SPDX-License-Identifier: BSD-2-Clause
/* The program of exit_times_program.h for hosts of arm64. */
#include "exit_times_program.h"

static volatile __u64 before; /* uses the value */

/*
 * An atomic operation of which the value is used is a full barrier (Documentation/bpf/standardization/
 * instruction-set.rst and atomic_t.txt).
 */
static void sequence_step(struct exit_times_now *now)
{
	before = __sync_fetch_and_add(&now->sequence, 1);
}
