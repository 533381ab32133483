// SPDX-License-Identifier: BSD-2-Clause
/*
 * The I/O ports of a PC: two UARTs, the keyboard controller's reset line, ACPI's power management block, the clock,
 * phase marks and the exit port. Everything else reads as an empty bus does: all ones.
 */
#include <string.h>
#include <time.h>

#include "kvm/boot/x86/boot_ports.h"
#include "kvm/device/devices.h"

#define PM1_EVENT_BYTES 4u /* status, enable */
#define PM1_CONTROL_SCI_EN 0x01u
#define PM1_CONTROL_HIGH_SLP_TYP(byte) ((byte) >> 2 & 7u)
#define PM1_CONTROL_HIGH_SLP_EN 0x20u

/* The ports of one device; `port` counts from `first`. A NULL call: reads all ones, writes go nowhere. */
struct port_range {
	uint16_t first, count;
	uint8_t (*read)(struct devices *devices, unsigned port);
	void (*write)(struct devices *devices, unsigned port, uint8_t value);
};

static uint8_t com1_read(struct devices *devices, unsigned port)
{
	return (uint8_t)serial_read(&devices->uarts[0].serial, port);
}

static void com1_write(struct devices *devices, unsigned port, uint8_t value)
{
	serial_write(&devices->uarts[0].serial, port, value);
}

static uint8_t com2_read(struct devices *devices, unsigned port)
{
	return (uint8_t)serial_read(&devices->uarts[1].serial, port);
}

static void com2_write(struct devices *devices, unsigned port, uint8_t value)
{
	serial_write(&devices->uarts[1].serial, port, value);
}

/*
 * There is no keyboard controller, only its reset line. An empty bus would read 0xff; its bit 1 (input buffer full)
 * makes Linux wait 65,536 times before it pulls that line (arch/x86/kernel/reboot.c, kb_wait); with bit 0 (output
 * buffer full) always set, drivers see that no controller is there (drivers/input/serio/i8042.c, i8042_flush).
 */
static uint8_t keyboard_status_read(struct devices *devices, unsigned port)
{
	(void)devices;
	(void)port;
	return 0xfd;
}

static void keyboard_command_write(struct devices *devices, unsigned port, uint8_t value)
{
	(void)port;
	if (value == 0xfe)
		devices->host.ended(devices->host.data, GUEST_END_REBOOT, 0);
}

static uint8_t bcd(int value)
{
	return (uint8_t)(value / 10 << 4 | value % 10);
}

/* MC146818: the host's time in UTC, BCD, 24 hours; battery good, no update in progress. */
static uint8_t cmos_read(struct devices *devices, unsigned port)
{
	if (port == 0)
		return 0xff; /* the index is write-only */
	time_t now = time(NULL);
	struct tm tm;
	gmtime_r(&now, &tm);
	switch (devices->ports.cmos_index) {
	case 0x00:
		return bcd(tm.tm_sec);
	case 0x02:
		return bcd(tm.tm_min);
	case 0x04:
		return bcd(tm.tm_hour);
	case 0x06:
		return bcd(tm.tm_wday + 1);
	case 0x07:
		return bcd(tm.tm_mday);
	case 0x08:
		return bcd(tm.tm_mon + 1);
	case 0x09:
		return bcd(tm.tm_year % 100);
	case 0x32:
		return bcd(19 + tm.tm_year / 100);
	case 0x0a:
		return 0x26; /* 32,768 Hz time base */
	case 0x0b:
		return 0x02; /* 24 hours */
	case 0x0d:
		return 0x80; /* valid RAM and time */
	default:
		return 0;
	}
}

static void cmos_write(struct devices *devices, unsigned port, uint8_t value)
{
	if (port == 0)
		devices->ports.cmos_index = value & 0x7f; /* bit 7 masks NMIs */
}

/* ACPI 6.5, 4.8.3.1: no event ever happens, so status stays 0. */
static uint8_t pm1_event_read(struct devices *devices, unsigned port)
{
	return port < 2 ? 0 : devices->ports.pm1_enable[port - 2];
}

