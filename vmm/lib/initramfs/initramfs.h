// SPDX-License-Identifier: BSD-2-Clause
/*
 * An initial RAM file system made from files of this host: programs and everything they need to start, at their paths
 * on the host, so that a path means the same in the guest.
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
 * A file, or a folder with all its contents, under an absolute path. Symbolic links in folders stay links. Executable
 * files bring what they need, as programs do.
 */
bool initramfs_add(struct initramfs *initramfs, const char *host_path, const char *guest_path, GError **error);

/*
 * A program at its path on the host: an ELF file with its interpreter and its shared libraries, found as by ld.so(8),
 * or a script with its interpreter. An error names the missing file and the file that needs it.
 */
bool initramfs_add_program(struct initramfs *initramfs, const char *path, GError **error);

/* A file with these contents, readable by all users. */
void initramfs_add_bytes(struct initramfs *initramfs, GBytes *bytes, const char *path);

/* The paths on this host of the ELF files that were added. Borrowed, of char *. */
const GPtrArray *initramfs_programs(const struct initramfs *initramfs);

/* A symbolic link. */
void initramfs_add_link(struct initramfs *initramfs, const char *path, const char *target);

/* An empty folder and its parents. */
void initramfs_add_folder(struct initramfs *initramfs, const char *path);

/*
 * Writes the archive and returns the descriptor of an unnamed file. base: an initramfs that the archive is added to, in
 * which symbolic links to folders stay links; NULL: none.
 */
int initramfs_write(const struct initramfs *initramfs, const char *base, GError **error);

#endif
