// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest's timer interrupts, at the rate that an emulated kernel can afford. Linux with 250 ticks a second has 4 ms
 * for each, and takes about two of them for the tick itself at 1.4 million instructions a second.
 */
#ifndef VPROF_KVM_HOST_PVM_TIMER_H
#define VPROF_KVM_HOST_PVM_TIMER_H

#include "kvm/host/host.h"

#define MSR_IA32_TSC_DEADLINE 0x6e0u /* SDM vol. 3A, 11.5.4.1 */

/* The timer of one vCPU's APIC. Times are the guest's TSC. All zero at first. */
struct host_pvm_timer {
	uint64_t interval; /* at least that between two interrupts; 0: not known yet */
	uint64_t deadline; /* of the interrupt to come, or the last that came; 0: none */
	uint64_t last;     /* when it came */
};

/* When the interrupt is to come that the guest, which reads `now`, wants at `wanted` (0: not at all). */
uint64_t host_pvm_timer_deadline(struct host_pvm_timer *timer, uint64_t now, uint64_t wanted);
/* The guest sets the timer. False: KVM refuses. The vCPU's thread. */
bool host_pvm_timer_write(struct host_pvm_timer *timer, const struct host_vcpu *vcpu, uint64_t wanted);

#endif