static void pm1_event_write(struct devices *devices, unsigned port, uint8_t value)
{
	if (port >= 2)
		devices->ports.pm1_enable[port - 2] = value;
}

/* ACPI 6.5, 4.8.3.2.1. SLP_EN reads as 0; the machine is always in ACPI mode. */
static uint8_t pm1_control_read(struct devices *devices, unsigned port)
{
	return port == 0 ? devices->ports.pm1_control[0] | PM1_CONTROL_SCI_EN
	                 : devices->ports.pm1_control[1] & (uint8_t)~PM1_CONTROL_HIGH_SLP_EN;
}

static void pm1_control_write(struct devices *devices, unsigned port, uint8_t value)
{
	devices->ports.pm1_control[port] = value;
	if (port == 1 && (value & PM1_CONTROL_HIGH_SLP_EN) &&
	    PM1_CONTROL_HIGH_SLP_TYP(value) == BOOT_ACPI_S5_SLEEP_TYPE)
		devices->host.ended(devices->host.data, GUEST_END_POWER_OFF, 0);
}

static const struct port_range ranges[] = {
	{0x3f8, SERIAL_16550_BYTES, com1_read, com1_write},
	{0x2f8, SERIAL_16550_BYTES, com2_read, com2_write},
	{0x64, 1, keyboard_status_read, keyboard_command_write},
	{0x70, 2, cmos_read, cmos_write},
	{BOOT_ACPI_PM1A_EVENT_PORT, PM1_EVENT_BYTES, pm1_event_read, pm1_event_write},
	{BOOT_ACPI_PM1A_CONTROL_PORT, 2, pm1_control_read, pm1_control_write},
};

const unsigned devices_serial_irqs[DEVICES_SERIALS] = {4, 3};

static const struct port_range *range_find(uint32_t port)
{
	for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
		if (port >= ranges[i].first && port < (uint32_t)ranges[i].first + ranges[i].count)
			return &ranges[i];
	}
	return NULL;
}

/* Wide accesses are byte accesses to neighbouring ports, low byte first, as on the ISA bus. */
void devices_read(struct devices *devices, uint16_t port, uint8_t *data, size_t bytes)
{
	pthread_mutex_lock(&devices->lock);
	for (size_t i = 0; i < bytes; i++) {
		uint32_t at = (uint32_t)(port + i);
		const struct port_range *range = range_find(at);

		data[i] = range ? range->read(devices, at - range->first) : 0xff;
	}
	pthread_mutex_unlock(&devices->lock);
}

/* The value of one whole access, for the ports that take it as a number. */
static uint32_t little_endian(const uint8_t *data, size_t bytes)
{
	uint32_t value = 0;

	memcpy(&value, data, MIN(bytes, sizeof(value)));
	return GUINT32_FROM_LE(value);
}

void devices_write(struct devices *devices, unsigned vcpu, uint16_t port, const uint8_t *data, size_t bytes)
{
	pthread_mutex_lock(&devices->lock);
	if (port == DEVICES_EXIT_PORT) {
		devices->host.ended(devices->host.data, GUEST_END_EXIT_PORT, little_endian(data, bytes));
	} else if (port == DEVICES_PHASE_PORT) {
		devices->host.phase(devices->host.data, vcpu, data[0]);
	} else {
		for (size_t i = 0; i < bytes; i++) {
			uint32_t at = (uint32_t)(port + i);
			const struct port_range *range = range_find(at);

			if (range)
				range->write(devices, at - range->first, data[i]);
		}
	}
	pthread_mutex_unlock(&devices->lock);
}

/* What is no device reads as an empty bus does. */
void devices_mmio_read(struct devices *devices, uint64_t gpa, uint8_t *data, size_t bytes)
{
	if (!devices_virtio_read(devices, gpa, data, bytes))
		memset(data, 0xff, bytes);
}

void devices_mmio_write(struct devices *devices, unsigned vcpu, uint64_t gpa, const uint8_t *data, size_t bytes)
{
	(void)vcpu;
	devices_virtio_write(devices, gpa, data, bytes);
}
