// SPDX-License-Identifier: BSD-2-Clause
/*
 * Drives a disk and the agent's port for ever as no driver does: chains of 128 buffers that are the same megabytes of
 * RAM, rings and chains that change while the device reads them, and resets meanwhile.
 */
#include "guests/guest.h"

#define DEVICES 2
#define DEVICE(n) (0xd0010000ul + (n)*0x1000ul)
#define SLOTS 128
#define QUEUES 4
#define BUFFER_BYTES 0x80000u /* with 128 of them a chain has 64 MiB, the most that is allowed */

enum {
	DRIVER_FEATURES = 0x20,
	DRIVER_FEATURES_SEL = 0x24,
	QUEUE_SEL = 0x30,
	QUEUE_NUM = 0x38,
	QUEUE_READY = 0x44,
	QUEUE_NOTIFY = 0x50,
	STATUS = 0x70,
	QUEUE_DESC = 0x80,
	QUEUE_AVAIL = 0x90,
	QUEUE_USED = 0xa0,
};
enum { NEXT = 1, WRITABLE = 2 };

/* One set for all queues: they disturb each other as well. */
static volatile struct {
	uint64_t address;
	uint32_t bytes;
	uint16_t flags, next;
} descriptors[SLOTS] __attribute__((aligned(16)));
static volatile struct {
	uint16_t flags, index, ring[SLOTS];
} available __attribute__((aligned(2)));
static volatile uint8_t used[8 + 8 * SLOTS] __attribute__((aligned(4)));

static void put(unsigned device, unsigned offset, uint64_t value)
{
	*(volatile uint32_t *)(DEVICE(device) + offset) = (uint32_t)value;
}

static void start(unsigned device)
{
	put(device, STATUS, 0);
	put(device, DRIVER_FEATURES_SEL, 1);
	put(device, DRIVER_FEATURES, 1);
	put(device, STATUS, 11);
	for (unsigned queue = 0; queue < QUEUES; queue++) {
		put(device, QUEUE_SEL, queue);
		put(device, QUEUE_NUM, SLOTS);
		put(device, QUEUE_DESC, (uintptr_t)descriptors);
		put(device, QUEUE_AVAIL, (uintptr_t)&available);
		put(device, QUEUE_USED, (uintptr_t)used);
		put(device, QUEUE_READY, 1);
	}
	put(device, STATUS, 15);
}

/* `writable`: from which buffer on the device may write. */
static void describe(unsigned writable)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		descriptors[i].address = 0x1000000;
		descriptors[i].bytes = BUFFER_BYTES;
		descriptors[i].flags = (uint16_t)((i + 1 < SLOTS ? NEXT : 0) | (i >= writable ? WRITABLE : 0));
		descriptors[i].next = (uint16_t)(i + 1);
	}
}

void guest_main(void)
{
	console_print("virtio_storm: begins\n");
	for (unsigned round = 0;; round++) {
		for (unsigned device = 0; device < DEVICES; device++)
			start(device);
		available.index = 0;
		describe(round % 2 ? SLOTS : 1);
		for (unsigned turn = 0; turn < 64; turn++) {
			available.index++;
			for (unsigned device = 0; device < DEVICES; device++)
				for (unsigned queue = 0; queue < QUEUES; queue++)
					put(device, QUEUE_NOTIFY, queue);
			descriptors[turn].next = (uint16_t)(turn * 7 + round);
			descriptors[turn].bytes = 0xfffffff0u >> turn % 32;
			available.ring[turn] = (uint16_t)(turn * round);
		}
	}
}
