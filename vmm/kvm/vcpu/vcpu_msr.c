// SPDX-License-Identifier: BSD-2-Clause
/* MSRs of a vCPU, one at a time. */
#include <sys/ioctl.h>

#include "kvm/vm_priv.h"

union one_msr {
	struct kvm_msrs msrs;
	uint8_t bytes[sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)];
};

bool vcpu_msr_get(struct vcpu *vcpu, uint32_t index, uint64_t *value)
{
	union one_msr buffer = {.msrs = {.nmsrs = 1}};
	buffer.msrs.entries[0].index = index;
	if (ioctl(vcpu->fd, KVM_GET_MSRS, &buffer) != 1)
		return false;
	*value = buffer.msrs.entries[0].data;
	return true;
}

bool vcpu_msr_set(struct vcpu *vcpu, uint32_t index, uint64_t value)
{
	union one_msr buffer = {.msrs = {.nmsrs = 1}};
	buffer.msrs.entries[0] = (struct kvm_msr_entry){.index = index, .data = value};
	return ioctl(vcpu->fd, KVM_SET_MSRS, &buffer) == 1;
}

void vcpu_msr_exit(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	uint64_t value = 0;
	bool done;
	if (run->exit_reason == KVM_EXIT_X86_RDMSR) {
		done = vcpu_msr_get(vcpu, run->msr.index, &value);
		run->msr.data = value;
	} else {
		done = vcpu_msr_set(vcpu, run->msr.index, run->msr.data);
	}
	run->msr.error = !done; /* not 0: #GP */
}
