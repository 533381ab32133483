// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instructions that a host's KVM refuses and vprof executes, without a vCPU: what reads its state or its memory
 * fails. Input: general registers, then the instruction.
 */
#include <glib.h>
#include <string.h>

#include "fuzz_target.h"
#include "kvm/host/x86/host_pvm_emulate.h"
#include "kvm/host/x86/kvm_vcpu.h"

#define RIP UINT64_C(0xffffffff81000000)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct memory *memory;
	static struct kvm_run run;
	struct kvm_regs *regs = &run.s.regs.regs;
	const struct host_vcpu vcpu = {.fd = -1, .schedstat_fd = -1, .run = &run};
	size_t taken = MIN(n, offsetof(struct kvm_regs, rip));

	if (!memory)
		memory = memory_new(MEMORY_BYTES_MIN, NULL);
	memset(&run, 0, sizeof(run));
	memcpy(regs, bytes, taken);
	regs->rip = RIP;
	run.exit_reason = KVM_EXIT_INTERNAL_ERROR;
	run.emulation_failure.suberror = KVM_INTERNAL_ERROR_EMULATION;
	run.emulation_failure.ndata = 4;
	run.emulation_failure.flags = KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES;
	/* The kernel says up to 15; a larger number must not be believed. */
	run.emulation_failure.insn_size = (uint8_t)MIN(n - taken, UINT8_MAX);
	memcpy(run.emulation_failure.insn_bytes, bytes + taken,
	       MIN(n - taken, sizeof(run.emulation_failure.insn_bytes)));
	const bool done = host_pvm_emulate(memory, &vcpu);

	g_assert(regs->rip - RIP <= INSTRUCTION_BYTES_MAX && (!done || regs->rip > RIP));
	return 0;
}
