// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_RECORD_XORSHIFT_H
#define VPROF_RECORD_XORSHIFT_H

/*
 * Random numbers for the time between two samples, so that they do not run in step with anything: Marsaglia's
 * xorshift64 (Journal of Statistical Software 8, 2003), which needs no lock, no system call and no memory but its
 * state.
 */

#include <stdint.h>

/* The next one, never 0; *state must not be 0 and never becomes that. */
static inline uint64_t xorshift_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
