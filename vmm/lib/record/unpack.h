// SPDX-License-Identifier: BSD-2-Clause
/* Unpacks what `perf record -z` packed: one zstd stream that goes on from record to record. */
#ifndef VPROF_RECORD_UNPACK_H
#define VPROF_RECORD_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpacker;

#ifdef VPROF_HAVE_ZSTD

struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *unpacker);

/*
 * Takes from *from (*n bytes, both are moved on) and fills `to`. All is taken and nothing is held back when *n is 0 and
 * less than `room` came out. False: the bytes are damaged.
 */
bool unpacker_step(struct unpacker *unpacker, const uint8_t **from, size_t *n, uint8_t *to, size_t room,
                   size_t *unpacked);

#else

/* NULL: built without libzstd. */
static inline struct unpacker *unpacker_new(void)
{
	return NULL;
}

static inline void unpacker_free(struct unpacker *unpacker)
{
	(void)unpacker;
}

static inline bool unpacker_step(struct unpacker *unpacker, const uint8_t **from, size_t *n, uint8_t *to, size_t room,
                                 size_t *unpacked)
{
	(void)unpacker, (void)from, (void)n, (void)to, (void)room, (void)unpacked;
	return false;
}

#endif
#endif
