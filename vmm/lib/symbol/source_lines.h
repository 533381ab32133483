// SPDX-License-Identifier: BSD-2-Clause
/* Which line of which source file an instruction comes from, by the DWARF line tables of an image (vprof-parse). */
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

#endif
