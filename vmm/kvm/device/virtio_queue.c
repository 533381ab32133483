// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/virtio_queue.h"

#include <linux/virtio_ring.h>
#include <string.h>

/* Both rings: 16-bit flags, 16-bit index, elements, and an event index that we did not offer to use. */
#define RING_FLAGS 0u
#define RING_INDEX 1u
#define RING_ELEMENTS 2u /* 16-bit units from the start */
#define RING_HEAD_BYTES 4u
#define RING_EVENT_BYTES 2u

_Static_assert(sizeof(struct vring_desc) == 16 && sizeof(struct vring_used_elem) == 8, "virtio 1.2, 2.7.5 and 2.7.8");

/* `bytes` of RAM at a multiple of `alignment`, or NULL. */
static void *part_at(const struct virtio_queue *queue, uint64_t gpa, uint64_t alignment, uint64_t bytes)
{
	return gpa % alignment == 0 ? memory_at(queue->memory, (gpa_t){gpa}, bytes) : NULL;
}

bool virtio_queue_start(struct virtio_queue *queue)
{
	uint64_t size = queue->size;

	if (size == 0 || size > VIRTIO_QUEUE_SIZE_MAX || (size & (size - 1)) != 0)
		return false;
	queue->descriptors =
		part_at(queue, queue->descriptors_gpa, VRING_DESC_ALIGN_SIZE, size * sizeof(struct vring_desc));
	queue->available = part_at(queue, queue->available_gpa, VRING_AVAIL_ALIGN_SIZE,
	                           RING_HEAD_BYTES + size * sizeof(uint16_t) + RING_EVENT_BYTES);
	queue->used = part_at(queue, queue->used_gpa, VRING_USED_ALIGN_SIZE,
	                      RING_HEAD_BYTES + size * sizeof(struct vring_used_elem) + RING_EVENT_BYTES);
	queue->next_available = queue->next_used = 0;
	queue->ready = queue->descriptors && queue->available && queue->used;
	return queue->ready;
}

void virtio_queue_reset(struct virtio_queue *queue)
{
	*queue = (struct virtio_queue){.memory = queue->memory};
}

/* Appends the buffer of a descriptor; NULL or the rule it breaks. */
static const char *buffer_append(const struct virtio_queue *queue, struct virtio_chain *chain,
                                 const struct vring_desc *descriptor)
{
	bool writable = (descriptor->flags & VRING_DESC_F_WRITE) != 0;

	void *at = memory_at(queue->memory, (gpa_t){descriptor->addr}, descriptor->len);
	unsigned n = chain->n_readable + chain->n_writable;
	if (descriptor->flags & VRING_DESC_F_INDIRECT)
		return "an indirect descriptor, which was not negotiated";
	if (!at)
		return "a buffer outside RAM";
	if (!writable && chain->n_writable > 0)
		return "a readable buffer behind a writable one";
	if (n == queue->size)
		return "a chain longer than the queue";
	if (virtio_buffers_bytes(chain->buffers, n) + descriptor->len > VIRTIO_CHAIN_BYTES_MAX)
		return "a request of more than 64 MiB";
	chain->buffers[n] = (struct iovec){at, descriptor->len};
	if (writable)
		chain->n_writable++;
	else
		chain->n_readable++;
	return NULL;
}

/* NULL or the rule that the chain from chain->head breaks. A loop is longer than the queue. */
static const char *chain_walk(const struct virtio_queue *queue, struct virtio_chain *chain)
{
	struct vring_desc descriptor = {.next = chain->head, .flags = VRING_DESC_F_NEXT};
	const char *why = NULL;

	while (!why && (descriptor.flags & VRING_DESC_F_NEXT)) {
		if (descriptor.next >= queue->size)
			return "a descriptor number outside the queue";
		memcpy(&descriptor, queue->descriptors + descriptor.next * sizeof(descriptor), sizeof(descriptor));
		why = buffer_append(queue, chain, &descriptor);
	}
	return why;
}

enum virtio_pop virtio_queue_pop(struct virtio_queue *queue, struct virtio_chain *chain, const char **why)
{
	/* Pairs with the driver's write barrier before its index: the ring's elements are there. */
	uint16_t index = __atomic_load_n(&queue->available[RING_INDEX], __ATOMIC_ACQUIRE);
	uint16_t waiting = (uint16_t)(index - queue->next_available);
	if (waiting == 0)
		return VIRTIO_POP_EMPTY;
	if (waiting > queue->size) {
		*why = "more requests than the queue holds";
		return VIRTIO_POP_BROKEN;
	}
	chain->head = __atomic_load_n(&queue->available[RING_ELEMENTS + queue->next_available % queue->size],
	                              __ATOMIC_RELAXED);
	chain->n_readable = chain->n_writable = 0;
	*why = chain_walk(queue, chain);
	if (*why)
		return VIRTIO_POP_BROKEN;
	queue->next_available++;
	return VIRTIO_POP_CHAIN;
}

bool virtio_queue_push(struct virtio_queue *queue, uint16_t head, uint32_t written)
{
	const struct vring_used_elem element = {.id = head, .len = written};
	uint8_t *elements = (uint8_t *)(queue->used + RING_ELEMENTS);

	memcpy(elements + queue->next_used % queue->size * sizeof(element), &element, sizeof(element));
	queue->next_used++;
	/*
	 * The driver allows interrupts and then looks at the index; we do it the other way round, with a full barrier
	 * (an exchange) in between, so one of us sees the other (virtio 1.2, 2.7.7.2).
	 */
	__atomic_exchange_n(&queue->used[RING_INDEX], queue->next_used, __ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&queue->available[RING_FLAGS], __ATOMIC_SEQ_CST) & VRING_AVAIL_F_NO_INTERRUPT);
}

uint64_t virtio_buffers_bytes(const struct iovec *buffers, unsigned count)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += buffers[i].iov_len;
	return bytes;
}

/* Calls for each piece of [skip, skip + n) of the buffers; `flat` is the other side, at the same distance. */
static size_t buffers_copy(const struct iovec *buffers, unsigned count, size_t skip, uint8_t *flat, size_t n, bool read)
{
	size_t done = 0;

	for (unsigned i = 0; i < count && done < n; i++) {
		if (skip >= buffers[i].iov_len) {
			skip -= buffers[i].iov_len;
			continue;
		}
		uint8_t *at = (uint8_t *)buffers[i].iov_base + skip;
		size_t piece = MIN(n - done, buffers[i].iov_len - skip);
		memcpy(read ? flat + done : at, read ? at : flat + done, piece);
		done += piece;
		skip = 0;
	}
	return done;
}

size_t virtio_buffers_read(const struct iovec *buffers, unsigned count, size_t skip, void *to, size_t n)
{
	return buffers_copy(buffers, count, skip, to, n, true);
}

size_t virtio_buffers_write(const struct iovec *buffers, unsigned count, size_t skip, const void *from, size_t n)
{
	return buffers_copy(buffers, count, skip, (uint8_t *)from, n, false);
}
