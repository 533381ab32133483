// SPDX-License-Identifier: BSD-2-Clause
/* Which line of which source file an instruction comes from, by the DWARF line tables of an image (libdw). */
#ifndef VPROF_SYMBOL_SOURCE_LINES_H
#define VPROF_SYMBOL_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"

struct source_lines;

#ifdef VPROF_HAVE_SOURCE_LINES
/* NULL when the image has no debug information. The image must outlive the result. */
struct source_lines *source_lines_new(const struct image *image);
void source_lines_free(struct source_lines *lines);

/* `address` as the image gives it, without slide. *file lives as long as `lines`. False when nothing is known. */
bool source_lines_find(struct source_lines *lines, uint64_t address, const char **file, int *line);
#else
static inline struct source_lines *source_lines_new(const struct image *image)
{
	(void)image;
	return NULL;
}

static inline void source_lines_free(struct source_lines *lines)
{
	(void)lines;
}

static inline bool source_lines_find(struct source_lines *lines, uint64_t address, const char **file, int *line)
{
	(void)lines, (void)address, (void)file, (void)line;
	return false;
}
#endif

#endif
