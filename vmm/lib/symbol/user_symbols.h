// SPDX-License-Identifier: BSD-2-Clause
/*
 * Symbols of the programs and libraries that a guest has mapped, from copies of their files on the host: in a folder
 * that looks like the guest's file system, in the initramfs that the guest was booted with, or at debuginfod servers;
 * and of its kernel's loadable modules, from a folder with their files. A copy with a build-id other than that of
 * the guest's file is refused.
 */
#ifndef VPROF_SYMBOL_USER_SYMBOLS_H
#define VPROF_SYMBOL_USER_SYMBOLS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/symbol/image.h"

struct user_symbol_sources {
	const char *symfs;   /* a folder; NULL */
	const char *initrd;  /* a cpio archive, packed or not, or several in one file; NULL */
	const char *modules; /* a folder like /lib/modules/VERSION; NULL */
	bool debuginfod;     /* ask the servers of $DEBUGINFOD_URLS, which takes a network and time */
	bool executables;    /* of these servers: the programs themselves only, for what debug information lacks */
	enum arch arch;      /* the guest's; copies for another are refused. ARCH_UNKNOWN: not compared */
	bool force;          /* take copies with another build-id, and say so */
};

struct user_symbols;

/* `sources` is copied. */
struct user_symbols *user_symbols_new(const struct user_symbol_sources *sources);
void user_symbols_free(struct user_symbols *symbols);

struct user_symbol {
	const char *name;
	uint64_t file_offset; /* of its first byte */
	uint64_t size;
};

/*
 * The function at byte `file_offset` of the guest's file `name`, an absolute path, or of the code of a module
 * ("[virtio_blk]", linux/module.h has where that begins). build_id NULL: not known, and not
 * compared. False when there is no copy, or nothing there. Copies are looked for once.
 */
bool user_symbols_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t build_id_bytes,
                       uint64_t file_offset, struct user_symbol *symbol);

/*
 * The symbols of a file, as many as fit into bytes_max, or none, with an error when these cannot be read; `image` is
 * not needed any more afterwards.
 */
struct user_copy;
struct user_copy *user_copy_new(const struct image *image, uint64_t bytes_max, GError **error);
/* What it takes, and symtab_left_out_text of its symbols. */
uint64_t user_copy_bytes(const struct user_copy *copy);
char *user_copy_left_out_text(const struct user_copy *copy);
void user_copy_free(struct user_copy *copy); /* NULL is fine */
/*
 * For a file of this build, of which no source has symbols: takes those of the guest's own file, from its memory, over.
 * Before they are asked for.
 */
void user_symbols_give(struct user_symbols *symbols, const uint8_t *build_id, size_t build_id_bytes,
                       struct user_copy *copy);

/* The copy itself, of which the same holds, from the first source that has one; NULL. By image_free. */
struct image *user_symbols_open(struct user_symbols *symbols, const char *name, const uint8_t *build_id,
                                size_t build_id_bytes);

/* Sentences (char *) about copies that were refused, or taken all the same. */
const GPtrArray *user_symbols_warnings(const struct user_symbols *symbols);

/* False, and why, when debuginfod cannot be asked: by this build, or because its library is not installed. */
bool user_symbols_have_debuginfod(GError **error);

#endif
