// SPDX-License-Identifier: BSD-2-Clause
/* A cpio archive of format newc (Linux, Documentation/driver-api/early-userspace/buffer-format.rst) in a descriptor. */
#ifndef VPROF_INITRAMFS_CPIO_H
#define VPROF_INITRAMFS_CPIO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct cpio;

/* Appends to fd, which the caller keeps and closes. */
struct cpio *cpio_open(int fd);
void cpio_free(struct cpio *cpio);
/* Writes the trailer; another archive may follow. */
bool cpio_end(struct cpio *cpio, GError **error);
/* Between archives: another one, packed or not, of the file `path`. */
bool cpio_add_archive(struct cpio *cpio, const char *path, const void *bytes, size_t n, GError **error);

/* Paths are absolute; owner is root, time is 0. */
bool cpio_add_folder(struct cpio *cpio, const char *path, GError **error);
bool cpio_add_link(struct cpio *cpio, const char *path, const char *target, GError **error);
bool cpio_add_character_device(struct cpio *cpio, const char *path, unsigned major, unsigned minor, GError **error);
/* permissions: the lower 12 bits of a mode. */
bool cpio_add_file(struct cpio *cpio, const char *path, unsigned permissions, GBytes *content, GError **error);

#endif
