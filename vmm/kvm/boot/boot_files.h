// SPDX-License-Identifier: BSD-2-Clause
/* The parts of boot_load that every architecture needs: the kernel's segments and the initramfs. Errors: BOOT_ERROR. */
#ifndef VPROF_KVM_BOOT_BOOT_FILES_H
#define VPROF_KVM_BOOT_BOOT_FILES_H

#include "kvm/boot/boot.h"
#include "kvm/boot/boot_claims.h"

/* Guest physical memory; 0 bytes: none. */
struct boot_range {
	uint64_t start, bytes;
};

/* Whether there can be a guest of this configuration. command_line_max: with the NUL. */
bool boot_check(const struct boot_config *config, size_t command_line_max, GError **error);

/* Loads the kernel to where its program headers say. */
bool boot_segments_load(struct boot_claims *claims, const struct image *image, GError **error);

/* Loads the file at the end of `room`, which is low RAM; *loaded is left as it is where `path` is NULL. */
bool boot_initrd_load(struct boot_claims *claims, const char *path, const struct boot_range *room,
                      struct boot_range *loaded, GError **error);

/* Whether a physical address is in one of the image's segments. */
bool boot_entry_is_loaded(const struct image *image, uint64_t entry);

#endif
