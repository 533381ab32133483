// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/vcpu_time.h"

#include <glib.h>

void vcpu_time_add(struct vcpu_time *sum, const struct vcpu_time *time)
{
#define X(name, help) sum->name##_ns += time->name##_ns;
	VCPU_TIMES(X)
#undef X
}

struct vcpu_time vcpu_time_between(const struct vcpu_time *from, const struct vcpu_time *to)
{
	static const struct vcpu_time zero;
	struct vcpu_time between;

	/* The wall time of a running vCPU grows with every reading. */
	if (to->wall_ns < from->wall_ns)
		from = &zero;
#define X(name, help) between.name##_ns = to->name##_ns - MIN(from->name##_ns, to->name##_ns);
	VCPU_TIMES(X)
#undef X
	return between;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void guest_split(struct vcpu_time_parts *parts, const struct vcpu_modes *modes)
{
	const uint64_t looks = modes->kernel + modes->user;

	if (looks == 0) {
		parts->guest_unknown_ns = parts->guest_ns;
		return;
	}
	parts->guest_kernel_ns = (uint64_t)((unsigned __int128)parts->guest_ns * modes->kernel / looks);
	parts->guest_user_ns = parts->guest_ns - parts->guest_kernel_ns;
}

/* By one clock, which has each ns once: the residual is what that clock and the wall's disagree in. */
static struct vcpu_time_parts split_traced(const struct vcpu_time *time)
{
	struct vcpu_time_parts parts = {
		.wall_ns = time->wall_ns,
		.guest_ns = time->guest_ns,
		.kvm_ns = time->kvm_ns,
		.vmm_ns = time->vmm_traced_ns,
		.halted_ns = time->halt_wait_ns + time->halt_poll_ns,
		.polling_ns = time->halt_poll_ns,
		.offline_ns = time->offline_ns,
		.runnable_ns = time->runnable_ns,
	};

	parts.residual_ns = (int64_t)(time->wall_ns - (parts.guest_ns + parts.kvm_ns + parts.vmm_ns + parts.halted_ns +
	                                               parts.offline_ns + parts.runnable_ns));
	return parts;
}

static struct vcpu_time_parts split_untraced(const struct vcpu_time *time)
{
	/* What was neither the VMM's work nor KVM's polling was the guest. */
	uint64_t known_ns = time->vmm_ns + time->halt_poll_ns;
	/* The VMM cannot have worked longer than the thread ran; the rest of its wall time was a wait. */
	uint64_t vmm_waits_ns = MIN(minus(known_ns, time->cpu_ns), time->runnable_ns);
	struct vcpu_time_parts parts = {
		.wall_ns = time->wall_ns,
		.guest_ns = minus(time->cpu_ns, known_ns),
		.vmm_ns = time->vmm_ns,
		.halted_ns = time->halt_wait_ns + time->halt_poll_ns,
		.polling_ns = time->halt_poll_ns,
		.offline_ns = time->offline_ns,
		.runnable_ns = time->runnable_ns - vmm_waits_ns,
	};
	uint64_t sum_ns = parts.guest_ns + parts.vmm_ns + parts.halted_ns + parts.offline_ns + parts.runnable_ns;
	/* From a wake-up until the thread runs, the sleep's clock and the scheduler's both go on. */
	uint64_t twice_ns = MIN(minus(sum_ns, time->wall_ns), parts.runnable_ns);
	uint64_t from_halt_ns = MIN(twice_ns, time->halt_wait_ns);
	uint64_t from_offline_ns = MIN(twice_ns - from_halt_ns, time->offline_ns);

	parts.halted_ns -= from_halt_ns;
	parts.offline_ns -= from_offline_ns;
	parts.residual_ns = (int64_t)(time->wall_ns - (sum_ns - from_halt_ns - from_offline_ns));
	return parts;
}

bool vcpu_time_is_traced(const struct vcpu_time *time)
{
	return time->guest_ns + time->kvm_ns + time->vmm_traced_ns != 0;
}

struct vcpu_time_parts vcpu_time_split(const struct vcpu_time *time, const struct vcpu_modes *modes)
{
	struct vcpu_time_parts parts = vcpu_time_is_traced(time) ? split_traced(time) : split_untraced(time);

	guest_split(&parts, modes);
	return parts;
}

void vcpu_time_parts_add(struct vcpu_time_parts *sum, const struct vcpu_time_parts *parts)
{
	sum->wall_ns += parts->wall_ns;
	sum->guest_ns += parts->guest_ns;
	sum->guest_kernel_ns += parts->guest_kernel_ns;
	sum->guest_user_ns += parts->guest_user_ns;
	sum->guest_unknown_ns += parts->guest_unknown_ns;
	sum->kvm_ns += parts->kvm_ns;
	sum->vmm_ns += parts->vmm_ns;
	sum->halted_ns += parts->halted_ns;
	sum->polling_ns += parts->polling_ns;
	sum->offline_ns += parts->offline_ns;
	sum->runnable_ns += parts->runnable_ns;
	sum->residual_ns += parts->residual_ns;
}
