// SPDX-License-Identifier: BSD-2-Clause
/* MSRs and exceptions of a vCPU, and the instruction that KVM could not emulate. On the vCPU's thread. */
#ifndef VPROF_KVM_HOST_X86_KVM_VCPU_H
#define VPROF_KVM_HOST_X86_KVM_VCPU_H

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: KVM does not know the MSR, or does not take that value. */
bool kvm_msr_get(int vcpu_fd, uint32_t index, uint64_t *value);
bool kvm_msr_set(int vcpu_fd, uint32_t index, uint64_t value);

/* The guest gets this exception when it goes on; `code`: its error code, NULL: it has none. False with errno. */
bool kvm_exception_inject(int vcpu_fd, uint8_t vector, const uint32_t *code);

#define INSTRUCTION_BYTES_MAX 15u

/*
 * After KVM_EXIT_INTERNAL_ERROR: the bytes of the instruction that KVM could not emulate. Returns their number, 0 after
 * another error or where the host does not tell.
 */
size_t kvm_failed_instruction(const struct kvm_run *run, uint8_t bytes[INSTRUCTION_BYTES_MAX]);

#endif
