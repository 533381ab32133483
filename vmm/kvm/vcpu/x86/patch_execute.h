// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instruction that an INT3 stands for, executed on a copy of the vCPU's registers: cheaper than a single step, for
 * which the INT3 has to go and all other vCPUs have to wait. Only what can be done exactly as a processor does it.
 */
#ifndef VPROF_KVM_VCPU_X86_PATCH_EXECUTE_H
#define VPROF_KVM_VCPU_X86_PATCH_EXECUTE_H

#include <linux/kvm.h>

#include "guest/x86/interpreter.h"

struct patch_execution {
	struct kvm_regs regs;           /* in: before the instruction; out: behind it */
	bool user;                      /* in: of a program, in user mode */
	uint64_t gs_base;               /* in */
	struct interpreter_write write; /* out: to be done; 0 bytes: none */
	/* Memory of the guest. */
	bool (*read)(void *data, uint64_t from, void *to, size_t bytes);
	void *data;
};

/* Whether patch_execute can do it, whatever the registers and the memory are. */
bool patch_executes(const uint8_t *code, size_t n, bool user);

/* False, with `regs` unchanged: it needs a step. `code` is the instruction's, of 64-bit code. */
bool patch_execute(struct patch_execution *execution, const uint8_t *code, size_t n);

#endif
