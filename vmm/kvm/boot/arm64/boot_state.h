// SPDX-License-Identifier: BSD-2-Clause
/* The state in which the boot processor enters the kernel (Documentation/arch/arm64/booting.rst). */
#ifndef VPROF_KVM_BOOT_ARM64_BOOT_STATE_H
#define VPROF_KVM_BOOT_ARM64_BOOT_STATE_H

#include "kvm/boot/boot.h"

struct boot_state {
	uint64_t pc;
	uint64_t device_tree; /* X0: guest physical */
};

#endif
