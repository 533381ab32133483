// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/devices.h"

#include "kvm/device/virtio_device.h"

static void uart_irq(void *data, bool level)
{
	const struct devices_uart *uart = data;
	const struct devices_host *host = &uart->devices->host;

	host->irq(host->data, devices_serial_irqs[uart->number], level);
}

static bool uart_transmit(void *data, uint8_t byte)
{
	const struct devices_uart *uart = data;
	const struct devices_host *host = &uart->devices->host;

	return host->transmit(host->data, uart->number, byte);
}

void devices_init(struct devices *devices, const struct devices_host *host, const struct serial_model *uarts,
                  const bool connected[DEVICES_SERIALS])
{
	*devices = (struct devices){.host = *host};
	pthread_mutex_init(&devices->lock, NULL);
	for (unsigned i = 0; i < DEVICES_SERIALS; i++) {
		struct devices_uart *uart = &devices->uarts[i];

		uart->devices = devices;
		uart->number = i;
		serial_init(&uart->serial, uarts,
		            &(struct serial_line){
				    .irq = uart_irq, .transmit = connected[i] ? uart_transmit : NULL, .data = uart});
	}
}

void devices_deinit(struct devices *devices)
{
	pthread_mutex_destroy(&devices->lock);
}

size_t devices_input(struct devices *devices, unsigned serial, const uint8_t *bytes, size_t n)
{
	pthread_mutex_lock(&devices->lock);
	size_t taken = serial_receive(&devices->uarts[serial].serial, bytes, n);
	pthread_mutex_unlock(&devices->lock);
	return taken;
}

void devices_line_ready(struct devices *devices, unsigned serial)
{
	pthread_mutex_lock(&devices->lock);
	serial_line_ready(&devices->uarts[serial].serial);
	pthread_mutex_unlock(&devices->lock);
}

void devices_add_virtio(struct devices *devices, struct virtio_device *device)
{
	g_assert(devices->n_virtio < BOOT_VIRTIO_MAX);
	devices->virtio[devices->n_virtio++] = device;
}

static struct virtio_device *virtio_at(const struct devices *devices, uint64_t gpa, uint32_t *offset)
{
	uint64_t from_first = gpa - BOOT_VIRTIO_GPA(0);

	if (gpa < BOOT_VIRTIO_GPA(0) || from_first / BOOT_VIRTIO_BYTES >= devices->n_virtio)
		return NULL;
	*offset = (uint32_t)(from_first % BOOT_VIRTIO_BYTES);
	return devices->virtio[from_first / BOOT_VIRTIO_BYTES];
}

bool devices_virtio_read(const struct devices *devices, uint64_t gpa, uint8_t *data, size_t bytes)
{
	uint32_t offset;
	struct virtio_device *device = virtio_at(devices, gpa, &offset);

	if (device)
		virtio_mmio_read(device, offset, data, bytes);
	return device != NULL;
}

bool devices_virtio_write(const struct devices *devices, uint64_t gpa, const uint8_t *data, size_t bytes)
{
	uint32_t offset;
	struct virtio_device *device = virtio_at(devices, gpa, &offset);

	if (device)
		virtio_mmio_write(device, offset, data, bytes);
	return device != NULL;
}
