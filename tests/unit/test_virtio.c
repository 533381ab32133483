// SPDX-License-Identifier: BSD-2-Clause
/* Virtqueues, and the registers of a device, from a driver's side; disk requests are in tests/fuzz and tests/kvm. */
#include <check.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kvm/device/virtio_blk.h"
#include "run_suite.h"

#define SIZE 8u
#define DESCRIPTORS 0x1000u
#define AVAILABLE 0x2000u
#define USED 0x3000u
#define BUFFER 0x4000u

static struct memory *memory;
static struct virtio_queue queue;

static void *ram(uint64_t gpa)
{
	return memory_at(memory, (gpa_t){gpa}, 1);
}

static void describe(unsigned i, uint64_t gpa, uint32_t bytes, uint16_t flags, uint16_t next)
{
	const struct vring_desc descriptor = {gpa, bytes, flags, next};

	memcpy((struct vring_desc *)ram(DESCRIPTORS) + i, &descriptor, sizeof(descriptor));
}

static void offer(uint16_t head)
{
	uint16_t *available = ram(AVAILABLE);

	available[2 + available[1] % SIZE] = head;
	available[1]++;
}

static void set_up(void)
{
	memory = memory_new(MEMORY_BYTES_MIN, NULL);
	ck_assert_ptr_nonnull(memory);
	queue = (struct virtio_queue){.memory = memory,
	                              .size = SIZE,
	                              .descriptors_gpa = DESCRIPTORS,
	                              .available_gpa = AVAILABLE,
	                              .used_gpa = USED};
	ck_assert(virtio_queue_start(&queue));
}

static void tear_down(void)
{
	memory_free(memory);
}

static void assert_broken(const char *expected)
{
	struct virtio_chain chain;
	const char *why = NULL;

	offer(0);
	ck_assert_int_eq(virtio_queue_pop(&queue, &chain, &why), VIRTIO_POP_BROKEN);
	ck_assert_str_eq(why, expected);
}

START_TEST(chain_is_read_in_order)
{
	struct virtio_chain chain;
	const char *why;

	ck_assert_int_eq(virtio_queue_pop(&queue, &chain, &why), VIRTIO_POP_EMPTY);
	describe(3, BUFFER, 10, VRING_DESC_F_NEXT, 7);
	describe(7, BUFFER + 10, 6, VRING_DESC_F_NEXT, 0);
	describe(0, BUFFER + 100, 50, VRING_DESC_F_WRITE, 0);
	offer(3);
	ck_assert_int_eq(virtio_queue_pop(&queue, &chain, &why), VIRTIO_POP_CHAIN);
	ck_assert_uint_eq(chain.head, 3);
	ck_assert_uint_eq(chain.n_readable, 2);
	ck_assert_uint_eq(chain.n_writable, 1);
	ck_assert_ptr_eq(chain.buffers[1].iov_base, ram(BUFFER + 10));
	ck_assert_ptr_eq(virtio_chain_writable(&chain)->iov_base, ram(BUFFER + 100));

	char bytes[8] = {0};
	memcpy(ram(BUFFER), "0123456789abcdef", 16);
	ck_assert_uint_eq(virtio_buffers_read(chain.buffers, 2, 8, bytes, 4), 4);
	ck_assert_str_eq(bytes, "89ab");
	ck_assert_uint_eq(virtio_buffers_read(chain.buffers, 2, 14, bytes, 4), 2);
	ck_assert_uint_eq(virtio_buffers_write(virtio_chain_writable(&chain), 1, 48, "xyz", 3), 2);
	ck_assert_mem_eq(ram(BUFFER + 148), "xy\0", 3);
}
END_TEST

/* Over the end of the ring and of its 16-bit index. */
START_TEST(indices_wrap)
{
	const uint16_t *used = ram(USED);

	describe(5, BUFFER, 1, VRING_DESC_F_WRITE, 0);
	for (unsigned i = 0; i < 65536u + 2 * SIZE; i++) {
		struct virtio_chain chain;
		const char *why;

		offer(5);
		ck_assert_int_eq(virtio_queue_pop(&queue, &chain, &why), VIRTIO_POP_CHAIN);
		ck_assert(virtio_queue_push(&queue, chain.head, i));
		ck_assert_uint_eq(used[1], (uint16_t)(i + 1));
		struct vring_used_elem element;
		memcpy(&element, (const uint8_t *)used + 4 + i % SIZE * sizeof(element), sizeof(element));
		ck_assert_uint_eq(element.id, 5);
		ck_assert_uint_eq(element.len, i);
	}
	((uint16_t *)ram(AVAILABLE))[0] = VRING_AVAIL_F_NO_INTERRUPT;
	ck_assert(!virtio_queue_push(&queue, 5, 0));
}
END_TEST

