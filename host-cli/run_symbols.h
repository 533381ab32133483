// SPDX-License-Identifier: BSD-2-Clause
/* What a recording keeps of an image's symbols. */
#ifndef VPROF_CLI_RUN_SYMBOLS_H
#define VPROF_CLI_RUN_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profile/histogram.h"
#include "lib/record/writer.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"

/* The kernel's code, named after the symbol at its start. */
struct code_range {
	const char *name;
	uint64_t start, bytes;
};

/* From _text on, or from _stext; without either, or without symbols, from the first executable segment. */
void kernel_code_range(const struct image *image, const struct symtab *symtab, struct code_range *range);

/* Code in the lower half of the address space, which x86-64 kernels leave to programs. Linux images have none. */
bool segment_is_user_code(const struct image *image, const struct image_segment *segment);

/* The symbols at the sampled addresses, sorted by address, each once; none without symtab. Array of *n by g_free. */
struct recording_symbol *symbols_hit(const struct histogram *histogram, const struct symtab *symtab, size_t *n);
/* The same of user space: by file and offset in it. Names live as long as `user`. */
struct recording_symbol *user_symbols_hit(const struct histogram *histogram, struct user_symbols *user, size_t *n);

#endif
