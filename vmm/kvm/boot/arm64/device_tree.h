// SPDX-License-Identifier: BSD-2-Clause
/* The flattened device tree (Devicetree Specification 0.4, chapter 5) of an arm64 machine. */
#ifndef VPROF_KVM_BOOT_ARM64_DEVICE_TREE_H
#define VPROF_KVM_BOOT_ARM64_DEVICE_TREE_H

#include "kvm/boot/boot_files.h"

#define DEVICE_TREE_BYTES_MAX 0x10000u

/* Writes it to `to`, of DEVICE_TREE_BYTES_MAX. `initrd`: 0 bytes where there is none. Errors: BOOT_ERROR_RANGE. */
bool device_tree_write(void *to, const struct memory *memory, const struct boot_config *config,
                       const struct boot_range *initrd, GError **error);

#endif
