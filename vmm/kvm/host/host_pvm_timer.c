// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host_pvm_timer.h"

#include <sys/ioctl.h>

#include "kvm/host/kvm_vcpu.h"

#define MSR_IA32_TSC 0x10u /* SDM vol. 4, table 2-2 */
#define INTERVAL_MS 20u

static bool interval_read(struct host_pvm_timer *timer, const struct host_vcpu *vcpu)
{
	if (timer->interval == 0) {
		int khz = ioctl(vcpu->fd, KVM_GET_TSC_KHZ);
		timer->interval = khz > 0 ? (uint64_t)khz * INTERVAL_MS : 0;
	}
	return timer->interval != 0;
}

uint64_t host_pvm_timer_deadline(struct host_pvm_timer *timer, uint64_t now, uint64_t wanted)
{
	if (timer->deadline != 0 && timer->deadline <= now)
		timer->last = timer->deadline;
	uint64_t earliest;
	/* The guest may have set its TSC back. */
	timer->last = MIN(timer->last, now);
	if (__builtin_add_overflow(timer->last, timer->interval, &earliest))
		earliest = UINT64_MAX;
	timer->deadline = wanted == 0 ? 0 : MAX(wanted, earliest);
	return timer->deadline;
}

bool host_pvm_timer_write(struct host_pvm_timer *timer, const struct host_vcpu *vcpu, uint64_t wanted)
{
	uint64_t now;
	if (interval_read(timer, vcpu) && kvm_msr_get(vcpu->fd, MSR_IA32_TSC, &now))
		wanted = host_pvm_timer_deadline(timer, now, wanted);
	return kvm_msr_set(vcpu->fd, MSR_IA32_TSC_DEADLINE, wanted);
}
