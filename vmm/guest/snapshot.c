// SPDX-License-Identifier: BSD-2-Clause
#include "guest/snapshot.h"

#include <string.h>

bool snapshot_add(struct snapshot *snapshot, gva_t gva, const void *data, size_t bytes)
{
	if (snapshot->n == SNAPSHOT_SPANS_MAX)
		return false;
	snapshot->spans[snapshot->n++] = (struct snapshot_span){gva.value, bytes, data};
	return true;
}

static const struct snapshot_span *span_of(const struct snapshot *snapshot, uint64_t gva)
{
	for (size_t i = 0; i < snapshot->n; i++)
		if (gva - snapshot->spans[i].gva < snapshot->spans[i].bytes)
			return &snapshot->spans[i];
	return NULL;
}

bool snapshot_read(const struct snapshot *snapshot, gva_t from, void *to, size_t bytes)
{
	uint8_t *out = to;

	while (bytes > 0) {
		const struct snapshot_span *span = span_of(snapshot, from.value);

		if (!span)
			return false;
		size_t offset = from.value - span->gva;
		size_t n = MIN(bytes, span->bytes - offset);

		memcpy(out, span->data + offset, n);
		out += n;
		bytes -= n;
		from.value += n;
	}
	return true;
}
