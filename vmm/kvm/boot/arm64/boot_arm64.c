// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <string.h>

#include "kvm/boot/arm64/boot_state.h"
#include "kvm/boot/arm64/device_tree.h"
#include "kvm/boot/arm64/machine_map.h"
#include "kvm/boot/boot_devices.h"
#include "kvm/boot/command_line.h"

#define COMMAND_LINE_BYTES_MAX 2048u /* COMMAND_LINE_SIZE of arm64 Linux */
/* booting.rst: a device tree lies on 8 bytes, and not across a boundary of 2 MiB. */
#define TOP_BYTES (UINT64_C(2) << 20)
/* Of Linux, for UARTs in a device tree: drivers/tty/serial/8250/8250_of.c, amba-pl011.c. */
#define DRIVER_16550 "of_serial"
#define DRIVER_PL011 "uart-pl011"

/*
 * A panicking kernel asks for a reboot at once, which ends the guest. A kernel that finds no seed for its place in the
 * device tree asks the processor for one (arch/arm64/kernel/pi/kaslr_early.c).
 */
const char *const boot_linux_defaults[] = {"panic=-1", "nokaslr", NULL};

/* The device tree has them. */
void boot_append_devices(GString *text, unsigned n_virtio)
{
	(void)text;
	(void)n_virtio;
}

unsigned boot_virtio_irq(unsigned n)
{
	return MACHINE_VIRTIO_IRQ(n);
}

/* Whether the kernel has a driver, by the name that this registers, which is a string of its own. */
static bool has_driver(const struct image *image, const char *name)
{
	size_t bytes;
	const uint8_t *file = image_bytes(image, &bytes);
	g_autofree char *text = g_strdup_printf("%c%s", '\0', name);

	return memmem(file, bytes, text, strlen(name) + 2) != NULL;
}

bool boot_choose_uart(const struct image *image, enum boot_uart asked, enum boot_uart *uart, GError **error)
{
	(void)error;
	*uart = asked;
	if (asked == BOOT_UART_AUTO)
		*uart = image_is_linux(image) && !has_driver(image, DRIVER_16550) && has_driver(image, DRIVER_PL011)
		                ? BOOT_UART_PL011
		                : BOOT_UART_16550;
	return true;
}

static bool entry_check(const struct boot_config *config, GError **error)
{
	const uint64_t entry = image_entry(config->image);

	if (config->protocol == BOOT_PVH) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
		            "cannot boot %s by PVH: that protocol is x86-64's; leave the choice to --boot auto",
		            image_path(config->image));
		return false;
	}
	if (entry >> 63 != 0) {
		g_set_error(
			error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
			"cannot boot %s: a vmlinux for arm64 does not say where it lies in memory; give the Image or "
			"vmlinuz that was made of it",
			image_path(config->image));
		return false;
	}
	if (boot_entry_is_loaded(config->image, entry))
		return true;
	g_set_error(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
	            "cannot boot %s: its entry point 0x%" PRIx64
	            " is not a physical address inside one of its segments",
	            image_path(config->image), entry);
	return false;
}

/* The device tree is in the last 2 MiB of low RAM, the initramfs below. */
bool boot_load(const struct memory *memory, const struct boot_config *config, struct boot_state *state, GError **error)
{
	struct boot_claims claims = {.memory = memory};
	const uint64_t top = memory_low_bytes(memory) - TOP_BYTES;
	const struct boot_range room = {0, top};
	struct boot_range initrd = {0};

	if (!boot_check(config, COMMAND_LINE_BYTES_MAX, error) || !entry_check(config, error))
		return false;
	void *tree = boot_claim(&claims, "the device tree", top, DEVICE_TREE_BYTES_MAX, error);
	if (!tree || !boot_segments_load(&claims, config->image, error) ||
	    !boot_initrd_load(&claims, config->initrd_path, &room, &initrd, error) ||
	    !device_tree_write(tree, memory, config, &initrd, error))
		return false;
	*state = (struct boot_state){.pc = image_entry(config->image), .device_tree = top};
	return true;
}
