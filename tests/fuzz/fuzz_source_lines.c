// SPDX-License-Identifier: BSD-2-Clause
/*
 * The lines of a program with debug information, at addresses in and beside its segments, as annotate asks for them.
 */
#include <glib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/symbol/source_lines.h"

#define LOOKS 24 /* an image may have segments of any size */

/* One after another and then far apart: what was found last is asked first. */
static void look_up(struct source_lines *lines, uint64_t begin, uint64_t bytes)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		const char *file = NULL;
		int line = -1;
		uint64_t at = begin + (i < LOOKS / 2 ? i : bytes / LOOKS * i);

		if (!source_lines_find(lines, at, &file, &line))
			continue;
		if (!file || line <= 0)
			g_error("0x%" G_GINT64_MODIFIER "x has no line, and was said to have", at);
		(void)strlen(file);
	}
}

static void try_image(struct image *image)
{
	struct source_lines *lines = image ? source_lines_new(image) : NULL;
	const struct image_segment *segments;
	size_t n;

	if (lines) {
		segments = image_segments(image, &n);
		for (size_t i = 0; i < MIN(n, 8); i++)
			look_up(lines, segments[i].gva, segments[i].memory_bytes);
		look_up(lines, 0, UINT64_MAX);
	}
	source_lines_free(lines);
	image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autoptr(GBytes) file = g_bytes_new_static(data, size);

	try_image(image_new("fuzz", file, NULL));
	try_image(image_new_module("fuzz", file, NULL));
	return 0;
}
