// SPDX-License-Identifier: BSD-2-Clause
/* The program of exit_times_program.h for hosts of x86-64. */
#include "exit_times_program.h"

/* x86 keeps stores in order (SDM vol. 3A, 9.2). */
static void sequence_step(struct exit_times_now *now)
{
	barrier();
	now->sequence++;
	barrier();
}

/* kvm_fpu(load) */
SEC("raw_tp/kvm_fpu")
int kvm_fpu(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = context->args[0] ? vcpu_current() : NULL;

	if (!vcpu)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();

	change_begin(&vcpu->now);
	machine_run(vcpu, now_ns);
	change_end(&vcpu->now);
	return 0;
}

/* kvm_pio(write, port, size, count, data) */
SEC("raw_tp/kvm_pio")
int kvm_pio(struct bpf_raw_tracepoint_args *context)
{
	struct exit_times_vcpu *vcpu = vcpu_current();

	if (!vcpu)
		return 0;
	change_begin(&vcpu->now);
	machine_port(vcpu, context->args[0] != 0, context->args[1]);
	change_end(&vcpu->now);
	return 0;
}
