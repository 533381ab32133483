// SPDX-License-Identifier: BSD-2-Clause
/*
 * All devices of the machine, as a guest and their other ends use them: ports, UARTs, and a disk and a console port by
 * their registers, queues in memory, reset and notification included; and the UART of an arm64 machine. Input: steps of
 * STEP_BYTES: what to do, with which width or device, an address, a value.
 */
#include <glib.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "kvm/boot/boot_devices.h"
#include "kvm/device/devices.h"
#include "kvm/device/virtio_blk.h"
#include "kvm/device/virtio_console.h"

#define STEP_BYTES 12u
#define STEPS_MAX 400u
#define RAM_BYTES 0x10000u /* that steps write to */
#define SECTORS 16u
#define QUEUE_SIZE 8u
#define SETTLE_US (10 * G_USEC_PER_SEC)

enum { DISK, PORT, DEVICES };

static struct memory *memory;
static struct {
	struct devices devices;
	struct serial pl011;
	struct virtio_device *virtio[DEVICES];
	unsigned sent;
	bool ended;
} machine;

struct step {
	uint8_t what, width;
	uint16_t address;
	uint64_t value;
};

static void irq_set(void *data, unsigned irq, bool level)
{
	(void)data;
	(void)irq;
	(void)level;
}

static void ended(void *data, enum guest_end_reason reason, uint32_t code)
{
	(void)data;
	(void)reason;
	(void)code;
	machine.ended = true;
}

static void phase(void *data, unsigned vcpu, uint8_t value)
{
	(void)data;
	(void)value;
	g_assert(vcpu == 0);
}

/* Every third character fills the line. */
static bool transmit(void *data, unsigned serial, uint8_t byte)
{
	(void)data;
	(void)byte;
	g_assert(serial < DEVICES_SERIALS);
	return ++machine.sent % 3 != 0;
}

static void pl011_irq(void *data, bool level)
{
	g_assert(data == &machine.pl011 && level == machine.pl011.irq_level);
}

static bool pl011_transmit(void *data, uint8_t byte)
{
	(void)data;
	return transmit(NULL, 0, byte);
}

static bool take_output(void *data, const uint8_t *bytes, size_t n)
{
	const uint8_t *ram = memory_at(memory, (gpa_t){0}, MEMORY_BYTES_MIN);

	(void)data;
	g_assert(bytes >= ram && (size_t)(bytes - ram) + n <= MEMORY_BYTES_MIN);
	return n % 2 == 0;
}

static void set_up(void)
{
	static const bool connected[DEVICES_SERIALS] = {true, true};
	static const struct devices_host host = {.irq = irq_set, .ended = ended, .phase = phase, .transmit = transmit};
	static const struct virtio_console_host port_host = {.output = take_output};
	static const struct virtio_line line = {.set = irq_set};
	struct disk disk = {.path = g_strdup("image"), .fd = memfd_create("image", MFD_CLOEXEC), .sectors = SECTORS};

	if (!memory)
		memory = memory_new(MEMORY_BYTES_MIN, NULL);
	g_assert(memory && disk.fd >= 0 && ftruncate(disk.fd, SECTORS * 512) == 0);
	memset(memory_at(memory, (gpa_t){0}, RAM_BYTES), 0, RAM_BYTES);
	memset(&machine, 0, sizeof(machine));
	devices_init(&machine.devices, &host, &serial_16550, connected);
	serial_init(&machine.pl011, &serial_pl011,
	            &(struct serial_line){.irq = pl011_irq, .transmit = pl011_transmit, .data = &machine.pl011});
	machine.virtio[DISK] = virtio_blk_new(&disk, "fuzz", memory, &line, NULL);
	machine.virtio[PORT] = virtio_console_new("fuzz", &port_host, memory, &line, NULL);
	for (unsigned i = 0; i < DEVICES; i++)
		devices_add_virtio(&machine.devices, machine.virtio[i]);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < DEVICES; i++)
		virtio_device_free(machine.virtio[i]);
	devices_deinit(&machine.devices);
}

