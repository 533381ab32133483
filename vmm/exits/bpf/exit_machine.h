// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an event at a trace point of KVM's or of the scheduler's says of a vCPU's time: the rules of exit_times.h. It is
 * compiled twice: into the BPF program that runs at these trace points, and into exit_events.c, which reads their
 * records. Times are CLOCK_MONOTONIC in ns, and never go back for long: an event before the last one takes no time.
 */
#ifndef VPROF_EXITS_BPF_EXIT_MACHINE_H
#define VPROF_EXITS_BPF_EXIT_MACHINE_H

#include <linux/types.h>
#include <stdbool.h>

#include "exit_times.h"

#define PROBES 8 /* slots that are looked at for a key */
#define MIX 0x9e3779b97f4a7c15ull
#define ERRNO_INTR (-4)
#define CAUSE_SIGNAL 0xffull
#define CAUSE_SHIFT 56
#define CAUSE_DETAIL ((1ull << CAUSE_SHIFT) - 1)
#define CAUSE_IO 2 /* KVM_EXIT_IO and KVM_EXIT_MMIO of linux/kvm.h, which BPF cannot include */
#define CAUSE_MMIO 6
#define MMIO_READ_UNSATISFIED 0 /* KVM_TRACE_MMIO_* (include/trace/events/kvm.h) */
#define MMIO_WRITE 2

/* ---- time ---- */

static __u32 part_of(const struct exit_times_now *now)
{
	if (now->state == EXIT_TIMES_STATE_VMM)
		return EXIT_TIMES_VMM;
	if (now->state == EXIT_TIMES_STATE_LOST)
		return EXIT_TIMES_LOST;
	if (now->run == EXIT_TIMES_READY)
		return EXIT_TIMES_WAITING;
	if (now->run == EXIT_TIMES_ASLEEP)
		return now->open || now->state != EXIT_TIMES_STATE_KVM ? EXIT_TIMES_BLOCKED : EXIT_TIMES_OFFLINE;
	if (now->state == EXIT_TIMES_STATE_GUEST)
		return EXIT_TIMES_GUEST;
	return now->state == EXIT_TIMES_STATE_KVM ? EXIT_TIMES_KVM : EXIT_TIMES_UNKNOWN;
}

static void advance(struct exit_times_now *now, __u64 until_ns)
{
	if (until_ns <= now->since_ns)
		return;
	if (now->part < EXIT_TIMES_PARTS)
		now->ns[now->part] += until_ns - now->since_ns;
	now->since_ns = until_ns;
}

static void mark(struct exit_times_now *now)
{
	now->mark_kvm = now->ns[EXIT_TIMES_KVM];
	now->mark_blocked = now->ns[EXIT_TIMES_BLOCKED];
	now->mark_waiting = now->ns[EXIT_TIMES_WAITING];
	now->mark_offline = now->ns[EXIT_TIMES_OFFLINE];
}

/* The first event says where the thread has been. The scheduler's do not come before: its task is not known yet. */
static void resolve(struct exit_times_now *now, __u32 part)
{
	if (now->state != EXIT_TIMES_STATE_UNKNOWN)
		return;
	now->ns[part] += now->ns[EXIT_TIMES_UNKNOWN];
	now->ns[EXIT_TIMES_UNKNOWN] = 0;
	now->resolved = part;
}

static void enter(struct exit_times_now *now, __u32 state)
{
	now->state = state;
	now->part = part_of(now);
}

/* ---- tables ---- */

static __u32 bucket_of(__u64 ns)
{
	__u32 bucket = 0;

	if (ns >> (EXIT_TIMES_BUCKETS - 1))
		return EXIT_TIMES_BUCKETS - 1;
	for (__u32 step = 16; step > 0; step /= 2) {
		if (ns >> step) {
			ns >>= step;
			bucket += step;
		}
	}
	return bucket & (EXIT_TIMES_BUCKETS - 1);
}

static struct exit_times_reason *reason_of(struct exit_times_vcpu *vcpu, __u32 reason)
{
	__u64 key = (__u64)reason + 1;

	for (__u32 i = 0; i < PROBES; i++) {
		struct exit_times_reason *slot = &vcpu->reasons[(reason + i) & (EXIT_TIMES_REASONS - 1)];

		if (slot->key == 0)
			slot->key = key;
		if (slot->key == key)
			return slot;
	}
	vcpu->reasons[EXIT_TIMES_REASONS].key = EXIT_TIMES_OTHER;
	return &vcpu->reasons[EXIT_TIMES_REASONS];
}

_Static_assert(EXIT_TIMES_ADDRESSES == EXIT_TIMES_CAUSES, "slot_of is for both");

