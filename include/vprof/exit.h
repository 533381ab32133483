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
 */
#ifndef VPROF_EXIT_H
#define VPROF_EXIT_H

#include <stdint.h>

/* The run loop itself: signals, the sampler, a request from another thread. Above every KVM_EXIT_* (43 in Linux 6.18).
 */
#define VPROF_EXIT_REASON_VMM UINT64_C(0xff)

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

#endif
