// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/boot.h"

#include <inttypes.h>
#include <string.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/boot/boot_files.h"
#include "kvm/boot/x86/acpi.h"
#include "kvm/boot/x86/boot_layout.h"
#include "kvm/boot/x86/boot_protocol.h"
#include "kvm/boot/x86/boot_registers.h"
#include "kvm/boot/x86/mptable.h"

/* initrd_addr_max of every x86 kernel since protocol 2.03. */
#define INITRD_END_MAX UINT64_C(0x80000000)

unsigned boot_virtio_irq(unsigned n)
{
	static const unsigned irqs[BOOT_VIRTIO_MAX] = {5,  6,  7,  10,
	                                               11, 12, 14, 15}; /* of the ISA bus, those that are free */

	return irqs[n];
}

bool boot_choose_uart(const struct image *image, enum boot_uart asked, enum boot_uart *uart, GError **error)
{
	*uart = BOOT_UART_16550;
	if (asked != BOOT_UART_PL011)
		return true;
	g_set_error(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
	            "cannot boot %s with a PL011: that UART is for arm64; leave the choice to --uart auto",
	            image_path(image));
	return false;
}

static bool structures_claim(struct boot_claims *claims, const struct boot_config *config, GError **error)
{
	if (!boot_claim(claims, "the boot loader's own range", BOOT_STRUCTURES_GPA,
	                BOOT_STRUCTURES_END - BOOT_STRUCTURES_GPA, error))
		return false;
	if (!boot_claim(claims, "the BIOS range", BOOT_BIOS_GPA, BOOT_BIOS_END - BOOT_BIOS_GPA, error))
		return false;
	return config->reserved_bytes == 0 || boot_claim(claims, "the host quirk's range", config->reserved.value,
	                                                 config->reserved_bytes, error) != NULL;
}

/* Which protocol, and with it the entry point. */
static bool protocol_choose(const struct boot_config *config, struct boot_state *state, GError **error)
{
	const struct image *image = config->image;
	uint32_t pvh_entry;
	bool has_pvh = image_pvh_entry(image, &pvh_entry);
	bool wants_pvh =
		config->protocol == BOOT_PVH || (config->protocol == BOOT_AUTO && has_pvh && !image_is_linux(image));

	if (wants_pvh && !has_pvh) {
		g_set_error(
			error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
			"cannot boot %s by PVH: it has no XEN_ELFNOTE_PHYS32_ENTRY note; leave the choice to --boot auto",
			image_path(image));
		return false;
	}
	state->protocol = wants_pvh ? BOOT_PVH : BOOT_LINUX;
	state->rip = wants_pvh ? pvh_entry : image_entry(image);
	if (state->rip >= MEMORY_HIGH_BASE || !boot_entry_is_loaded(image, state->rip)) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
		            "cannot boot %s: its entry point 0x%" PRIx64
		            " is not a physical address inside one of its segments below 4 GiB",
		            image_path(image), state->rip);
		return false;
	}
	return true;
}

static void tables_write(const struct memory *memory, const struct boot_config *config)
{
	acpi_write(boot_structure(memory, BOOT_ACPI_GPA, ACPI_BYTES_MAX), (gpa_t){BOOT_ACPI_GPA}, config->vcpus,
	           config->n_virtio);
	mptable_write(boot_structure(memory, BOOT_MPTABLE_GPA, MPTABLE_BYTES_MAX), (gpa_t){BOOT_MPTABLE_GPA},
	              config->vcpus);
}

bool boot_load(const struct memory *memory, const struct boot_config *config, struct boot_state *state, GError **error)
{
	struct boot_claims claims = {.memory = memory};
	struct boot_loaded loaded = {.memory = memory};
	const struct boot_range room = {BOOT_BIOS_END, MIN(memory_low_bytes(memory), INITRD_END_MAX) - BOOT_BIOS_END};
	struct boot_state result = {.rsp = BOOT_STACK_GPA + BOOT_PAGE_BYTES};

	if (!boot_check(config, BOOT_COMMAND_LINE_BYTES_MAX, error) || !protocol_choose(config, &result, error) ||
	    !structures_claim(&claims, config, error) || !boot_segments_load(&claims, config->image, error) ||
	    !boot_initrd_load(&claims, config->initrd_path, &room, &loaded.initrd, error))
		return false;

	loaded.map_entries = boot_memory_map(memory, config->reserved.value, config->reserved_bytes, loaded.map);
	memcpy(boot_structure(memory, BOOT_COMMAND_LINE_GPA, BOOT_COMMAND_LINE_BYTES_MAX), config->command_line,
	       strlen(config->command_line) + 1);
	tables_write(memory, config);
	boot_gdt_write(memory, &result);
	if (result.protocol == BOOT_PVH) {
		boot_pvh_write(&loaded, &result);
	} else {
		size_t bytes;
		const uint8_t *header = image_setup_header(config->image, &bytes);

		boot_linux_write(&loaded, header, bytes, &result);
	}
	*state = result;
	return true;
}
