// SPDX-License-Identifier: BSD-2-Clause
/*
 * For exit_times.bpf.c of x86/ and arm64/, which have what depends on the processor, sequence_step before the rest.
 *
 * Runs at KVM's and the scheduler's trace points, and sums up what the threads of some vCPUs do. It reads no struct of
 * the kernel's: arguments of trace points, and the record of kvm_exit (exit_program.c compares its layout), so it needs
 * no BTF. A thread is found by its number once, then by the address of its task.
 *
 * A vCPU's numbers are written by its thread alone, at KVM's trace points and when the scheduler takes it off a
 * processor; or puts it on one, when it does not run yet. So nothing here is locked or atomic.
 */
#ifndef VPROF_EXITS_BPF_EXIT_TIMES_PROGRAM_H
#define VPROF_EXITS_BPF_EXIT_TIMES_PROGRAM_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "exit_machine.h"
#include "exit_record.h"

/*
 * One change more. The reader takes what is between two equal even numbers (exit_clock.c), so the first must be seen
 * before what changes, and the second after.
 */
static void sequence_step(struct exit_times_now *now);

/* bpf_ktime_get_ns is for everybody, bpf_get_current_task for programs under a licence that the kernel takes for GPL.
 */
char licence[] SEC("license") = "Dual BSD/GPL";

/* From a program at an event of perf's: 0 would keep this trace point from every perf on the host (trace_call_bpf). */
#define OTHERS_TOO 1
#define TASK_DEAD 0x80 /* include/linux/sched.h */

/* max_entries: the guest's vCPUs; set before it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct exit_times_vcpu);
	__uint(max_entries, 1);
} vcpus SEC(".maps");

/* From the number of a thread to its vCPU's. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} threads SEC(".maps");

/* From its task_struct, which is what the scheduler's trace points have. Twice as many: threads are replaced. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, __u32);
	__uint(max_entries, 1);
} tasks SEC(".maps");

static struct exit_times_vcpu *vcpu_of_task(__u64 task)
{
	__u32 *vcpu = bpf_map_lookup_elem(&tasks, &task);

	return vcpu ? bpf_map_lookup_elem(&vcpus, vcpu) : NULL;
}

static struct exit_times_vcpu *vcpu_current(void)
{
	__u64 task = bpf_get_current_task();
	struct exit_times_vcpu *known = vcpu_of_task(task);

	if (known)
		return known;
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	__u32 *vcpu = bpf_map_lookup_elem(&threads, &thread);

	if (!vcpu)
		return NULL;
	bpf_map_update_elem(&tasks, &task, vcpu, BPF_ANY);
	return bpf_map_lookup_elem(&vcpus, vcpu);
}

static void change_begin(struct exit_times_now *now)
{
	sequence_step(now);
}

static void change_end(struct exit_times_now *now)
{
	sequence_step(now);
}

/* ---- KVM ---- */

SEC("tracepoint")
int kvm_exit(struct kvm_exit_record *record)
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return OTHERS_TOO;
	__u64 now_ns = bpf_ktime_get_ns();

	change_begin(&vcpu->now);
	machine_exit(vcpu, now_ns, exit_record_isa(record), exit_record_reason(record));
	change_end(&vcpu->now);
	return OTHERS_TOO;
}

SEC("raw_tp/kvm_entry")
int kvm_entry(void *context __attribute__((unused)))
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();

	change_begin(&vcpu->now);
	machine_entry(vcpu, now_ns);
	change_end(&vcpu->now);
	return 0;
}

/* kvm_userspace_exit(reason, errno) */
SEC("raw_tp/kvm_userspace_exit")
int kvm_userspace_exit(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();

	change_begin(&vcpu->now);
	machine_return(vcpu, now_ns, context->args[0], (int)context->args[1]);
	change_end(&vcpu->now);
	return 0;
}

/* kvm_mmio(type, bytes, gpa, value) */
SEC("raw_tp/kvm_mmio")
int kvm_mmio(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return 0;
	change_begin(&vcpu->now);
	machine_mmio(vcpu, (int)context->args[0], context->args[2]);
	change_end(&vcpu->now);
	return 0;
}

/* kvm_vcpu_wakeup(ns, waited, valid) */
SEC("raw_tp/kvm_vcpu_wakeup")
int kvm_vcpu_wakeup(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();

	change_begin(&vcpu->now);
	machine_halted(vcpu, now_ns, context->args[0], context->args[1] & 0xff);
	change_end(&vcpu->now);
	return 0;
}

/* ---- the scheduler ---- */

static void switched_from(struct exit_times_now *now, bool ready)
{
	change_begin(now);
	machine_off(now, bpf_ktime_get_ns(), ready);
	change_end(now);
}

static void switched_to(struct exit_times_now *now)
{
	change_begin(now);
	machine_on(now, bpf_ktime_get_ns());
	change_end(now);
}

/* sched_switch(preempt, prev, next, prev_state), of Linux 5.18 and newer. */
SEC("raw_tp/sched_switch")
int sched_switch(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *from = vcpu_of_task(context->args[1]);
	__u32 state = context->args[3];
	__u64 task = context->args[1];

	if (from) {
		switched_from(&from->now, (context->args[0] & 0xff) || !state);
		if (state & TASK_DEAD)
			bpf_map_delete_elem(&tasks, &task);
	}
	struct exit_times_vcpu *to = vcpu_of_task(context->args[2]);

	if (to)
		switched_to(&to->now);
	return 0;
}

/* sched_wakeup(task), on the processor that wakes it: the thread may still be on its way to sleep. */
SEC("raw_tp/sched_wakeup")
int sched_wakeup(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = vcpu_of_task(context->args[0]);

	if (vcpu)
		vcpu->now.woken_ns = bpf_ktime_get_ns();
	return 0;
}

#endif
