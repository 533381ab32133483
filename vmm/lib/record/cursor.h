// SPDX-License-Identifier: BSD-2-Clause
/* A place in bytes from outside that knows where they end. Bytes that are not there are not taken, and it stays. */
#ifndef VPROF_RECORD_CURSOR_H
#define VPROF_RECORD_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at;
	size_t left;
};

static inline bool cursor_take(struct cursor *cursor, void *to, size_t bytes)
{
	if (cursor->left < bytes)
		return false;
	memcpy(to, cursor->at, bytes);
	cursor->at += bytes;
	cursor->left -= bytes;
	return true;
}

static inline bool cursor_skip(struct cursor *cursor, uint64_t bytes)
{
	if (cursor->left < bytes)
		return false;
	cursor->at += bytes;
	cursor->left -= bytes;
	return true;
}

#endif
