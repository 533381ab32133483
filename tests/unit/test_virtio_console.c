// SPDX-License-Identifier: BSD-2-Clause
/* The virtio console's port, from a driver's side: how it is announced, opened, and what goes through it. */
#include <check.h>
#include <linux/virtio_config.h>
#include <linux/virtio_console.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>
#include <stdio.h>
#include <string.h>

#include "kvm/device/virtio_console.h"
#include "run_suite.h"

#define SIZE 8u
#define BUFFER_BYTES 256u
#define PATIENCE_US 5000000

enum { INPUT, OUTPUT, CONTROL_TO_GUEST, CONTROL, QUEUES };

/* Queue i has its parts and its buffers, one for each descriptor, in 64 KiB of its own. */
#define DESCRIPTORS(i) (0x10000u * ((i) + 1))
#define AVAILABLE(i) (DESCRIPTORS(i) + 0x1000)
#define USED(i) (DESCRIPTORS(i) + 0x2000)
#define BUFFER(i, slot) (DESCRIPTORS(i) + 0x3000 + (slot)*BUFFER_BYTES)

static struct memory *memory;
static struct virtio_device *device;
static uint16_t seen[QUEUES]; /* of the used rings */

static GMutex output_lock;
static GString *output;
static gsize room; /* what `output` takes before it wants a pause */

static bool take_output(void *data, const uint8_t *bytes, size_t n)
{
	(void)data;
	g_mutex_lock(&output_lock);
	g_string_append_len(output, (const char *)bytes, (gssize)n);
	bool more = output->len < room;
	g_mutex_unlock(&output_lock);
	return more;
}

static gsize output_bytes(void)
{
	g_mutex_lock(&output_lock);
	gsize n = output->len;
	g_mutex_unlock(&output_lock);
	return n;
}

static void line_set(void *data, unsigned irq, bool level)
{
	(void)data;
	(void)irq;
	(void)level;
}

static void *ram(uint64_t gpa)
{
	return memory_at(memory, (gpa_t){gpa}, 1);
}

static void put(uint32_t offset, uint32_t value)
{
	virtio_mmio_write(device, offset, (const uint8_t *)&value, sizeof(value));
}

static void queue_start(unsigned i)
{
	put(VIRTIO_MMIO_QUEUE_SEL, i);
	put(VIRTIO_MMIO_QUEUE_NUM, SIZE);
	put(VIRTIO_MMIO_QUEUE_DESC_LOW, DESCRIPTORS(i));
	put(VIRTIO_MMIO_QUEUE_AVAIL_LOW, AVAILABLE(i));
	put(VIRTIO_MMIO_QUEUE_USED_LOW, USED(i));
	put(VIRTIO_MMIO_QUEUE_READY, 1);
}

/* Hands the buffer `slot` of a queue over. */
static void offer(unsigned queue, unsigned slot, uint32_t bytes, bool writable)
{
	const struct vring_desc descriptor = {
		.addr = BUFFER(queue, slot), .len = bytes, .flags = writable ? VRING_DESC_F_WRITE : 0};
	uint16_t *available = ram(AVAILABLE(queue));

	memcpy((struct vring_desc *)ram(DESCRIPTORS(queue)) + slot, &descriptor, sizeof(descriptor));
	available[2 + available[1] % SIZE] = (uint16_t)slot;
	__atomic_store_n(&available[1], (uint16_t)(available[1] + 1), __ATOMIC_RELEASE);
	put(VIRTIO_MMIO_QUEUE_NOTIFY, queue);
}

/* Waits for the next buffer that the device is done with: its contents, and how much of it the device wrote. */
static const char *await(unsigned queue, uint32_t *written)
{
	const uint16_t *used = ram(USED(queue));
	gint64 deadline = g_get_monotonic_time() + PATIENCE_US;

	while (__atomic_load_n(&used[1], __ATOMIC_ACQUIRE) == seen[queue]) {
		ck_assert_msg(g_get_monotonic_time() < deadline, "queue %u stands still", queue);
		g_usleep(100);
	}
	struct vring_used_elem element;
	memcpy(&element, (const uint8_t *)used + 4 + seen[queue]++ % SIZE * sizeof(element), sizeof(element));
	*written = element.len;
	return ram(BUFFER(queue, element.id));
}

static void say(uint16_t event, uint16_t value)
{
	const struct virtio_console_control message = {.id = 0, .event = event, .value = value};
	uint32_t written;

	memcpy(ram(BUFFER(CONTROL, 0)), &message, sizeof(message));
	offer(CONTROL, 0, sizeof(message), false);
	await(CONTROL, &written);
}

static void assert_told(uint16_t event, const char *text)
{
	uint32_t written;
	const char *bytes = await(CONTROL_TO_GUEST, &written);
	struct virtio_console_control message;

	memcpy(&message, bytes, sizeof(message));
	ck_assert_uint_eq(message.id, 0);
	ck_assert_uint_eq(message.event, event);
	ck_assert_uint_eq(message.value, 1);
	ck_assert_uint_eq(written, sizeof(message) + strlen(text));
	ck_assert_mem_eq(bytes + sizeof(message), text, strlen(text));
}

