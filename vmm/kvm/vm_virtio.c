// SPDX-License-Identifier: BSD-2-Clause
/* The VM's virtio devices: which there are, and which one an MMIO exit is for. */
#include <string.h>

#include "kvm/virtio_blk.h"
#include "kvm/vm_priv.h"

/* The line of the next device. */
static struct virtio_line next_line(struct vm *vm)
{
	return (struct virtio_line){.set = vm_set_irq, .data = vm, .irq = boot_virtio_irq(vm->n_virtio)};
}

static bool add(struct vm *vm, struct virtio_device *device)
{
	if (device)
		vm->virtio[vm->n_virtio++] = device;
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
	return add(vm, virtio_blk_new(&disk, id, vm->memory, &line, error));
}

unsigned vm_virtio_count(const struct vm_config *config)
{
	return config->n_disks;
}

bool vm_virtio_init(struct vm *vm, const struct vm_config *config, GError **error)
{
	for (unsigned i = 0; i < config->n_disks; i++) {
		if (!add_disk(vm, &config->disks[i], i, error))
			return false;
	}
	return true;
}

void vm_virtio_deinit(struct vm *vm)
{
	for (unsigned i = 0; i < vm->n_virtio; i++)
		virtio_device_free(vm->virtio[i]);
}

static struct virtio_device *device_at(const struct vm *vm, uint64_t gpa, uint32_t *offset)
{
	uint64_t from_first = gpa - BOOT_VIRTIO_GPA(0);
	if (gpa < BOOT_VIRTIO_GPA(0) || from_first / BOOT_VIRTIO_BYTES >= vm->n_virtio)
		return NULL;
	*offset = (uint32_t)(from_first % BOOT_VIRTIO_BYTES);
	return vm->virtio[from_first / BOOT_VIRTIO_BYTES];
}

void vm_mmio_read(struct vm *vm, uint64_t gpa, uint8_t *data, size_t bytes)
{
	uint32_t offset;
	struct virtio_device *device = device_at(vm, gpa, &offset);
	if (device)
		virtio_mmio_read(device, offset, data, bytes);
	else
		memset(data, 0xff, bytes);
}

void vm_mmio_write(struct vm *vm, uint64_t gpa, const uint8_t *data, size_t bytes)
{
	uint32_t offset;
	struct virtio_device *device = device_at(vm, gpa, &offset);
	if (device)
		virtio_mmio_write(device, offset, data, bytes);
}
