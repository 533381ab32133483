// SPDX-License-Identifier: BSD-2-Clause
/* The VM's virtio devices: disks and the agent's port. */
#include "kvm/boot/boot_devices.h"
#include "kvm/device/virtio_blk.h"
#include "kvm/device/virtio_console.h"
#include "kvm/vm_parts.h"

#define PORT_NAME "org.vprof.agent.0"

/* The line of the next device. */
static struct virtio_line next_line(struct vm *vm)
{
	const struct devices *devices = &vm->devices;

	return (struct virtio_line){
		.set = devices->host.irq, .data = devices->host.data, .irq = boot_virtio_irq(devices->n_virtio)};
}

static bool add(struct vm *vm, struct virtio_device *device)
{
	if (device)
		devices_add_virtio(&vm->devices, device);
	return device;
}

static bool add_disk(struct vm *vm, const struct vm_disk *config, unsigned number, GError **error)
{
	struct disk disk;
	struct virtio_line line = next_line(vm);
	g_autofree char *id = g_strdup_printf("vprof-disk-%u", number);

	if (!disk_open(&disk, config->path, config->read_only, error)) {
		disk_close(&disk);
		return false;
	}
	return add(vm, virtio_blk_new(&disk, id, vm->machine.memory, &line, error));
}

/* What comes out of the port joins what comes out of the second UART. */
static bool port_output(void *data, const uint8_t *bytes, size_t n)
{
	struct vm *vm = data;
	bool more = true;

	for (size_t i = 0; i < n; i++)
		more = console_put(vm->consoles[1], bytes[i]);
	return more;
}

static bool add_port(struct vm *vm, GError **error)
{
	const struct virtio_console_host host = {.output = port_output, .data = vm};
	struct virtio_line line = next_line(vm);

	vm->port = virtio_console_new(PORT_NAME, &host, vm->machine.memory, &line, error);
	return add(vm, vm->port);
}

static bool has_port(const struct vm_config *config)
{
	return config->serial_fds[1] >= 0;
}

unsigned vm_virtio_count(const struct vm_config *config)
{
	return config->n_disks + has_port(config);
}

bool vm_virtio_init(struct vm *vm, const struct vm_config *config, GError **error)
{
	for (unsigned i = 0; i < config->n_disks; i++) {
		if (!add_disk(vm, &config->disks[i], i, error))
			return false;
	}
	return !has_port(config) || add_port(vm, error);
}

void vm_virtio_flush(struct vm *vm, unsigned timeout_ms)
{
	const gint64 until_us = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	gint64 left_us = 1;

	while (vm->port && left_us > 0 && !virtio_console_settle(vm->port, until_us)) {
		left_us = until_us - g_get_monotonic_time();
		console_flush(vm->consoles[1], (unsigned)(MAX(left_us, 0) / 1000));
	}
}

void vm_virtio_stop(struct vm *vm)
{
	for (unsigned i = 0; i < vm->devices.n_virtio; i++)
		virtio_device_stop(vm->devices.virtio[i]);
}

void vm_virtio_deinit(struct vm *vm)
{
	for (unsigned i = 0; i < vm->devices.n_virtio; i++)
		virtio_device_free(vm->devices.virtio[i]);
	vm->devices.n_virtio = 0;
}