static struct exit_times_slot *slot_of(struct exit_times_slot *slots, __u64 key)
{
	__u32 first = (__u32)(key * MIX >> 32);

	for (__u32 i = 0; i < PROBES; i++) {
		struct exit_times_slot *slot = &slots[(first + i) & (EXIT_TIMES_ADDRESSES - 1)];

		if (slot->key == 0)
			slot->key = key;
		if (slot->key == key)
			return slot;
	}
	slots[EXIT_TIMES_ADDRESSES].key = EXIT_TIMES_OTHER;
	return &slots[EXIT_TIMES_ADDRESSES];
}

/* ---- exits ---- */

/* A return to the VMM is over, and by now it is known what it was about. */
static void cause_finish(struct exit_times_vcpu *vcpu)
{
	struct exit_times_now *now = &vcpu->now;

	if (!now->cause)
		return;
	struct exit_times_slot *slot = slot_of(vcpu->causes, now->cause);

	slot->count++;
	slot->ns += now->cause_ns;
	now->cause = 0;
	now->events++;
}

#define SPENT(now, part) ((now)->ns[part] - (now)->at_exit[part])

/* The guest is entered again. */
static void finish(struct exit_times_vcpu *vcpu, __u64 now_ns)
{
	struct exit_times_now *now = &vcpu->now;
	__u64 ns = now_ns > now->exit_ns ? now_ns - now->exit_ns : 0;

	if (!now->open)
		return;
	struct exit_times_reason *reason = reason_of(vcpu, now->reason);

	reason->count++;
	reason->ns += ns;
	reason->kvm_ns += SPENT(now, EXIT_TIMES_KVM) + SPENT(now, EXIT_TIMES_BLOCKED);
	reason->vmm_ns += SPENT(now, EXIT_TIMES_VMM);
	reason->poll_ns += SPENT(now, EXIT_TIMES_POLL);
	reason->halt_ns += SPENT(now, EXIT_TIMES_HALT);
	reason->waiting_ns += SPENT(now, EXIT_TIMES_WAITING);
	if (ns > reason->max_ns)
		reason->max_ns = ns;
	reason->histogram[bucket_of(ns)]++;
	if (now->access)
		slot_of(vcpu->accesses, now->access)->ns += ns;
	now->open = 0;
	now->access = 0;
	now->events++;
}

/* kvm_exit: the guest has left. */
static void machine_exit(struct exit_times_vcpu *vcpu, __u64 now_ns, __u32 isa, __u32 reason)
{
	struct exit_times_now *now = &vcpu->now;

	finish(vcpu, now_ns); /* where it was entered again without kvm_entry */
	advance(now, now_ns);
	resolve(now, EXIT_TIMES_GUEST);
	now->isa = isa;
	now->reason = reason;
	now->open = 1;
	now->exit_ns = now_ns;
	for (int i = 0; i < EXIT_TIMES_PARTS; i++)
		now->at_exit[i] = now->ns[i];
	mark(now);
	enter(now, EXIT_TIMES_STATE_KVM);
}

/* kvm_userspace_exit(reason, errno): KVM_RUN is about to return. */
static void machine_return(struct exit_times_vcpu *vcpu, __u64 now_ns, __u64 reason, int error)
{
	struct exit_times_now *now = &vcpu->now;
	__u64 detail = 0;

	reason &= 0xff;
	if (error == ERRNO_INTR)
		reason = CAUSE_SIGNAL;
	else if ((reason == CAUSE_IO || reason == CAUSE_MMIO) && now->access)
		detail = EXIT_TIMES_ACCESS_ADDRESS(now->access - 1);
	advance(now, now_ns);
	resolve(now, EXIT_TIMES_KVM);
	cause_finish(vcpu);
	now->vmm_ns = now->since_ns;
	now->cause_ns = 0;
	now->cause = (reason << CAUSE_SHIFT | (detail & CAUSE_DETAIL)) + 1;
	enter(now, EXIT_TIMES_STATE_VMM);
}

/* kvm_fpu(load): KVM_RUN has begun to work for the guest. */
static void machine_run(struct exit_times_vcpu *vcpu, __u64 now_ns)
{
	struct exit_times_now *now = &vcpu->now;

	advance(now, now_ns);
	resolve(now, EXIT_TIMES_VMM);
	if (now->cause)
		now->cause_ns = now->since_ns - now->vmm_ns;
	mark(now);
	enter(now, EXIT_TIMES_STATE_KVM);
}

