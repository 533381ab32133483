// SPDX-License-Identifier: BSD-2-Clause
/* A position in untrusted bytes that knows where they end. It stays where it is when bytes are missing. */
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
