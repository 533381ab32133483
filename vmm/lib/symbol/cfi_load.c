// SPDX-License-Identifier: BSD-2-Clause
/* The call frame information of an image, by vprof-parse. */
#include <string.h>

#include "lib/parser/table.h"
#include "lib/symbol/cfi.h"
#include "lib/symbol/image_priv.h"

#define ANSWER_BYTES_MAX (CFI_TABLE_BYTES_MAX + (1u << 20))

_Static_assert(sizeof(struct cfi_statistics) % sizeof(uint64_t) == 0, "a table of numbers");

GBytes *cfi_table_load(const struct image *image, struct cfi_statistics *statistics, GError **error)
{
	g_autoptr(GBytes) answer = image_ask(image, VPROF_PARSE_FRAMES, ANSWER_BYTES_MAX, error);
	size_t n, bytes;
	const void *counts, *table;

	if (!answer) {
		g_prefix_error(error, "the call frame information of %s ", image->path);
		return NULL;
	}
	counts = table_find(answer, VPROF_PARSE_TABLE_COUNTS, sizeof(uint64_t), &n);
	table = table_find(answer, VPROF_PARSE_TABLE_FRAMES, 1, &bytes);
	if (!counts || n != sizeof(*statistics) / sizeof(uint64_t)) {
		g_set_error(
			error, IMAGE_ERROR, IMAGE_ERROR_FORMAT,
			"the call frame information of %s cannot be read: what vprof-parse says of it contradicts itself",
			image->path);
		return NULL;
	}
	memcpy(statistics, counts, sizeof(*statistics));
	if (!table || bytes == 0)
		return NULL;
	return g_bytes_new_from_bytes(
		answer, (gsize)((const char *)table - (const char *)g_bytes_get_data(answer, NULL)), bytes);
}