static void put(unsigned device, uint32_t offset, uint32_t value)
{
	devices_mmio_write(&machine.devices, 0, BOOT_VIRTIO_GPA(device) + offset, (const uint8_t *)&value,
	                   sizeof(value));
}

/* What a driver does first; queue i has its three parts in the i-th 4 KiB. */
static void drive(unsigned device)
{
	put(device, VIRTIO_MMIO_STATUS, 0);
	put(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
	put(device, VIRTIO_MMIO_DRIVER_FEATURES, 1);
	put(device, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK);
	for (unsigned queue = 0; queue < machine.virtio[device]->ops->n_queues; queue++) {
		put(device, VIRTIO_MMIO_QUEUE_SEL, queue);
		put(device, VIRTIO_MMIO_QUEUE_NUM, QUEUE_SIZE);
		put(device, VIRTIO_MMIO_QUEUE_DESC_LOW, 0x1000 * queue);
		put(device, VIRTIO_MMIO_QUEUE_AVAIL_LOW, 0x1000 * queue + 0x400);
		put(device, VIRTIO_MMIO_QUEUE_USED_LOW, 0x1000 * queue + 0x800);
		put(device, VIRTIO_MMIO_QUEUE_READY, 1);
	}
	put(device, VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK);
}

static void step_take(const struct step *step)
{
	const unsigned device = step->width % DEVICES;
	const uint64_t gpa = BOOT_VIRTIO_GPA(device) + step->address % (2 * VIRTIO_MMIO_BYTES);
	const size_t port_bytes = (size_t)1 << step->width / 16 % 3, bytes = (size_t)1 << step->width / 16 % 4;
	uint8_t data[8];

	memcpy(data, &step->value, sizeof(data));
	switch (step->what % 14) {
	case 0:
		devices_read(&machine.devices, step->address, data, port_bytes);
		break;
	case 1:
		devices_write(&machine.devices, 0, step->address, data, port_bytes);
		break;
	case 2:
		devices_mmio_read(&machine.devices, gpa, data, bytes);
		break;
	case 3:
		devices_mmio_write(&machine.devices, 0, gpa, data, bytes);
		break;
	case 4:
		memcpy(memory_at(memory, (gpa_t){step->address & ~7u}, sizeof(data)), data, sizeof(data));
		break;
	case 5:
		devices_input(&machine.devices, step->width % DEVICES_SERIALS, data, sizeof(data));
		break;
	case 6:
		devices_line_ready(&machine.devices, step->width % DEVICES_SERIALS);
		break;
	case 7:
		virtio_console_input(machine.virtio[PORT], data, sizeof(data));
		break;
	case 8:
		virtio_console_room(machine.virtio[PORT]);
		/* The worst that is allowed takes less. */
		g_assert(virtio_device_settle(machine.virtio[device], g_get_monotonic_time() + SETTLE_US));
		break;
	case 9:
		drive(device);
		break;
	case 10:
		serial_read(&machine.pl011, step->address % serial_pl011.bytes);
		break;
	case 11:
		serial_write(&machine.pl011, step->address % serial_pl011.bytes, (uint16_t)step->value);
		break;
	case 12:
		serial_receive(&machine.pl011, data, sizeof(data));
		break;
	default:
		serial_line_ready(&machine.pl011);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	set_up();
	for (size_t i = 0; i < MIN(n / STEP_BYTES, STEPS_MAX); i++) {
		struct step step;

		memcpy(&step.what, bytes + i * STEP_BYTES, 1);
		memcpy(&step.width, bytes + i * STEP_BYTES + 1, 1);
		memcpy(&step.address, bytes + i * STEP_BYTES + 2, 2);
		memcpy(&step.value, bytes + i * STEP_BYTES + 4, 8);
		step_take(&step);
	}
	tear_down();
	return 0;
}
