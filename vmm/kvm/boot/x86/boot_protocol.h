// SPDX-License-Identifier: BSD-2-Clause
/* The two boot protocols, and what they read of a loaded kernel. */
#ifndef VPROF_KVM_BOOT_X86_BOOT_PROTOCOL_H
#define VPROF_KVM_BOOT_X86_BOOT_PROTOCOL_H

#include "kvm/boot/boot_files.h"
#include "kvm/boot/x86/boot_layout.h"
#include "kvm/boot/x86/boot_registers.h"

struct boot_loaded {
	const struct memory *memory;
	struct boot_e820_entry map[BOOT_MEMORY_MAP_MAX];
	unsigned map_entries;
	struct boot_range initrd;
};

/* boot_params and the identity map. `setup_header` as image_setup_header returns it, may be NULL. */
void boot_linux_write(const struct boot_loaded *loaded, const uint8_t *setup_header, size_t setup_header_bytes,
                      struct boot_state *state);

/* The start info and what it points to. */
void boot_pvh_write(const struct boot_loaded *loaded, struct boot_state *state);

#endif
