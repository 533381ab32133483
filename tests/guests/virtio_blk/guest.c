// SPDX-License-Identifier: BSD-2-Clause
/* Drives the first virtio device, a disk, by hand: what a driver does, then what none should, then again. */
#include "guests/guest.h"

#define DEVICE 0xd0010000ul
#define SLOTS 8

enum {
	MAGIC = 0x00,
	VERSION = 0x04,
	DEVICE_ID = 0x08,
	DEVICE_FEATURES = 0x10,
	DEVICE_FEATURES_SEL = 0x14,
	DRIVER_FEATURES = 0x20,
	DRIVER_FEATURES_SEL = 0x24,
	QUEUE_SEL = 0x30,
	QUEUE_NUM_MAX = 0x34,
	QUEUE_NUM = 0x38,
	QUEUE_READY = 0x44,
	QUEUE_NOTIFY = 0x50,
	INTERRUPT_STATUS = 0x60,
	INTERRUPT_ACK = 0x64,
	STATUS = 0x70,
	QUEUE_DESC = 0x80,
	QUEUE_AVAIL = 0x90,
	QUEUE_USED = 0xa0,
	CONFIG = 0x100,
};
enum { ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8, NEEDS_RESET = 0x40 };
enum { READ, WRITE, FLUSH = 4, GET_ID = 8, NONSENSE = 99 };
enum { NEXT = 1, WRITABLE = 2 };

static struct {
	uint64_t address;
	uint32_t bytes;
	uint16_t flags, next;
} descriptors[SLOTS] __attribute__((aligned(16)));
static struct {
	uint16_t flags, index, ring[SLOTS], event;
} available __attribute__((aligned(2)));
static volatile struct {
	uint16_t flags, index;
	struct {
		uint32_t id, bytes;
	} ring[SLOTS];
	uint16_t event;
} used __attribute__((aligned(4)));

static struct {
	uint32_t type, reserved;
	uint64_t sector;
} header;
static char data[1024];
static volatile uint8_t outcome;

static uint32_t get(unsigned offset)
{
	return *(volatile uint32_t *)(DEVICE + offset);
}

static void put(unsigned offset, uint32_t value)
{
	*(volatile uint32_t *)(DEVICE + offset) = value;
}

static void say(const char *what, uint64_t number)
{
	console_print("virtio_blk: ");
	console_print(what);
	console_print(" ");
	console_print_number(number, 16);
	console_print("\n");
}

static void say_data(const char *what)
{
	data[20] = 0;
	console_print("virtio_blk: ");
	console_print(what);
	console_print(" ");
	console_print(data);
	console_print("\n");
}

static void put_address(unsigned offset, const volatile void *at)
{
	put(offset, (uint32_t)(uintptr_t)at);
	put(offset + 4, 0);
}

static void start(void)
{
	put(STATUS, 0);
	available.index = used.index = 0;
	put(STATUS, ACKNOWLEDGE | DRIVER);
	put(DRIVER_FEATURES_SEL, 0);
	put(DRIVER_FEATURES, 1 << 9); /* FLUSH */
	put(DRIVER_FEATURES_SEL, 1);
	put(DRIVER_FEATURES, 1); /* VERSION_1 */
	put(STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
	put(QUEUE_SEL, 0);
	put(QUEUE_NUM, SLOTS);
	put_address(QUEUE_DESC, descriptors);
	put_address(QUEUE_AVAIL, &available);
	put_address(QUEUE_USED, &used);
	put(QUEUE_READY, 1);
	put(STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
}

static void describe(unsigned i, const volatile void *at, uint32_t bytes, uint16_t flags, uint16_t next)
{
	descriptors[i].address = (uintptr_t)at;
	descriptors[i].bytes = bytes;
	descriptors[i].flags = flags;
	descriptors[i].next = next;
}

/* Hands the chain from descriptor 0 over, and waits until the device is done with it or with us. */
static void submit(void)
{
	available.ring[available.index % SLOTS] = 0;
	__asm__ volatile("" : : : "memory");
	available.index++;
	__asm__ volatile("" : : : "memory");
	put(QUEUE_NOTIFY, 0);
	while (used.index != available.index && !(get(STATUS) & NEEDS_RESET))
		cpu_relax();
}

/* The status that the device gave: 0, 1 (error), 2 (unsupported); 0xff when it gave none. */
static unsigned request(uint32_t type, uint64_t sector, uint32_t bytes)
{
	header.type = type;
	header.sector = sector;
	outcome = 0xff;
	describe(0, &header, sizeof header, NEXT, bytes ? 1 : 2);
	describe(1, data, bytes, type == WRITE ? NEXT : NEXT | WRITABLE, 2);
	describe(2, &outcome, 1, WRITABLE, 0);
	submit();
	return outcome;
}

static void look(void)
{
	say("magic", get(MAGIC));
	say("version", get(VERSION));
	say("device", get(DEVICE_ID));
	put(DEVICE_FEATURES_SEL, 0);
	say("features", get(DEVICE_FEATURES));
	say("queue", get(QUEUE_NUM_MAX));
	say("capacity", get(CONFIG));
	say("next device", *(volatile uint32_t *)(DEVICE + 0x1000));
}

static void use(void)
{
	say("read", request(READ, 0, 512));
	say_data("sector 0:");
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = "written by the guest"[i % 20];
	say("write", request(WRITE, 1, 1024));
	say("interrupt", get(INTERRUPT_STATUS));
	put(INTERRUPT_ACK, 1);
	say("acknowledged", get(INTERRUPT_STATUS));
	say("flush", request(FLUSH, 0, 0));
	say("id", request(GET_ID, 0, 20));
	say_data("is");
}

static void misuse(void)
{
	say("past the end", request(READ, get(CONFIG) - 1, 1024));
	say("far past the end", request(READ, UINT64_MAX, 512));
	say("half a sector", request(READ, 0, 256));
	say("nonsense", request(NONSENSE, 0, 512));
	header.type = READ;
	describe(0, &header, sizeof header, NEXT, 1);
	describe(1, data, 512, NEXT | WRITABLE, 1); /* for ever */
	submit();
	say("loop", get(STATUS) & NEEDS_RESET);
	start();
	describe(0, (void *)0xfee00000, 512, 0, 0);
	submit();
	say("not in RAM", get(STATUS) & NEEDS_RESET);
	start();
	say("again", request(READ, 1, 512));
	say_data("sector 1:");
}

void guest_main(void)
{
	look();
	start();
	use();
	misuse();
	power_off();
}