/* kvm_entry: it runs again. */
static void machine_entry(struct exit_times_vcpu *vcpu, __u64 now_ns)
{
	/* Where no trace point tells that KVM has begun to work for it, this is the first that is seen. */
	if (vcpu->now.state == EXIT_TIMES_STATE_VMM)
		machine_run(vcpu, now_ns);
	advance(&vcpu->now, now_ns);
	resolve(&vcpu->now, EXIT_TIMES_KVM);
	cause_finish(vcpu);
	finish(vcpu, now_ns);
	enter(&vcpu->now, EXIT_TIMES_STATE_GUEST);
}

/* ---- what an exit is about ---- */

/* KVM tells of a read from a port when the VMM has returned with the value. */
static void cause_refine(struct exit_times_now *now, __u64 key)
{
	__u64 cause = now->cause - 1;

	if (now->cause && cause == (__u64)CAUSE_IO << CAUSE_SHIFT && !(key & EXIT_TIMES_ACCESS_MMIO))
		now->cause += EXIT_TIMES_ACCESS_ADDRESS(key);
}

static void access_seen(struct exit_times_vcpu *vcpu, __u64 key, bool counts)
{
	vcpu->now.access = key + 1;
	cause_refine(&vcpu->now, key);
	if (counts) {
		slot_of(vcpu->accesses, key + 1)->count++;
		vcpu->now.events++;
	}
}

/* kvm_pio(write, port): of x86 alone, hence inline */
static inline void machine_port(struct exit_times_vcpu *vcpu, bool write, __u64 port)
{
	access_seen(vcpu, (write ? EXIT_TIMES_ACCESS_WRITE : 0) | (port & 0xffff), true);
}

/* kvm_mmio(type, gpa). A read by the VMM comes twice: when it is asked for, and with its value. */
static void machine_mmio(struct exit_times_vcpu *vcpu, int type, __u64 gpa)
{
	access_seen(vcpu,
	            EXIT_TIMES_ACCESS_MMIO | (type == MMIO_WRITE ? EXIT_TIMES_ACCESS_WRITE : 0) |
	                    EXIT_TIMES_ACCESS_ADDRESS(gpa),
	            type != MMIO_READ_UNSATISFIED);
}

/* ---- halts ---- */

/*
 * kvm_vcpu_wakeup(ns, waited): a halt of this long is over (kvm_vcpu_halt in virt/kvm/kvm_main.c). Of it, KVM polled
 * while it was on a processor.
 */
static void machine_halted(struct exit_times_vcpu *vcpu, __u64 now_ns, __u64 halt_ns, bool waited)
{
	struct exit_times_now *now = &vcpu->now;
	bool unknown = now->state == EXIT_TIMES_STATE_UNKNOWN;

	advance(now, now_ns);
	resolve(now, EXIT_TIMES_KVM);

	__u64 slept = now->ns[EXIT_TIMES_BLOCKED] - now->mark_blocked;
	__u64 offline = now->ns[EXIT_TIMES_OFFLINE] - now->mark_offline;
	__u64 idle = slept + offline + now->ns[EXIT_TIMES_WAITING] - now->mark_waiting;
	__u64 awake = now->ns[EXIT_TIMES_KVM] - now->mark_kvm;
	__u64 polled = halt_ns > idle ? halt_ns - idle : 0;

	if (polled > awake)
		polled = awake;
	now->ns[EXIT_TIMES_BLOCKED] -= slept;
	now->ns[EXIT_TIMES_OFFLINE] -= offline;
	now->ns[EXIT_TIMES_HALT] += slept + offline;
	now->ns[EXIT_TIMES_KVM] -= polled;
	/* A thread that slept when counting began was not seen to. */
	now->ns[waited && unknown ? EXIT_TIMES_HALT : EXIT_TIMES_POLL] += polled;
	if (unknown)
		now->resolved = waited ? EXIT_TIMES_HALT : EXIT_TIMES_POLL;
	mark(now);
	enter(now, EXIT_TIMES_STATE_KVM);
}

/* ---- the scheduler ---- */

/* The thread leaves its processor; `ready`: for another thread. */
static void machine_off(struct exit_times_now *now, __u64 now_ns, bool ready)
{
	advance(now, now_ns);
	now->run = ready ? EXIT_TIMES_READY : EXIT_TIMES_ASLEEP;
	now->part = part_of(now);
}

/* It is on one again, and was ready to be from woken_ns on. */
static void machine_on(struct exit_times_now *now, __u64 now_ns)
{
	if (now->run == EXIT_TIMES_ASLEEP && now->woken_ns < now_ns) {
		advance(now, now->woken_ns);
		now->run = EXIT_TIMES_READY;
		now->part = part_of(now);
	}
	advance(now, now_ns);
	now->run = EXIT_TIMES_RUNNING;
	now->part = part_of(now);
}

#endif
