// SPDX-License-Identifier: BSD-2-Clause
/* What an ELF file needs to run: its interpreter, its libraries, and where it says that they are. */
#ifndef VPROF_INITRAMFS_ELF_LINKS_H
#define VPROF_INITRAMFS_ELF_LINKS_H

#include <glib.h>
#include <stdbool.h>

struct elf_links {
	char *interpreter;     /* NULL: static, or a library */
	GPtrArray *needed;     /* of char *, in the file's order */
	char *rpath, *runpath; /* folders, with ":" between them; NULL */
};

/* Whether it begins as an x86-64 ELF file of 64 bits does. */
bool elf_is_ours(const guint8 *bytes, gsize n);
/* Whether it begins as an ELF file of any kind. */
bool elf_is_any(const guint8 *bytes, gsize n);

/* path: for messages. Errors: INITRAMFS_ERROR_ELF. */
bool elf_links_read(struct elf_links *links, const char *path, const guint8 *bytes, gsize n, GError **error);
void elf_links_clear(struct elf_links *links);

#endif
