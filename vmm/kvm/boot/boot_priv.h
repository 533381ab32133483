// SPDX-License-Identifier: BSD-2-Clause
/* What the two boot protocols need to know of a loaded kernel. */
#ifndef VPROF_KVM_BOOT_PRIV_H
#define VPROF_KVM_BOOT_PRIV_H

#include "kvm/boot/boot.h"
#include "kvm/boot/boot_layout.h"

#define BOOT_SELECTOR_CODE64 0x10u /* Linux's __BOOT_CS and __BOOT_DS (arch/x86/include/asm/segment.h) */
#define BOOT_SELECTOR_DATA 0x18u
#define BOOT_SELECTOR_CODE32 0x20u
#define BOOT_SELECTOR_TSS 0x28u

struct boot_loaded {
	const struct memory *memory;
	struct boot_e820_entry map[BOOT_MEMORY_MAP_MAX];
	unsigned map_entries;
	uint32_t initrd_gpa; /* with initrd_bytes 0: there is none */
	uint32_t initrd_bytes;
};

/* Descriptors for the selectors above; sets the table's base and limit in *state. */
void boot_gdt_write(const struct memory *memory, struct boot_state *state);

/* boot_params and the identity map. `setup_header` as image_setup_header returns it, may be NULL. */
void boot_linux_write(const struct boot_loaded *loaded, const uint8_t *setup_header, size_t setup_header_bytes,
                      struct boot_state *state);

/* The start info and what it points to. */
void boot_pvh_write(const struct boot_loaded *loaded, struct boot_state *state);

/* Host memory of one of our own structures, which boot_load has claimed. */
static inline void *boot_structure(const struct memory *memory, uint64_t start, uint64_t bytes)
{
	return memory_at(memory, (gpa_t){start}, bytes);
}

#endif
