// SPDX-License-Identifier: BSD-2-Clause
/* The registers of a virtio device in memory (virtio 1.2, 4.2.2, version 2). */
#include <linux/virtio_mmio.h>
#include <string.h>

#include "kvm/device/virtio_device.h"

#define MAGIC 0x74726976u  /* "virt" */
#define VENDOR 0x46525056u /* "VPRF" */
#define VERSION 2u

static struct virtio_queue *selected_queue(struct virtio_device *device)
{
	return device->queue_select < device->ops->n_queues ? &device->queues[device->queue_select] : NULL;
}

/* One 32-bit half of a 64-bit set of features; those beyond it are none. */
static uint32_t half(uint64_t value, uint32_t select)
{
	return select > 1 ? 0 : (uint32_t)(value >> (32 * select));
}

static void set_half(uint64_t *value, uint32_t select, uint32_t to)
{
	if (select > 1)
		return;
	*value &= ~((uint64_t)UINT32_MAX << (32 * select));
	*value |= (uint64_t)to << (32 * select);
}

static uint32_t register_read(struct virtio_device *device, uint32_t offset)
{
	const struct virtio_queue *queue = selected_queue(device);

	switch (offset) {
	case VIRTIO_MMIO_MAGIC_VALUE:
		return MAGIC;
	case VIRTIO_MMIO_VERSION:
		return VERSION;
	case VIRTIO_MMIO_DEVICE_ID:
		return device->ops->id;
	case VIRTIO_MMIO_VENDOR_ID:
		return VENDOR;
	case VIRTIO_MMIO_DEVICE_FEATURES:
		return half(device->features, device->features_select);
	case VIRTIO_MMIO_QUEUE_NUM_MAX:
		return queue ? VIRTIO_QUEUE_SIZE_MAX : 0;
	case VIRTIO_MMIO_QUEUE_READY:
		return queue && queue->ready;
	case VIRTIO_MMIO_INTERRUPT_STATUS:
		return device->interrupt_status;
	case VIRTIO_MMIO_STATUS:
		return device->status;
	case VIRTIO_MMIO_SHM_LEN_LOW: /* all ones: there is no shared memory */
	case VIRTIO_MMIO_SHM_LEN_HIGH:
		return UINT32_MAX;
	default: /* among them the configuration's generation: it never changes */
		return 0;
	}
}

/* The selected queue's own; it is set up while it is not ready (virtio 1.2, 4.2.3.2). */
static void queue_write(struct virtio_queue *queue, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case VIRTIO_MMIO_QUEUE_NUM:
		queue->size = value;
		break;
	case VIRTIO_MMIO_QUEUE_DESC_LOW:
		set_half(&queue->descriptors_gpa, 0, value);
		break;
	case VIRTIO_MMIO_QUEUE_DESC_HIGH:
		set_half(&queue->descriptors_gpa, 1, value);
		break;
	case VIRTIO_MMIO_QUEUE_AVAIL_LOW:
		set_half(&queue->available_gpa, 0, value);
		break;
	case VIRTIO_MMIO_QUEUE_AVAIL_HIGH:
		set_half(&queue->available_gpa, 1, value);
		break;
	case VIRTIO_MMIO_QUEUE_USED_LOW:
		set_half(&queue->used_gpa, 0, value);
		break;
	case VIRTIO_MMIO_QUEUE_USED_HIGH:
		set_half(&queue->used_gpa, 1, value);
		break;
	default:
		break;
	}
}

static void register_write(struct virtio_device *device, uint32_t offset, uint32_t value)
{
	struct virtio_queue *queue = selected_queue(device);

	switch (offset) {
	case VIRTIO_MMIO_DEVICE_FEATURES_SEL:
		device->features_select = value;
		break;
	case VIRTIO_MMIO_DRIVER_FEATURES_SEL:
		device->driver_select = value;
		break;
	case VIRTIO_MMIO_DRIVER_FEATURES:
		set_half(&device->driver_features, device->driver_select, value);
		break;
	case VIRTIO_MMIO_QUEUE_SEL:
		device->queue_select = value;
		break;
	case VIRTIO_MMIO_QUEUE_READY:
		if (queue)
			virtio_device_set_ready(device, queue, value & 1);
		break;
	case VIRTIO_MMIO_QUEUE_NOTIFY:
		virtio_device_notified(device, value);
		break;
	case VIRTIO_MMIO_INTERRUPT_ACK:
		virtio_device_set_interrupt(device, device->interrupt_status & ~value);
		break;
	case VIRTIO_MMIO_STATUS:
		virtio_device_set_status(device, value);
		break;
	default:
		if (queue && !queue->ready)
			queue_write(queue, offset, value);
	}
}

/* Registers take 32-bit accesses (virtio 1.2, 4.2.2.2); the device's configuration takes any. */
void virtio_mmio_read(struct virtio_device *device, uint32_t offset, uint8_t *data, size_t bytes)
{
	memset(data, 0, bytes);
	if (offset >= VIRTIO_MMIO_CONFIG) {
		size_t at = offset - VIRTIO_MMIO_CONFIG;

		if (at < device->config_bytes)
			memcpy(data, (const uint8_t *)device->config + at, MIN(bytes, device->config_bytes - at));
		return;
	}
	uint32_t value;
	if (bytes != sizeof(value))
		return;
	pthread_mutex_lock(&device->lock);
	value = register_read(device, offset);
	pthread_mutex_unlock(&device->lock);
	memcpy(data, &value, sizeof(value));
}

void virtio_mmio_write(struct virtio_device *device, uint32_t offset, const uint8_t *data, size_t bytes)
{
	uint32_t value;

	if (offset >= VIRTIO_MMIO_CONFIG || bytes != sizeof(value))
		return;
	memcpy(&value, data, sizeof(value));
	pthread_mutex_lock(&device->lock);
	register_write(device, offset, value);
	pthread_mutex_unlock(&device->lock);
}
