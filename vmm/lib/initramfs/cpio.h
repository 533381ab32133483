// SPDX-License-Identifier: BSD-2-Clause
/* A cpio archive of format newc (Linux, Documentation/driver-api/early-userspace/buffer-format.rst) in a descriptor. */
#ifndef VPROF_INITRAMFS_CPIO_H
#define VPROF_INITRAMFS_CPIO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct cpio;

/* Appends to fd, which the caller keeps and closes. */
struct cpio *cpio_open(int fd, GError **error);
/* Writes the trailer. False on failure; the caller still calls cpio_free. */
bool cpio_close(struct cpio *cpio, GError **error);
void cpio_free(struct cpio *cpio);

/* Paths are absolute; owner is root, time is 0. */
bool cpio_add_folder(struct cpio *cpio, const char *path, GError **error);
bool cpio_add_link(struct cpio *cpio, const char *path, const char *target, GError **error);
bool cpio_add_character_device(struct cpio *cpio, const char *path, unsigned major, unsigned minor, GError **error);
/* permissions: the lower 12 bits of a mode. */
bool cpio_add_file(struct cpio *cpio, const char *path, unsigned permissions, GBytes *content, GError **error);

#endif
