// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instruction pointer of a HYPERVISOR sample.
 *
 * A sample that falls while a vCPU thread is outside KVM_RUN belongs to no guest instruction. Its ip says which exit
 * the VMM was handling instead: the KVM exit reason (linux/kvm.h, KVM_EXIT_*) in the top byte, what the exit was about
 * below.
 *
 *   63      56 55                                             0
 *   | reason  | detail: port, MSR index or guest physical address |
 *
 * In a recording with the host's side (session-start, "host") it is the host's own instruction pointer instead: in its
 * kernel, with ones in the upper 17 bits, or in the process that runs the guest, with zeros there. No exit looks like
 * that: reason 0xff has no detail, and reason 0 (KVM_EXIT_UNKNOWN) neither.
 */
#ifndef VPROF_EXIT_H
#define VPROF_EXIT_H

#include <stdbool.h>
#include <stdint.h>

/* The run loop itself: signals, the sampler, a request from another thread. Above every KVM_EXIT_* (43 in Linux 6.18).
 */
#define VPROF_EXIT_REASON_VMM UINT64_C(0xff)

/* No exit: the vCPU of an attached guest ran a guest of that guest's own (nested virtualization). */
#define VPROF_EXIT_REASON_NESTED UINT64_C(0xfe)

#define VPROF_EXIT_DETAIL_BITS 56
#define VPROF_EXIT_DETAIL_MASK ((UINT64_C(1) << VPROF_EXIT_DETAIL_BITS) - 1)

static inline uint64_t vprof_exit_ip(uint64_t reason, uint64_t detail)
{
	return reason << VPROF_EXIT_DETAIL_BITS | (detail & VPROF_EXIT_DETAIL_MASK);
}

static inline uint64_t vprof_exit_reason(uint64_t ip)
{
	return ip >> VPROF_EXIT_DETAIL_BITS;
}

static inline uint64_t vprof_exit_detail(uint64_t ip)
{
	return ip & VPROF_EXIT_DETAIL_MASK;
}

#define VPROF_HOST_ADDRESS_BITS                                                               \
	47 /* of each half, with four levels of page tables and five: user space, kernel text \
	    */

/* Whether it is an address of the host's code. */
static inline bool vprof_exit_is_host(uint64_t ip)
{
	const uint64_t upper = ip >> VPROF_HOST_ADDRESS_BITS;

	return ip != 0 && (upper == 0 || upper == UINT64_MAX >> VPROF_HOST_ADDRESS_BITS);
}

#endif
