// SPDX-License-Identifier: BSD-2-Clause
/*
 * The PVH start info (xen/include/public/arch-x86/hvm/start_info.h), version 1.
 */
#include "kvm/boot/x86/boot_protocol.h"

#define START_MAGIC 0x336ec578u
#define START_VERSION 1u

struct start_info {
	uint32_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t nr_modules;
	uint64_t modlist_gpa;
	uint64_t cmdline_gpa;
	uint64_t rsdp_gpa;
	uint64_t memmap_gpa;
	uint32_t memmap_entries;
	uint32_t reserved;
};
_Static_assert(sizeof(struct start_info) == 56, "hvm_start_info");

struct start_module {
	uint64_t gpa;
	uint64_t bytes;
	uint64_t cmdline_gpa;
	uint64_t reserved;
};
_Static_assert(sizeof(struct start_module) == 32, "hvm_modlist_entry");

struct start_memory {
	uint64_t gpa;
	uint64_t bytes;
	uint32_t type; /* as in E820 */
	uint32_t reserved;
};
_Static_assert(sizeof(struct start_memory) == 24, "hvm_memmap_table_entry");

struct start_page {
	struct start_info info;
	struct start_module initrd;
	struct start_memory map[BOOT_MEMORY_MAP_MAX];
};
_Static_assert(sizeof(struct start_page) <= BOOT_PAGE_BYTES, "all of it fits its page");

void boot_pvh_write(const struct boot_loaded *loaded, struct boot_state *state)
{
	struct start_page *page = boot_structure(loaded->memory, BOOT_PVH_INFO_GPA, sizeof(*page));

	page->info = (struct start_info){
		.magic = START_MAGIC,
		.version = START_VERSION,
		.cmdline_gpa = BOOT_COMMAND_LINE_GPA,
		.rsdp_gpa = BOOT_ACPI_GPA,
		.memmap_gpa = BOOT_PVH_INFO_GPA + offsetof(struct start_page, map),
		.memmap_entries = loaded->map_entries,
	};
	if (loaded->initrd.bytes > 0) {
		page->info.nr_modules = 1;
		page->info.modlist_gpa = BOOT_PVH_INFO_GPA + offsetof(struct start_page, initrd);
		page->initrd = (struct start_module){.gpa = loaded->initrd.start, .bytes = loaded->initrd.bytes};
	}
	for (unsigned i = 0; i < loaded->map_entries; i++) {
		const struct boot_e820_entry *entry = &loaded->map[i];

		page->map[i] = (struct start_memory){.gpa = entry->addr, .bytes = entry->size, .type = entry->type};
	}
	state->rbx = BOOT_PVH_INFO_GPA;
}
