// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/x86/host_pvm_timer.h"

#include <sys/ioctl.h>

#include "kvm/host/thread.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "lib/record/clock.h"

#define MSR_IA32_TSC 0x10u /* SDM vol. 4, table 2-2 */
#define INTERVAL_MS 20u
/* How long a thread runs or waits before its share is looked at again: several slices of the host's scheduler. */
#define SHARE_NS UINT64_C(100000000)
/* An interrupt each second at least: Linux calls a processor stalled that RCU has not heard of for 21 s. */
#define STRETCH_MAX 50u

static bool shortest_read(struct host_pvm_timer *timer, const struct host_vcpu *vcpu)
{
	if (timer->shortest == 0) {
		int khz = ioctl(vcpu->fd, KVM_GET_TSC_KHZ);

		timer->shortest = timer->interval = khz > 0 ? (uint64_t)khz * INTERVAL_MS : 0;
	}
	return timer->shortest != 0;
}

void host_pvm_timer_share(struct host_pvm_timer *timer, uint64_t ran_ns, uint64_t waited_ns)
{
	uint64_t ran = ran_ns - timer->ran_ns, all = ran + waited_ns - timer->waited_ns;

	if (all < SHARE_NS)
		return;
	double stretch = (double)all / (double)MAX(ran, 1);
	timer->interval = (uint64_t)((double)timer->shortest * MIN(stretch, STRETCH_MAX));
	timer->ran_ns = ran_ns;
	timer->waited_ns = waited_ns;
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

	if (shortest_read(timer, vcpu) && kvm_msr_get(vcpu->fd, MSR_IA32_TSC, &now)) {
		host_pvm_timer_share(timer, clock_ns(CLOCK_THREAD_CPUTIME_ID), thread_waited_ns(vcpu->schedstat_fd));
		wanted = host_pvm_timer_deadline(timer, now, wanted);
	}
	return kvm_msr_set(vcpu->fd, MSR_IA32_TSC_DEADLINE, wanted);
}
