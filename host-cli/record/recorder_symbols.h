// SPDX-License-Identifier: BSD-2-Clause
/* What a recording keeps of an image's symbols. */
#ifndef VPROF_CLI_RECORD_RECORDER_SYMBOLS_H
#define VPROF_CLI_RECORD_RECORDER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "lib/profile/histogram.h"
#include "lib/record/writer.h"
#include "lib/symbol/host_symbols.h"
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

/* Adds the symbols at the sampled addresses to `symbols` (struct recording_symbol); none without symtab. */
void symbols_hit(const struct histogram *histogram, const struct symtab *symtab, GArray *symbols);
/* The same for user space and the kernel's modules, by file and offset. Names live as long as `user`. */
void user_symbols_hit(const struct histogram *histogram, struct user_symbols *user, GArray *symbols);

/* The same for the host's code, by address. Names live as long as `host`. */
void host_symbols_hit(const struct histogram *histogram, struct host_symbols *host, GArray *symbols);

/* Sorts them in the order of a recording and removes duplicates. */
void symbols_order(GArray *symbols);
/* The same for symbols of the host, which are sorted by address only. */
void symbols_order_addresses(GArray *symbols);
/* The same for symbols of several kernels: an address with different symbols in two of them gets none. */
void symbols_order_certain(GArray *symbols);

#endif
