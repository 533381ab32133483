// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/virtio_blk.h"

#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <stdio.h>
#include <string.h>

#define FEATURE(bit) (UINT64_C(1) << (bit))

/* [I] immutable once started, [w] worker only. */
struct virtio_blk {
	struct virtio_device device;     /* first: what the ops are called with */
	struct disk disk;                /* [I] */
	char id[VIRTIO_BLK_ID_BYTES];    /* [I] not terminated when it is full */
	struct virtio_blk_config config; /* [I] */
	bool complained;                 /* [w] */
};

/* The guest hears of every failure; we say the first, which is most often a full disk. */
static void complain(struct virtio_blk *blk, int failure)
{
	if (!blk->complained)
		fprintf(stderr,
		        "vprof-vmm: disk image %s: %s; the guest gets an I/O error, as it will when this happens again\n",
		        blk->disk.path, g_strerror(failure));
	blk->complained = true;
}

static void blk_serve(struct virtio_device *device, unsigned queue)
{
	struct virtio_blk *blk = (struct virtio_blk *)device;
	struct virtio_chain chain;

	while (virtio_device_pop(device, queue, &chain)) {
		int failure;
		/* A driver that cannot flush takes every write for final (virtio 1.2, 5.2.6.2). */
		bool flush = !virtio_device_negotiated(device, VIRTIO_BLK_F_FLUSH);
		uint32_t written = disk_serve(&blk->disk, blk->id, &chain, flush, &failure);

		if (written == 0) {
			virtio_device_broken(device, "a request without a header or without room for its status");
			return;
		}
		if (failure)
			complain(blk, failure);
		virtio_device_push(device, queue, &chain, written);
	}
}

static void blk_free(struct virtio_device *device)
{
	struct virtio_blk *blk = (struct virtio_blk *)device;

	disk_close(&blk->disk);
	g_free(blk);
}

static const struct virtio_device_ops blk_ops = {
	.name = "virtio-blk", .id = VIRTIO_ID_BLOCK, .n_queues = 1, .serve = blk_serve, .free = blk_free};

struct virtio_device *virtio_blk_new(struct disk *disk, const char *id, const struct memory *memory,
                                     const struct virtio_line *line, GError **error)
{
	struct virtio_blk *blk = g_new0(struct virtio_blk, 1);

	blk->disk = *disk;
	memcpy(blk->id, id, strnlen(id, sizeof(blk->id)));
	/* A request's data may lie in as many pieces as the queue takes beside header and status. */
	blk->config = (struct virtio_blk_config){.capacity = disk->sectors, .seg_max = VIRTIO_QUEUE_SIZE_MAX - 2};
	blk->device.ops = &blk_ops;
	blk->device.features = FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_BLK_F_SEG_MAX) |
	                       FEATURE(VIRTIO_BLK_F_FLUSH) | (disk->read_only ? FEATURE(VIRTIO_BLK_F_RO) : 0);
	blk->device.config = &blk->config;
	blk->device.config_bytes = sizeof(blk->config);
	if (!virtio_device_start(&blk->device, memory, line, error)) {
		virtio_device_free(&blk->device);
		return NULL;
	}
	return &blk->device;
}
