// SPDX-License-Identifier: BSD-2-Clause
/*
 * Symbols of an image by address. Sources: .symtab, else kallsyms decoded from the image's own tables.
 */
#ifndef VPROF_SYMBOL_SYMTAB_H
#define VPROF_SYMBOL_SYMTAB_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"

#define SYMTAB_ERROR symtab_error_quark()
GQuark symtab_error_quark(void);
enum symtab_error {
	SYMTAB_ERROR_NONE,    /* the image has no symbols of any kind */
	SYMTAB_ERROR_CORRUPT, /* it has, and they contradict themselves; the message says where */
};

struct symbol {
	uint64_t address;
	uint64_t size;    /* up to the next symbol of the same section when the source has none; never 0 */
	const char *name; /* printable UTF-8 */
	char type;        /* as nm and /proc/kallsyms print it: t T w W d D ... */
};

struct symtab;
struct symtab_builder;

/*
 * What a table may have of a guest's kernel: as much as fits into an answer of this size (include/vprof/parse.h). A
 * distribution's kernel, with 250,000 symbols, needs 16 MB. A table of 20 MiB takes 23 in memory, and vprof-parse 43.
 */
#define SYMTAB_KERNEL_BYTES_MAX (UINT64_C(20) << 20)
/* The same of one program or library from a guest's memory. */
#define SYMTAB_PROGRAM_BYTES_MAX (UINT64_C(8) << 20)

/*
 * By vprof-parse. Of a kernel: .symtab if there is one with code in it, else kallsyms. Of a program, library or module:
 * .symtab, else what a stripped one offers to be linked with (.dynsym). Mapping symbols and compiler locals ($x, .L)
 * are left out. Nothing of the image is kept: it may be freed before the table. Of an image of a guest, what is beyond
 * the limits above is left out and counted. Errors: both, and PARSER_ERROR.
 */
struct symtab *symtab_load(const struct image *image, GError **error);
/*
 * The same, with names to be shown: those of C++ and Rust as they are written in the source, if vprof-parse can. Where
 * these would need more than the limit, or than bytes_max, names stay as they are.
 */
struct symtab *symtab_load_demangled(const struct image *image, uint64_t bytes_max, GError **error);
/* As symtab_load, and the image keeps what vprof-parse says, for the next ones that load its symbols
 * (image_take_symbols). */
struct symtab *symtab_load_keeping(struct image *image, GError **error);
/*
 * In vprof-parse: the same of an image that has not slid, as much as symtab_encode makes bytes_max of; NULL without an
 * error when there are none. Errors, without a path: SYMTAB_ERROR_CORRUPT.
 */
struct symtab *symtab_parse(const struct image *image, uint64_t bytes_max, GError **error);
/*
 * The answer (include/vprof/parse.h), with what `shown` makes of names, NULL: these, where that fits into bytes_max;
 * and the table again, with the kernel's addresses slid, NULL for an answer that contradicts itself.
 */
typedef const char *(*symtab_name_fn)(const char *name);
GByteArray *symtab_encode(const struct symtab *symtab, symtab_name_fn shown, uint64_t bytes_max);
struct symtab *symtab_decode(GBytes *answer, uint64_t slide);

/* Code that a list of symbols is about. */
struct symtab_code {
	uint64_t start, bytes;
};
/*
 * Of symbols from elsewhere: `list` is called once, and calls symtab_add for each. `source` lives as long as the table.
 * NULL if no symbol is in the code, which is `n` pieces. bytes_max: as of symtab_parse.
 */
struct symtab *symtab_new_list(const char *source, const struct symtab_code *code, size_t n, uint64_t bytes_max,
                               void (*list)(struct symtab_builder *builder, void *data), void *data);
/*
 * The name is copied. size 0: up to the next one. `ends`: it marks the end of something (_etext) and covers nothing.
 * Names no one should see are left out.
 */
void symtab_add(struct symtab_builder *builder, uint64_t address, uint64_t size, char type, const char *name,
                bool ends);
void symtab_free(struct symtab *symtab);

/*
 * Forgets data and packs the rest, for a table that is kept for long and asked for code now and then, by one thread at
 * a time: symtab_find answers as before, in less memory, symtab_find_name has code only, and symtab_symbols
 * nothing. Does nothing with code further than 4 GiB apart.
 */
void symtab_keep_code(struct symtab *symtab);

/* The memory that the table takes, unless it is packed. */
uint64_t symtab_bytes(const struct symtab *symtab);
/*
 * How many symbols were left out, because all of them would take too much memory: addresses of theirs have no name. And
 * a sentence about it without an end, which the caller frees: "it has 2000000 symbols, ..."; NULL: there are none.
 */
uint64_t symtab_left_out(const struct symtab *symtab);
char *symtab_left_out_text(const struct symtab *symtab);

/* "symtab", "kallsyms" or "dynsym"; lives as long as the table. */
const char *symtab_source(const struct symtab *symtab);

/*
 * The code symbol that covers `address` (image addresses, no slide): one binary search. Data has none, and neither have
 * per-CPU symbols, with their tiny addresses. Where symbols nest, the innermost; of several at one address the one perf
 * prefers: sized, not weak, global, with fewer leading underscores, no mark of the linker (__sched_text_start), the
 * longest name, and then the first by name (aliases are stable from run to run). In a section of code that has no
 * symbols, one with the section's name, which symtab_symbols does not list. NULL in a gap.
 */
const struct symbol *symtab_find(const struct symtab *symtab, uint64_t address);
/* The data symbol that covers `address`; NULL. */
const struct symbol *symtab_find_data(const struct symtab *symtab, uint64_t address);
/* Makes an index of names, for one who asks for many of them. */
void symtab_index_names(struct symtab *symtab);
/* The first symbol of that name; NULL. */
const struct symbol *symtab_find_name(const struct symtab *symtab, const char *name);
/* Its address; 0: there is none. */
uint64_t symtab_address(const struct symtab *symtab, const char *name);

/* All of them, data too, sorted by address; at one address in the order of preference above. */
const struct symbol *symtab_symbols(const struct symtab *symtab, size_t *n);

#endif
