// SPDX-License-Identifier: BSD-2-Clause
/* A disk (virtio 1.2, 5.2) with its contents in a file or a block device of the host. */
#ifndef VPROF_KVM_DEVICE_VIRTIO_BLK_H
#define VPROF_KVM_DEVICE_VIRTIO_BLK_H

#include "kvm/device/disk.h"
#include "kvm/device/virtio_device.h"

/* A device with this disk, which it owns from now on. `id`: up to 20 characters, which the guest may read. */
struct virtio_device *virtio_blk_new(struct disk *disk, const char *id, const struct memory *memory,
                                     const struct virtio_line *line, GError **error);

#endif