START_TEST(broken_rules_are_named)
{
	describe(0, BUFFER, 1, VRING_DESC_F_NEXT, 0);
	assert_broken("a chain longer than the queue");
	describe(0, BUFFER, 1, VRING_DESC_F_NEXT, SIZE);
	assert_broken("a descriptor number outside the queue");
	describe(0, BUFFER, 1, VRING_DESC_F_INDIRECT, 0);
	assert_broken("an indirect descriptor, which was not negotiated");
	describe(0, MEMORY_BYTES_MIN - 4, 8, 0, 0);
	assert_broken("a buffer outside RAM");
	describe(0, UINT64_MAX - 4, 8, 0, 0);
	assert_broken("a buffer outside RAM");
	describe(0, BUFFER, 1, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, 1);
	describe(1, BUFFER, 1, 0, 0);
	assert_broken("a readable buffer behind a writable one");
	describe(0, 0, VIRTIO_CHAIN_BYTES_MAX, VRING_DESC_F_NEXT, 1);
	describe(1, 0, 1, 0, 0);
	assert_broken("a request of more than 64 MiB");
	((uint16_t *)ram(AVAILABLE))[1] = SIZE + 1;
	struct virtio_chain chain;
	const char *why;
	ck_assert_int_eq(virtio_queue_pop(&queue, &chain, &why), VIRTIO_POP_BROKEN);
	ck_assert_str_eq(why, "more requests than the queue holds");
}
END_TEST

START_TEST(queues_that_cannot_be)
{
	const struct virtio_queue good = queue;
	const uint32_t sizes[] = {0, 3, 6, 256, UINT32_MAX};

	for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
		queue = good;
		queue.size = sizes[i];
		ck_assert_msg(!virtio_queue_start(&queue), "size %u", sizes[i]);
	}
	const uint64_t places[] = {1, 8 * 3 + 1, MEMORY_BYTES_MIN, MEMORY_BYTES_MIN - 16, UINT64_MAX - 15};
	for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
		queue = good;
		queue.descriptors_gpa = places[i];
		ck_assert_msg(!virtio_queue_start(&queue), "descriptors at 0x%lx", places[i]);
		queue = good;
		queue.available_gpa = places[i];
		ck_assert_msg(!virtio_queue_start(&queue), "available ring at 0x%lx", places[i]);
		queue = good;
		queue.used_gpa = places[i];
		ck_assert_msg(!virtio_queue_start(&queue) && !queue.ready, "used ring at 0x%lx", places[i]);
	}
}
END_TEST

/* ---- registers ---- */

static struct virtio_device *device;
static unsigned line_changes;
static bool line_level;

static void line_set(void *data, unsigned irq, bool level)
{
	(void)data;
	ck_assert_uint_eq(irq, 5);
	ck_assert(level != line_level);
	line_level = level;
	line_changes++;
}

static uint32_t get(uint32_t offset)
{
	uint32_t value = UINT32_MAX;

	virtio_mmio_read(device, offset, (uint8_t *)&value, sizeof(value));
	return value;
}

static void put(uint32_t offset, uint32_t value)
{
	virtio_mmio_write(device, offset, (const uint8_t *)&value, sizeof(value));
}

static void device_set_up(void)
{
	set_up();
	struct disk disk = {.path = g_strdup("image"), .fd = memfd_create("image", MFD_CLOEXEC), .sectors = 1};
	ck_assert_int_eq(ftruncate(disk.fd, 512), 0);
	line_level = false;
	line_changes = 0;
	device = virtio_blk_new(&disk, "id", memory, &(struct virtio_line){.set = line_set, .irq = 5}, NULL);
	ck_assert_ptr_nonnull(device);
}

static void device_tear_down(void)
{
	virtio_device_free(device);
	tear_down();
}

