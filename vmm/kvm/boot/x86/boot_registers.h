// SPDX-License-Identifier: BSD-2-Clause
/* The state in which the boot processor enters the kernel. */
#ifndef VPROF_KVM_BOOT_X86_BOOT_REGISTERS_H
#define VPROF_KVM_BOOT_X86_BOOT_REGISTERS_H

#include <linux/kvm.h>
#include <stdint.h>

#include "kvm/boot/boot.h"

struct boot_state {
	enum boot_protocol protocol; /* BOOT_LINUX or BOOT_PVH */
	uint64_t rip, rsp;
	uint64_t rsi; /* BOOT_LINUX: boot_params */
	uint64_t rbx; /* BOOT_PVH: hvm_start_info */
	uint64_t cr3; /* BOOT_LINUX: identity map of the first 4 GiB in 2 MiB pages */
	uint64_t gdt_base;
	uint16_t gdt_limit;
};

/* Writes the segment descriptors of both protocols; sets the table's base and limit in *state. */
void boot_gdt_write(const struct memory *memory, struct boot_state *state);

/* The registers of the boot processor; *sregs comes from KVM_GET_SREGS and keeps what the protocol leaves open. */
void boot_registers(const struct boot_state *state, struct kvm_regs *regs, struct kvm_sregs *sregs);

#endif
