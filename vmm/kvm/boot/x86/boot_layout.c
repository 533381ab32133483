// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/x86/boot_layout.h"

/* As in the ACPI specification, "Address Range Types". */
enum { E820_RAM = 1, E820_RESERVED = 2 };

static unsigned map_add(struct boot_e820_entry *map, unsigned n, uint64_t start, uint64_t end, uint32_t type)
{
	if (start >= end)
		return n;
	map[n] = (struct boot_e820_entry){.addr = start, .size = end - start, .type = type};
	return n + 1;
}

unsigned boot_memory_map(const struct memory *memory, uint64_t reserved_start, uint64_t reserved_bytes,
                         struct boot_e820_entry map[BOOT_MEMORY_MAP_MAX])
{
	uint64_t reserved_end = reserved_start + reserved_bytes;
	unsigned n = 0;

	if (reserved_bytes == 0)
		reserved_start = reserved_end = BOOT_BIOS_GPA;
	n = map_add(map, n, 0, reserved_start, E820_RAM);
	n = map_add(map, n, reserved_start, reserved_end, E820_RESERVED);
	n = map_add(map, n, reserved_end, BOOT_BIOS_GPA, E820_RAM);
	n = map_add(map, n, BOOT_BIOS_GPA, BOOT_BIOS_END, E820_RESERVED);
	n = map_add(map, n, BOOT_BIOS_END, memory_low_bytes(memory), E820_RAM);
	return map_add(map, n, MEMORY_HIGH_BASE, MEMORY_HIGH_BASE + memory_high_bytes(memory), E820_RAM);
}

uint8_t boot_checksum(const void *table, size_t bytes)
{
	const uint8_t *byte = table;
	unsigned sum = 0;

	for (size_t i = 0; i < bytes; i++)
		sum += byte[i];
	return (uint8_t)-sum;
}
