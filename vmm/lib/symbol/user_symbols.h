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
	const char *initrd;  /* an archive that libarchive reads, or several in one file; NULL */
	const char *modules; /* a folder like /lib/modules/VERSION; NULL */
	bool debuginfod;     /* ask the servers of $DEBUGINFOD_URLS, which takes a network and time */
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
 * ("[virtio_blk]", guest/module.h has where that begins). build_id NULL: not known, and not
 * compared. False when there is no copy, or nothing there. Copies are looked for once.
 */
bool user_symbols_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t build_id_bytes,
                       uint64_t file_offset, struct user_symbol *symbol);

/* The copy itself, of which the same holds, from the first source that has one; NULL. By image_free. */
struct image *user_symbols_open(struct user_symbols *symbols, const char *name, const uint8_t *build_id,
                                size_t build_id_bytes);

/* Sentences (char *) about copies that were refused, or taken all the same. */
const GPtrArray *user_symbols_warnings(const struct user_symbols *symbols);

/* Whether debuginfod can be asked by this build. */
bool user_symbols_have_debuginfod(void);

#endif
