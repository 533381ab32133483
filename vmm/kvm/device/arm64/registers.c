// SPDX-License-Identifier: BSD-2-Clause
/*
 * The devices of an arm64 machine, in memory: two UARTs, virtio, the register that ends the guest and the one that
 * marks its phases. What is no device reads as zero, and writes go nowhere.
 */
#include <string.h>

#include "kvm/boot/arm64/machine_map.h"
#include "kvm/device/devices.h"

const unsigned devices_serial_irqs[DEVICES_SERIALS] = {MACHINE_UART_IRQ(0), MACHINE_UART_IRQ(1)};

/* The UART that has this register; NULL: none has. */
static struct serial *uart_at(struct devices *devices, uint64_t gpa, unsigned *offset)
{
	const uint64_t from_first = gpa - MACHINE_UART_GPA(0);

	if (gpa < MACHINE_UART_GPA(0) || from_first / MACHINE_UART_BYTES >= DEVICES_SERIALS)
		return NULL;
	*offset = (unsigned)(from_first % MACHINE_UART_BYTES);
	struct serial *serial = &devices->uarts[from_first / MACHINE_UART_BYTES].serial;
	return *offset < serial->model->bytes ? serial : NULL;
}

void devices_mmio_read(struct devices *devices, uint64_t gpa, uint8_t *data, size_t bytes)
{
	unsigned offset;

	if (devices_virtio_read(devices, gpa, data, bytes))
		return;
	memset(data, 0, bytes);
	pthread_mutex_lock(&devices->lock);
	struct serial *uart = uart_at(devices, gpa, &offset);
	if (uart) {
		const uint16_t value = GUINT16_TO_LE(serial_read(uart, offset));

		memcpy(data, &value, MIN(bytes, sizeof(value)));
	}
	pthread_mutex_unlock(&devices->lock);
}

void devices_mmio_write(struct devices *devices, unsigned vcpu, uint64_t gpa, const uint8_t *data, size_t bytes)
{
	const struct devices_host *host = &devices->host;
	uint32_t code = 0;
	uint16_t value = 0;
	unsigned offset;

	if (devices_virtio_write(devices, gpa, data, bytes))
		return;
	pthread_mutex_lock(&devices->lock);
	struct serial *uart = uart_at(devices, gpa, &offset);
	if (uart) {
		memcpy(&value, data, MIN(bytes, sizeof(value)));
		serial_write(uart, offset, GUINT16_FROM_LE(value));
	} else if (gpa == MACHINE_PHASE_GPA) {
		host->phase(host->data, vcpu, data[0]);
	} else if (gpa == MACHINE_EXIT_GPA) {
		memcpy(&code, data, MIN(bytes, sizeof(code)));
		host->ended(host->data, GUEST_END_EXIT_PORT, GUINT32_FROM_LE(code));
	}
	pthread_mutex_unlock(&devices->lock);
}
