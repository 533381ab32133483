// SPDX-License-Identifier: BSD-2-Clause
/* What an ELF file needs to run: its interpreter, its libraries and their search paths. */
#ifndef VPROF_INITRAMFS_ELF_LINKS_H
#define VPROF_INITRAMFS_ELF_LINKS_H

#include <glib.h>
#include <stdbool.h>

struct elf_links {
	char *interpreter;     /* NULL: static, or a library */
	GPtrArray *needed;     /* of char *, in the file's order */
	char *rpath, *runpath; /* folders, with ":" between them; NULL */
};

/* Whether the bytes begin with the header of an ELF file for this architecture. */
bool elf_is_ours(const guint8 *bytes, gsize n);
/* Whether the bytes begin with the ELF magic. */
bool elf_is_any(const guint8 *bytes, gsize n);

/* path: for messages. Errors: INITRAMFS_ERROR_ELF. */
bool elf_links_read(struct elf_links *links, const char *path, const guint8 *bytes, gsize n, GError **error);
void elf_links_clear(struct elf_links *links);

#endif
