// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which line of which source file an instruction comes from, and where the code of a line is, by the DWARF line tables
 * of an image (vprof-parse).
 */
#ifndef VPROF_SYMBOL_SOURCE_LINES_H
#define VPROF_SYMBOL_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"

struct source_lines;

/*
 * Of the `bytes` (at most 1 MiB) from address `start` on, as the image gives it, without slide. NULL when the image has
 * no debug information, and with IMAGE_ERROR when it cannot be read.
 */
struct source_lines *source_lines_new(const struct image *image, uint64_t start, uint64_t bytes, GError **error);
/* The same of what vprof-parse says, which is checked. NULL: it contradicts itself. */
struct source_lines *source_lines_decode(GBytes *answer, uint64_t start, uint64_t bytes);
void source_lines_free(struct source_lines *lines);

/* *file lives as long as `lines`. False when nothing is known. */
bool source_lines_find(const struct source_lines *lines, uint64_t address, const char **file, int *line);

struct source_place {
	uint64_t address;
	const char *file; /* lives as long as the lines */
	int line;
};

/*
 * The places where statements of a source file begin, inlined copies included. `file`: its path, or the end of it from
 * behind a slash on ("fs/open.c"), which several files may have. NULL as source_lines_new.
 */
struct source_lines *source_lines_new_file(const struct image *image, const char *file, GError **error);
/* The same of what vprof-parse says, which is checked. NULL: it contradicts itself. */
struct source_lines *source_lines_decode_file(GBytes *answer);
/* The i-th of source_lines_new_file, by file, line and address; false behind the last. */
bool source_lines_place(const struct source_lines *lines, size_t i, struct source_place *place);

#endif
