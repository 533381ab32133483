// SPDX-License-Identifier: BSD-2-Clause
/* Spreads the bits of a number over all of them, for hash tables with a power of two as their size. */
#ifndef VPROF_PROFILE_HASH_H
#define VPROF_PROFILE_HASH_H

#include <stdint.h>

/* The finaliser of MurmurHash3 (public domain, A. Appleby): addresses differ in their low and middle bits. */
static inline uint64_t hash_mix(uint64_t bits)
{
	bits ^= bits >> 33;
	bits *= UINT64_C(0xff51afd7ed558ccd);
	bits ^= bits >> 33;
	bits *= UINT64_C(0xc4ceb9fe1a85ec53);
	return bits ^ bits >> 33;
}

#endif
