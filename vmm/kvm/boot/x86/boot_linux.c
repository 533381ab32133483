// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/boot/command_line.h"
#include "kvm/boot/x86/boot_protocol.h"

#define PAGE_TABLE_ENTRIES 512u
#define PAGE_DIRECTORIES 4u /* 1 GiB each */
#define PTE_PRESENT_WRITABLE 0x3u
#define PTE_LARGE 0x80u
#define LARGE_PAGE_BYTES (UINT64_C(2) << 20)

/* What Documentation/arch/x86/boot.rst wants to see, where a plain ELF has no header to take it from. */
#define BOOT_FLAG 0xaa55u
#define HEADER_MAGIC 0x53726448u /* "HdrS" */
#define KERNEL_ALIGNMENT 0x1000000u
#define LOADER_TYPE_UNDEFINED 0xffu

/*
 * A panicking kernel asks for a reboot at once, which ends the guest, and by the keyboard controller, the only way
 * there is.
 */
const char *const boot_linux_defaults[] = {"panic=-1", "reboot=k", NULL};

/*
 * Documentation/admin-guide/kernel-parameters.txt, virtio_mmio.device; it is given once for each. A kernel without ACPI
 * finds them in no other way.
 */
void boot_append_devices(GString *text, unsigned n_virtio)
{
	for (unsigned i = 0; i < n_virtio; i++)
		g_string_append_printf(text, " virtio_mmio.device=0x%x@0x%x:%u", BOOT_VIRTIO_BYTES, BOOT_VIRTIO_GPA(i),
		                       boot_virtio_irq(i));
}

static void identity_map_write(const struct memory *memory)
{
	uint64_t *pml4 = boot_structure(memory, BOOT_PAGE_TABLES_GPA, BOOT_PAGE_TABLES_BYTES);
	uint64_t *pdpt = pml4 + PAGE_TABLE_ENTRIES;
	uint64_t *pd = pdpt + PAGE_TABLE_ENTRIES;

	pml4[0] = (BOOT_PAGE_TABLES_GPA + BOOT_PAGE_BYTES) | PTE_PRESENT_WRITABLE;
	for (unsigned i = 0; i < PAGE_DIRECTORIES; i++)
		pdpt[i] = (BOOT_PAGE_TABLES_GPA + (UINT64_C(2) + i) * BOOT_PAGE_BYTES) | PTE_PRESENT_WRITABLE;
	for (unsigned i = 0; i < PAGE_DIRECTORIES * PAGE_TABLE_ENTRIES; i++)
		pd[i] = i * LARGE_PAGE_BYTES | PTE_LARGE | PTE_PRESENT_WRITABLE;
}

static void setup_header_write(struct setup_header *header, const uint8_t *from, size_t bytes)
{
	if (from) {
		memcpy(header, from, MIN(bytes, sizeof(*header)));
	} else {
		header->boot_flag = BOOT_FLAG;
		header->header = HEADER_MAGIC;
		header->kernel_alignment = KERNEL_ALIGNMENT;
	}
	header->type_of_loader = LOADER_TYPE_UNDEFINED;
	/* KASLR_FLAG is the decompressor's word that it moved the kernel; ours stays where it was linked. */
	header->loadflags = (uint8_t)((header->loadflags & ~KASLR_FLAG) | LOADED_HIGH);
	header->cmd_line_ptr = BOOT_COMMAND_LINE_GPA;
	header->cmdline_size = BOOT_COMMAND_LINE_BYTES_MAX - 1;
}

void boot_linux_write(const struct boot_loaded *loaded, const uint8_t *setup_header, size_t setup_header_bytes,
                      struct boot_state *state)
{
	/* Zero but for what is set here, so `sentinel` is clear and the kernel believes the ext_* fields. */
	struct boot_params *params = boot_structure(loaded->memory, BOOT_PARAMS_GPA, sizeof(*params));
	setup_header_write(&params->hdr, setup_header, setup_header_bytes);
	params->hdr.ramdisk_image = (uint32_t)loaded->initrd.start;
	params->hdr.ramdisk_size = (uint32_t)loaded->initrd.bytes;
	params->acpi_rsdp_addr = BOOT_ACPI_GPA;
	params->e820_entries = (uint8_t)loaded->map_entries;
	memcpy(params->e820_table, loaded->map, loaded->map_entries * sizeof(loaded->map[0]));

	identity_map_write(loaded->memory);
	state->rsi = BOOT_PARAMS_GPA;
	state->cr3 = BOOT_PAGE_TABLES_GPA;
}
