// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDPMC for a guest with a PMU of the VMM. KVM without a vPMU of its own answers it with #GP and never exits
 * (Linux, arch/x86/kvm/pmu.c, kvm_pmu_rdpmc), so it is replaced, where a kernel image has it, by an instruction of the
 * same two bytes that does exit: OUT to a port that nothing else is behind.
 */
#ifndef VPROF_KVM_VCPU_X86_RDPMC_H
#define VPROF_KVM_VCPU_X86_RDPMC_H

#include <stddef.h>
#include <stdint.h>

#define RDPMC_PORT 0xe5u

/* Replaces it in loaded code; returns how many were replaced. */
size_t rdpmc_replace(uint8_t *code, size_t bytes);

#endif