static uint32_t negotiate(uint32_t low, uint32_t high)
{
	put(VIRTIO_MMIO_STATUS, 0);
	put(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
	put(VIRTIO_MMIO_DRIVER_FEATURES, low);
	put(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
	put(VIRTIO_MMIO_DRIVER_FEATURES, high);
	put(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 2); /* there is none */
	put(VIRTIO_MMIO_DRIVER_FEATURES, UINT32_MAX);
	put(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK);
	return get(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_FEATURES_OK;
}

START_TEST(features_must_be_ours)
{
	ck_assert_uint_ne(negotiate(0, 1), 0);
	ck_assert_uint_ne(negotiate(1u << VIRTIO_BLK_F_FLUSH, 1), 0);
	ck_assert_uint_eq(negotiate(0, 0), 0); /* a legacy driver */
	ck_assert_uint_eq(negotiate(1u << VIRTIO_BLK_F_DISCARD, 1), 0);
	ck_assert_uint_eq(negotiate(0, 3), 0);
}
END_TEST

static void start_queue(uint32_t size, uint32_t descriptors)
{
	put(VIRTIO_MMIO_QUEUE_SEL, 0);
	put(VIRTIO_MMIO_QUEUE_NUM, size);
	put(VIRTIO_MMIO_QUEUE_DESC_LOW, descriptors);
	put(VIRTIO_MMIO_QUEUE_AVAIL_LOW, AVAILABLE);
	put(VIRTIO_MMIO_QUEUE_USED_LOW, USED);
	put(VIRTIO_MMIO_QUEUE_READY, 1);
}

START_TEST(reset_forgets_everything)
{
	ck_assert_uint_ne(negotiate(0, 1), 0);
	start_queue(SIZE, DESCRIPTORS);
	ck_assert_uint_eq(get(VIRTIO_MMIO_QUEUE_READY), 1);
	put(VIRTIO_MMIO_QUEUE_NUM, 3); /* not any more */
	ck_assert_uint_eq(get(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_NEEDS_RESET, 0);
	put(VIRTIO_MMIO_STATUS, 0);
	ck_assert_uint_eq(get(VIRTIO_MMIO_QUEUE_READY), 0);
	ck_assert_uint_eq(get(VIRTIO_MMIO_STATUS), 0);

	start_queue(SIZE, 0xfee00000);
	ck_assert_uint_ne(get(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_NEEDS_RESET, 0);
	ck_assert_uint_eq(get(VIRTIO_MMIO_INTERRUPT_STATUS), VIRTIO_MMIO_INT_CONFIG);
	ck_assert(line_level);
	put(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_DRIVER_OK); /* does not heal it */
	ck_assert_uint_ne(get(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_NEEDS_RESET, 0);
	put(VIRTIO_MMIO_STATUS, 0);
	ck_assert_uint_eq(get(VIRTIO_MMIO_STATUS), 0);
	ck_assert(!line_level);
	ck_assert_uint_eq(line_changes, 2);
}
END_TEST

/* Registers that are none, queues that are none, and accesses of a wrong size: nothing happens. */
START_TEST(strange_accesses)
{
	uint8_t bytes[8];

	put(VIRTIO_MMIO_QUEUE_SEL, 1);
	ck_assert_uint_eq(get(VIRTIO_MMIO_QUEUE_NUM_MAX), 0);
	for (uint32_t offset = 0; offset < VIRTIO_MMIO_BYTES; offset++) {
		for (size_t n = 1; n <= sizeof(bytes); n *= 2) {
			memset(bytes, 0xff, sizeof(bytes));
			virtio_mmio_read(device, offset, bytes, n);
			memset(bytes, 0xff, sizeof(bytes));
			virtio_mmio_write(device, offset, bytes, n);
		}
	}
	put(VIRTIO_MMIO_STATUS, 0);
	ck_assert_uint_eq(get(VIRTIO_MMIO_STATUS), 0);
	virtio_mmio_read(device, VIRTIO_MMIO_CONFIG, bytes, 8);
	ck_assert_mem_eq(bytes, "\1\0\0\0\0\0\0\0", 8);
}
END_TEST

/* While the worker serves requests as fast as it can. */
START_TEST(reset_waits_for_the_worker)
{
	describe(0, BUFFER, sizeof(struct virtio_blk_outhdr), VRING_DESC_F_NEXT, 1);
	describe(1, BUFFER + 0x100, 513, VRING_DESC_F_WRITE, 0);
	for (unsigned round = 0; round < 200; round++) {
		ck_assert_uint_ne(negotiate(0, 1), 0);
		((uint16_t *)ram(AVAILABLE))[1] = 0;
		start_queue(SIZE, DESCRIPTORS);
		put(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK);
		for (unsigned i = 0; i < SIZE; i++)
			offer(0);
		put(VIRTIO_MMIO_QUEUE_NOTIFY, 0);
		put(VIRTIO_MMIO_STATUS, 0);
		uint16_t served = ((uint16_t *)ram(USED))[1];
		ck_assert_uint_le(served, SIZE);
		ck_assert(!line_level);
		((uint16_t *)ram(USED))[1] = 0;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("virtio");
	TCase *queues = tcase_create("queue"), *registers = tcase_create("registers");
	tcase_set_timeout(queues, 30); /* with a sanitizer on a busy machine */
	tcase_add_checked_fixture(queues, set_up, tear_down);
	tcase_add_test(queues, chain_is_read_in_order);
	tcase_add_test(queues, indices_wrap);
	tcase_add_test(queues, broken_rules_are_named);
	tcase_add_test(queues, queues_that_cannot_be);
	tcase_add_checked_fixture(registers, device_set_up, device_tear_down);
	tcase_add_test(registers, features_must_be_ours);
	tcase_add_test(registers, reset_forgets_everything);
	tcase_add_test(registers, strange_accesses);
	tcase_add_test(registers, reset_waits_for_the_worker);
	suite_add_tcase(suite, queues);
	suite_add_tcase(suite, registers);
	return run_suite(suite);
}
