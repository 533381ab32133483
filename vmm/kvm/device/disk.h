// SPDX-License-Identifier: BSD-2-Clause
/* A disk image, and the requests of virtio-blk (virtio 1.2, 5.2.6) on it. */
#ifndef VPROF_KVM_DEVICE_DISK_H
#define VPROF_KVM_DEVICE_DISK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "kvm/device/virtio_queue.h"

#define DISK_ERROR disk_error_quark()
GQuark disk_error_quark(void);
enum disk_error { DISK_ERROR_OPEN, DISK_ERROR_SIZE, DISK_ERROR_IN_USE };

struct disk {
	char *path;
	bool read_only;
	int fd;
	uint64_t sectors; /* of 512 bytes; a partial last one is not visible */
};

/*
 * Opens an image and locks it for one writer or any number of readers, by an open file description lock, which other
 * programs can see. Free with disk_close also after a failure.
 */
bool disk_open(struct disk *disk, const char *path, bool read_only, GError **error);
void disk_close(struct disk *disk);

/*
 * Carries out one request, and returns how many bytes it wrote to the chain; 0 for a chain without room for a status,
 * which is no request. flush: each write is on the disk before it is done. *failure: 0, or the errno of the host's
 * failure.
 */
uint32_t disk_serve(const struct disk *disk, const char *id, const struct virtio_chain *chain, bool flush,
                    int *failure);

#endif
