// SPDX-License-Identifier: BSD-2-Clause
/*
 * An initial RAM file system made from files of this host: programs with all that they need to start, where they have
 * it here, so that paths mean the same in the guest.
 */
#ifndef VPROF_INITRAMFS_INITRAMFS_H
#define VPROF_INITRAMFS_INITRAMFS_H

#include <glib.h>
#include <stdbool.h>

#define INITRAMFS_ERROR initramfs_error_quark()
GQuark initramfs_error_quark(void);
enum initramfs_error {
	INITRAMFS_ERROR_FILE,    /* a file cannot be read, or is of no kind that can be taken */
	INITRAMFS_ERROR_ELF,     /* an ELF file that the guest cannot run */
	INITRAMFS_ERROR_LIBRARY, /* a library, or an interpreter, is not on this host */
	INITRAMFS_ERROR_FORMAT,  /* a program that is neither an ELF file nor a script */
	INITRAMFS_ERROR_WRITE,
};

#define INITRAMFS_BYTES_MAX (G_GUINT64_CONSTANT(1) << 32) /* of all files */

struct initramfs;

struct initramfs *initramfs_new(void);
void initramfs_free(struct initramfs *initramfs);

/*
 * A file or a folder with all that is in it, under an absolute path. Symbolic links in folders stay links. What can be
 * executed gets what it needs, as programs do.
 */
bool initramfs_add(struct initramfs *initramfs, const char *host_path, const char *guest_path, GError **error);

/*
 * A program where it is on the host: an ELF file with its interpreter and its shared libraries, found as ld.so would;
 * or a script with its interpreter. An error names what is missing and what wants it.
 */
bool initramfs_add_program(struct initramfs *initramfs, const char *path, GError **error);

/* A file with these contents, which everybody may read. */
void initramfs_add_bytes(struct initramfs *initramfs, GBytes *bytes, const char *path);

/* A symbolic link. */
void initramfs_add_link(struct initramfs *initramfs, const char *path, const char *target);

/* An empty folder, and those above it. */
void initramfs_add_folder(struct initramfs *initramfs, const char *path);

/*
 * Writes the archive and returns its descriptor, of a file without a name. base: an initramfs on which it is laid,
 * whose links among the folders stay in force; NULL: none.
 */
int initramfs_write(const struct initramfs *initramfs, const char *base, GError **error);

#endif
