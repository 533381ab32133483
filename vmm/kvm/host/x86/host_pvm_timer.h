// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest's timer interrupts, at the rate that an emulated kernel can afford. Linux with 250 ticks a second has 4 ms
 * for each, and takes about two of them for the tick itself at 1.4 million instructions a second.
 *
 * The interval between two is one of the vCPU's own time. In wall time, a vCPU that gets a tenth of a busy host's CPU
 * would have 2 ms of each 20 ms, and would do nothing but ticks.
 */
#ifndef VPROF_KVM_HOST_X86_HOST_PVM_TIMER_H
#define VPROF_KVM_HOST_X86_HOST_PVM_TIMER_H

#include "kvm/host/x86/host_quirks.h"

#define MSR_IA32_TSC_DEADLINE 0x6e0u /* SDM vol. 3A, 11.5.4.1 */

/* The timer of one vCPU's APIC. Times are the guest's TSC. All zero at first. */
struct host_pvm_timer {
	uint64_t shortest;          /* between two interrupts of a vCPU that always has a host CPU; 0: not known yet */
	uint64_t interval;          /* between two of this one, with the share of a host CPU that it gets */
	uint64_t deadline;          /* of the interrupt to come, or the last that came; 0: none */
	uint64_t last;              /* when it came */
	uint64_t ran_ns, waited_ns; /* of the vCPU's thread, when its share was last looked at */
};

/* The vCPU's thread has been on a host CPU, and has waited for one, for so long since it began: sets `interval`. */
void host_pvm_timer_share(struct host_pvm_timer *timer, uint64_t ran_ns, uint64_t waited_ns);

/* The time of the interrupt that the guest wants at `wanted` (0: none); its TSC reads `now`. */
uint64_t host_pvm_timer_deadline(struct host_pvm_timer *timer, uint64_t now, uint64_t wanted);
/* The guest sets the timer. False: KVM refuses. The vCPU's thread. */
bool host_pvm_timer_write(struct host_pvm_timer *timer, const struct host_vcpu *vcpu, uint64_t wanted);

#endif
