// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/patch_execute.h"

#define FLAG_TF UINT64_C(0x100) /* the guest steps by itself */

/* In the order of enum interpreter_register. */
#define REGISTERS(X) \
	X(rax) X(rcx) X(rdx) X(rbx) X(rsp) X(rbp) X(rsi) X(rdi) X(r8) X(r9) X(r10) X(r11) X(r12) X(r13) X(r14) X(r15)

bool patch_execute(struct patch_execution *execution, const uint8_t *code, size_t n)
{
	struct kvm_regs *regs = &execution->regs;
	struct interpreter interpreter = {
#define X(name) regs->name,
		.registers = {REGISTERS(X)},
#undef X
		.rip = regs->rip,
		.gs_base = execution->gs_base,
		.flags = regs->rflags & INTERPRETER_FLAGS,
		.read = execution->read,
		.data = execution->data,
	};
	unsigned i = 0;

	if ((regs->rflags & FLAG_TF) || !interpreter_is_exact(code, n) ||
	    interpreter_step(&interpreter, code, n) != INTERPRETER_NEXT)
		return false;
#define X(name) regs->name = interpreter.registers[i++];
	REGISTERS(X)
#undef X
	regs->rip = interpreter.rip;
	regs->rflags = (regs->rflags & ~INTERPRETER_FLAGS) | interpreter.flags;
	execution->write = interpreter.n_writes > 0 ? interpreter.writes[0] : (struct interpreter_write){.bytes = 0};
	return true;
}
