// SPDX-License-Identifier: BSD-2-Clause
/*
 * A driver's queue and the disk requests in it. Input: the queue's size and the places of its three parts (two bytes
 * each), then guest memory from address 0.
 */
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "kvm/device/disk.h"

#define GUEST_BYTES 0x10000u /* of RAM that the input may fill */
#define SECTORS 16u
#define REQUESTS_MAX 500u /* a device that writes into its own ring may go on for ever */

static struct memory *memory;
static struct disk disk;

static void set_up(void)
{
	if (memory)
		return;
	memory = memory_new(MEMORY_BYTES_MIN, NULL);
	disk = (struct disk){.path = (char *)"image", .fd = memfd_create("image", MFD_CLOEXEC), .sectors = SECTORS};
	g_assert(memory && disk.fd >= 0 && ftruncate(disk.fd, SECTORS * 512) == 0);
}

static void check_chain(const struct virtio_chain *chain, const struct virtio_queue *queue)
{
	const uint8_t *ram = memory_at(memory, (gpa_t){0}, MEMORY_BYTES_MIN);

	g_assert(chain->head < queue->size && chain->n_readable + chain->n_writable <= queue->size);
	for (unsigned i = 0; i < chain->n_readable + chain->n_writable; i++) {
		size_t at = (size_t)((const uint8_t *)chain->buffers[i].iov_base - ram);

		g_assert(at < MEMORY_BYTES_MIN && chain->buffers[i].iov_len <= MEMORY_BYTES_MIN - at);
	}
}

static void serve(struct virtio_queue *queue)
{
	struct virtio_chain chain;
	const char *why = NULL;
	enum virtio_pop pop = VIRTIO_POP_CHAIN;

	for (unsigned i = 0; i < REQUESTS_MAX && pop == VIRTIO_POP_CHAIN; i++) {
		pop = virtio_queue_pop(queue, &chain, &why);
		if (pop != VIRTIO_POP_CHAIN)
			break;
		int failure;
		check_chain(&chain, queue);
		uint32_t written = disk_serve(&disk, "fuzz", &chain, i % 2, &failure);
		g_assert(written <= virtio_buffers_bytes(virtio_chain_writable(&chain), chain.n_writable));
		if (written == 0)
			break;
		virtio_queue_push(queue, chain.head, written);
	}
	g_assert(pop != VIRTIO_POP_BROKEN || why);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	uint16_t setup[4];

	set_up();
	if (n < sizeof(setup))
		return 0;
	memcpy(setup, bytes, sizeof(setup));
	uint8_t *ram = memory_at(memory, (gpa_t){0}, GUEST_BYTES);
	memset(ram, 0, GUEST_BYTES);
	memcpy(ram, bytes + sizeof(setup), MIN(n - sizeof(setup), GUEST_BYTES));
	disk.read_only = setup[0] & 0x8000;
	struct virtio_queue queue = {.memory = memory,
	                             .size = setup[0] & 0x7fff,
	                             .descriptors_gpa = setup[1],
	                             .available_gpa = setup[2],
	                             .used_gpa = setup[3]};
	if (virtio_queue_start(&queue))
		serve(&queue);
	return 0;
}
