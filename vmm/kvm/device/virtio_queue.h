// SPDX-License-Identifier: BSD-2-Clause
/*
 * A split virtqueue (virtio 1.2, 2.7), the device's side. Every number in it is the guest's and may change at any time:
 * each is read once, checked against the queue's size and the guest's RAM, and used from our copy.
 */
#ifndef VPROF_KVM_DEVICE_VIRTIO_QUEUE_H
#define VPROF_KVM_DEVICE_VIRTIO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "kvm/host/memory.h"

#define VIRTIO_QUEUE_SIZE_MAX 128u
/* Of one request: 16 times what Linux asks for at once. Buffers may overlap, so the guest's RAM is no bound. */
#define VIRTIO_CHAIN_BYTES_MAX (64u << 20)

/* [w] worker only while `ready`; everything else is under the device's lock. */
struct virtio_queue {
	const struct memory *memory;
	uint64_t descriptors_gpa, available_gpa, used_gpa; /* as the driver has written them */
	uint32_t size;                                     /* by the driver, too */
	bool ready;
	/* Host addresses, while `ready`. */
	const uint8_t *descriptors;
	const uint16_t *available;
	uint16_t *used;
	uint16_t next_available; /* [w] free-running, as the driver's index */
	uint16_t next_used;      /* [w] */
};

/* A request: buffers that the device reads, then buffers that it writes, all of them RAM. */
struct virtio_chain {
	uint16_t head;
	unsigned n_readable, n_writable;
	struct iovec buffers[VIRTIO_QUEUE_SIZE_MAX];
};

enum virtio_pop { VIRTIO_POP_EMPTY, VIRTIO_POP_CHAIN, VIRTIO_POP_BROKEN };

/* The driver says that size and addresses are set. False: they make no queue. */
bool virtio_queue_start(struct virtio_queue *queue);
/* Back to what it was after the device's reset. */
void virtio_queue_reset(struct virtio_queue *queue);

/* The next request. VIRTIO_POP_BROKEN: *why says which rule the driver broke. */
enum virtio_pop virtio_queue_pop(struct virtio_queue *queue, struct virtio_chain *chain, const char **why);
/* Hands a request back, with so many bytes written to it. True when the driver wants an interrupt. */
bool virtio_queue_push(struct virtio_queue *queue, uint16_t head, uint32_t written);

/* Moves up to n bytes from or to `count` buffers, beginning `skip` bytes into them; returns how many it were. */
size_t virtio_buffers_read(const struct iovec *buffers, unsigned count, size_t skip, void *to, size_t n);
size_t virtio_buffers_write(const struct iovec *buffers, unsigned count, size_t skip, const void *from, size_t n);
uint64_t virtio_buffers_bytes(const struct iovec *buffers, unsigned count);

static inline const struct iovec *virtio_chain_writable(const struct virtio_chain *chain)
{
	return chain->buffers + chain->n_readable;
}

#endif
