// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_debug.h"

#include <string.h>

#include "guest/file_code.h"
#include "guest/gprs.h"
#include "kvm/vcpu/vcpu.h"

size_t breakpoints_addresses(const struct breakpoints *breakpoints, uint64_t to[GUEST_BREAKPOINT_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < breakpoints->n && n < GUEST_BREAKPOINT_ADDRESSES_MAX; i++) {
		size_t known = 0;

		if (breakpoints->all[i]->patched)
			continue;
		while (known < n && to[known] != breakpoints->all[i]->at.value)
			known++;
		if (known == n)
			to[n++] = breakpoints->all[i]->at.value;
	}
	return n;
}

bool breakpoints_patched(const struct breakpoints *breakpoints)
{
	for (size_t i = 0; i < breakpoints->n; i++)
		if (breakpoints->all[i]->patched)
			return true;
	return false;
}

bool vcpu_debug_set(struct vcpu *vcpu, const struct breakpoints *breakpoints)
{
	const struct breakpoints before = vcpu->debug.breakpoints;

	vcpu->debug.breakpoints = *breakpoints;
	if (vcpu_arch_debug(vcpu))
		return true;
	vcpu->debug.breakpoints = before;
	return false;
}

/* Whether it is the same hit again, of which the users know. */
static bool is_again(struct vcpu_debug *debug, uint64_t ip)
{
	if (debug->again != ip || debug->again_stack != debug->over_stack)
		return false;
	debug->again = 0;
	return true;
}

bool vcpu_debug_hit(struct vcpu *vcpu, uint64_t ip)
{
	const struct breakpoints *breakpoints = &vcpu->debug.breakpoints;
	struct guest_gprs gprs;
	bool found = false;

	vcpu_arch_gprs(vcpu, &gprs);
	vcpu->debug.over_stack = guest_gprs_stack(&gprs);
	const bool again = is_again(&vcpu->debug, ip);
	for (size_t i = 0; i < breakpoints->n; i++) {
		struct guest_breakpoint *breakpoint = breakpoints->all[i];

		if (breakpoint->in_file || breakpoint->at.value != ip)
			continue;
		if (!again)
			breakpoint->hit(breakpoint, vcpu->index, &vcpu->regs, &gprs);
		found = true;
	}
	return found;
}

void vcpu_debug_hit_in_file(struct vcpu *vcpu, const struct file_code *code)
{
	const struct breakpoints *breakpoints = &vcpu->debug.breakpoints;
	struct guest_gprs gprs;

	vcpu_arch_gprs(vcpu, &gprs);
	for (size_t i = 0; i < breakpoints->n; i++) {
		struct guest_breakpoint *breakpoint = breakpoints->all[i];

		if (breakpoint->in_file && file_code_equal(breakpoint->in_file, code))
			breakpoint->hit(breakpoint, vcpu->index, &vcpu->regs, &gprs);
	}
}

static void note_mmio(const struct kvm_run *run, struct guest_access *access)
{
	access->address = run->mmio.phys_addr;
	access->bytes = (uint8_t)run->mmio.len;
	access->write = run->mmio.is_write;
	memcpy(&access->value, run->mmio.data, MIN(run->mmio.len, sizeof(access->value)));
}

static void note(const struct kvm_run *run, struct guest_access *access)
{
	*access = (struct guest_access){.reason = run->exit_reason, .count = 1};
	if (run->exit_reason == KVM_EXIT_MMIO)
		note_mmio(run, access);
	else
		vcpu_arch_access(run, access);
}

void vcpu_observe_exit(struct vcpu *vcpu, bool interrupted)
{
	struct vcpu_debug *debug = &vcpu->debug;

	debug->observed = debug->observers.n > 0;
	if (G_LIKELY(!debug->observed))
		return;
	vcpu_arch_gprs(vcpu, &debug->gprs);
	if (interrupted)
		debug->access = (struct guest_access){.reason = KVM_EXIT_INTR, .count = 1};
	else
		note(vcpu->run, &debug->access);
}

void vcpu_observe_handled(struct vcpu *vcpu)
{
	struct vcpu_debug *debug = &vcpu->debug;

	if (G_LIKELY(!debug->observed))
		return;
	if (debug->access.bytes != 0 && !debug->access.write)
		note(vcpu->run, &debug->access); /* what was read */
	for (size_t i = 0; i < debug->observers.n; i++) {
		struct guest_observer *observer = debug->observers.all[i];

		observer->exited(observer, vcpu->index, &debug->access, &vcpu->regs, &debug->gprs);
	}
}
