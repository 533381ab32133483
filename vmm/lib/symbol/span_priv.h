// SPDX-License-Identifier: BSD-2-Clause
/*
 * Untrusted bytes with their end. Every read names an offset and a size and is compared with what remains; nothing
 * else in this folder dereferences file contents at a computed address.
 */
#ifndef VPROF_SYMBOL_SPAN_PRIV_H
#define VPROF_SYMBOL_SPAN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *data;
	size_t n;
};

static inline bool span_holds(struct span span, uint64_t offset, uint64_t bytes)
{
	return offset <= span.n && bytes <= span.n - offset;
}

static inline bool span_slice(struct span span, uint64_t offset, uint64_t bytes, struct span *slice)
{
	if (!span_holds(span, offset, bytes))
		return false;
	*slice = (struct span){span.data + offset, (size_t)bytes};
	return true;
}

/* Copies, so that the offset needs no alignment. */
static inline bool span_read(struct span span, uint64_t offset, void *to, size_t bytes)
{
	if (!span_holds(span, offset, bytes))
		return false;
	memcpy(to, span.data + offset, bytes);
	return true;
}

/* The string at `offset`, or NULL when its NUL is not inside. */
static inline const char *span_string(struct span span, uint64_t offset)
{
	if (offset >= span.n || !memchr(span.data + offset, 0, span.n - (size_t)offset))
		return NULL;
	return (const char *)span.data + offset;
}

#endif