static void set_up(void)
{
	const struct virtio_console_host host = {.output = take_output};

	memory = memory_new(MEMORY_BYTES_MIN, NULL);
	memset(seen, 0, sizeof(seen));
	output = g_string_new(NULL);
	room = G_MAXSIZE;
	device = virtio_console_new("a.port", &host, memory, &(struct virtio_line){.set = line_set}, NULL);
	ck_assert_ptr_nonnull(device);
	put(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
	put(VIRTIO_MMIO_DRIVER_FEATURES, 1u << VIRTIO_CONSOLE_F_MULTIPORT);
	put(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
	put(VIRTIO_MMIO_DRIVER_FEATURES, 1);
	put(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK);
	for (unsigned i = 0; i < QUEUES; i++)
		queue_start(i);
	put(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK);
	for (unsigned slot = 0; slot < 3; slot++)
		offer(CONTROL_TO_GUEST, slot, BUFFER_BYTES, true);
}

static void tear_down(void)
{
	virtio_device_free(device);
	memory_free(memory);
	g_string_free(output, TRUE);
}

static void port_open(void)
{
	say(VIRTIO_CONSOLE_DEVICE_READY, 1);
	assert_told(VIRTIO_CONSOLE_PORT_ADD, "");
	say(VIRTIO_CONSOLE_PORT_READY, 1);
	assert_told(VIRTIO_CONSOLE_PORT_NAME, "a.port");
	assert_told(VIRTIO_CONSOLE_PORT_OPEN, "");
	ck_assert(!virtio_console_is_open(device));
	say(VIRTIO_CONSOLE_PORT_OPEN, 1);
	ck_assert(virtio_console_is_open(device));
}

START_TEST(port_is_announced)
{
	port_open();
	say(VIRTIO_CONSOLE_PORT_OPEN, 0);
	ck_assert(!virtio_console_is_open(device));
	say(VIRTIO_CONSOLE_PORT_OPEN, 1);
	put(VIRTIO_MMIO_STATUS, 0);
	ck_assert(!virtio_console_is_open(device));
}
END_TEST

START_TEST(output_comes_in_order)
{
	uint32_t written;

	port_open();
	for (unsigned i = 0; i < 100; i++) {
		snprintf(ram(BUFFER(OUTPUT, i % SIZE)), BUFFER_BYTES, "%02u,", i);
		offer(OUTPUT, i % SIZE, 3, false);
		await(OUTPUT, &written);
		ck_assert_uint_eq(written, 0);
	}
	ck_assert(virtio_console_settle(device, g_get_monotonic_time() + PATIENCE_US));
	ck_assert_uint_eq(output->len, 300);
	ck_assert_mem_eq(output->str, "00,01,02,", 9);
	ck_assert_str_eq(output->str + 294, "98,99,");
}
END_TEST

/* What does not fit stays in the guest's queue, and comes when there is room. */
START_TEST(output_waits_for_room)
{
	port_open();
	room = 2 * BUFFER_BYTES;
	for (unsigned slot = 0; slot < SIZE; slot++)
		offer(OUTPUT, slot, BUFFER_BYTES, false);
	for (gint64 deadline = g_get_monotonic_time() + PATIENCE_US; output_bytes() < room;)
		ck_assert(g_get_monotonic_time() < deadline);
	ck_assert(!virtio_console_settle(device, g_get_monotonic_time() + PATIENCE_US));
	ck_assert_uint_eq(output_bytes(), room);
	g_mutex_lock(&output_lock);
	room = G_MAXSIZE;
	g_mutex_unlock(&output_lock);
	virtio_console_room(device);
	ck_assert(virtio_console_settle(device, g_get_monotonic_time() + PATIENCE_US));
	ck_assert_uint_eq(output->len, SIZE * BUFFER_BYTES);
}
END_TEST

START_TEST(input_fills_what_the_driver_gives)
{
	g_autofree uint8_t *much = g_malloc0(1 << 20);
	uint32_t written;

	port_open();
	ck_assert_uint_eq(virtio_console_input(device, (const uint8_t *)"hello, guest", 12), 12);
	offer(INPUT, 0, 5, true);
	ck_assert_mem_eq(await(INPUT, &written), "hello", 5);
	ck_assert_uint_eq(written, 5);
	offer(INPUT, 1, BUFFER_BYTES, true);
	ck_assert_mem_eq(await(INPUT, &written), ", guest", 7);
	ck_assert_uint_eq(written, 7);
	size_t taken = virtio_console_input(device, much, 1 << 20);
	ck_assert_uint_gt(taken, 0);
	ck_assert_uint_lt(taken, 1 << 20);
	ck_assert_uint_eq(virtio_console_input(device, much, 1), 0);
}
END_TEST

/* Messages that are short, or mean nothing, or are about ports that do not exist. */
START_TEST(strange_messages)
{
	uint32_t written;

	for (unsigned bytes = 0; bytes <= 16; bytes++) {
		memset(ram(BUFFER(CONTROL, 0)), 0xff, 16);
		offer(CONTROL, 0, bytes, false);
		await(CONTROL, &written);
	}
	offer(CONTROL, 0, 8, true); /* it is ours to read */
	await(CONTROL, &written);
	say(VIRTIO_CONSOLE_DEVICE_READY, 0);
	port_open();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("virtio_console");
	TCase *tests = tcase_create("port");
	tcase_set_timeout(tests, 30); /* with a sanitizer on a busy machine */
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, port_is_announced);
	tcase_add_test(tests, output_comes_in_order);
	tcase_add_test(tests, output_waits_for_room);
	tcase_add_test(tests, input_fills_what_the_driver_gives);
	tcase_add_test(tests, strange_messages);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
