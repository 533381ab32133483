// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest's timer interrupts, at the rate that an emulated kernel can afford. Linux with 250 ticks a second has 4 ms
 * for each, and takes about two of them for the tick itself at 1.4 million instructions a second.
 */
#include <sys/ioctl.h>

#include "kvm/host/host_pvm_priv.h"

#define MSR_IA32_TSC 0x10u /* SDM vol. 4, table 2-2 */
#define INTERVAL_MS 20u

static bool interval_read(struct host_pvm_timer *timer, const struct vcpu *vcpu)
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

bool host_pvm_timer_write(struct host_pvm_timer *timer, struct vcpu *vcpu, uint64_t wanted)
{
	uint64_t now;
	if (interval_read(timer, vcpu) && vcpu_msr_get(vcpu, MSR_IA32_TSC, &now))
		wanted = host_pvm_timer_deadline(timer, now, wanted);
	return vcpu_msr_set(vcpu, MSR_IA32_TSC_DEADLINE, wanted);
}
