// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/x86/kvm_vcpu.h"

#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>

union one_msr {
	struct kvm_msrs msrs;
	uint8_t bytes[sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)];
};

bool kvm_msr_get(int vcpu_fd, uint32_t index, uint64_t *value)
{
	union one_msr buffer = {.msrs = {.nmsrs = 1}};

	buffer.msrs.entries[0].index = index;
	if (ioctl(vcpu_fd, KVM_GET_MSRS, &buffer) != 1)
		return false;
	*value = buffer.msrs.entries[0].data;
	return true;
}

bool kvm_msr_set(int vcpu_fd, uint32_t index, uint64_t value)
{
	union one_msr buffer = {.msrs = {.nmsrs = 1}};

	buffer.msrs.entries[0] = (struct kvm_msr_entry){.index = index, .data = value};
	return ioctl(vcpu_fd, KVM_SET_MSRS, &buffer) == 1;
}

bool kvm_exception_inject(int vcpu_fd, uint8_t vector, const uint32_t *code)
{
	struct kvm_vcpu_events events;

	if (ioctl(vcpu_fd, KVM_GET_VCPU_EVENTS, &events) < 0)
		return false;
	events.flags = 0;
	events.exception.injected = 1;
	events.exception.pending = 0;
	events.exception.nr = vector;
	events.exception.has_error_code = code != NULL;
	events.exception.error_code = code ? *code : 0;
	return ioctl(vcpu_fd, KVM_SET_VCPU_EVENTS, &events) == 0;
}

/* Documentation/virt/kvm/api.rst, 7.34: the struct's fields are there if ndata and flags say so. */
size_t kvm_failed_instruction(const struct kvm_run *run, uint8_t bytes[INSTRUCTION_BYTES_MAX])
{
	if (run->internal.suberror != KVM_INTERNAL_ERROR_EMULATION || run->emulation_failure.ndata < 3 ||
	    !(run->emulation_failure.flags & KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES))
		return 0;
	size_t n = MIN(run->emulation_failure.insn_size, INSTRUCTION_BYTES_MAX);
	memcpy(bytes, run->emulation_failure.insn_bytes, n);
	return n;
}
