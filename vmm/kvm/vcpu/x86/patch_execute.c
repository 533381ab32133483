// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/patch_execute.h"

#include <string.h>

#include "lib/code/x86/instruction.h"

#define FLAG_TF UINT64_C(0x100) /* the guest steps by itself */

/* In the order of enum interpreter_register. */
#define REGISTERS(X) \
	X(rax) X(rcx) X(rdx) X(rbx) X(rsp) X(rbp) X(rsi) X(rdi) X(r8) X(r9) X(r10) X(r11) X(r12) X(r13) X(r14) X(r15)

/* ---- calls and returns, which only programs' patches stand for ---- */

#define CALL 0xe8u
#define RET 0xc3u
#define RET_POP 0xc2u /* with the number of bytes of arguments */
#define CALL_BYTES 5u

/* Where the opcode is: behind REP or BND, which do nothing there. */
static size_t opcode_of(const uint8_t *code, size_t n)
{
	return n > 1 && (code[0] == 0xf3 || code[0] == 0xf2) && code[1] == RET ? 1 : 0;
}

static bool is_return(const uint8_t *code, size_t n)
{
	const uint8_t opcode = code[opcode_of(code, n)];

	return opcode == RET || (opcode == RET_POP && n >= 3);
}

static bool is_call(const uint8_t *code, size_t n)
{
	return n >= CALL_BYTES && code[0] == CALL;
}

static bool run_return(struct patch_execution *execution, const uint8_t *code)
{
	uint64_t to;
	uint16_t arguments = 0;

	if (!execution->read(execution->data, execution->regs.rsp, &to, sizeof(to)) || to >> 47 != 0)
		return false;
	if (code[0] == RET_POP)
		memcpy(&arguments, code + 1, sizeof(arguments));
	execution->regs.rip = to;
	execution->regs.rsp += sizeof(to) + arguments;
	return true;
}

static bool run_call(struct patch_execution *execution, const uint8_t *code)
{
	const uint64_t next = execution->regs.rip + CALL_BYTES;
	int32_t distance;

	memcpy(&distance, code + 1, sizeof(distance));
	if ((next + (uint64_t)distance) >> 47 != 0)
		return false;
	execution->regs.rip = next + (uint64_t)distance;
	execution->regs.rsp -= sizeof(next);
	execution->write = (struct interpreter_write){execution->regs.rsp, next, sizeof(next)};
	return true;
}

/* ---- others ---- */

/* Besides those of interpreter_is_exact: POP, JMP, and MOV to memory, which has one write of up to 8 bytes. */
static bool is_exact_in_program(const uint8_t *code, size_t n)
{
	const size_t at = instruction_opcode(code, instruction_length(code, n));

	if (interpreter_is_exact(code, n))
		return true;
	if (!interpreter_knows(code, n) || memchr(code, 0xf0, at) != NULL)
		return false;
	return (code[at] & ~0x7u) == 0x58 || code[at] == 0xe9 || code[at] == 0xeb || code[at] == 0x88 ||
	       code[at] == 0x89 || code[at] == 0xc6 || code[at] == 0xc7;
}

bool patch_executes(const uint8_t *code, size_t n, bool user)
{
	const size_t length = instruction_length(code, n);

	if (length == 0)
		return false;
	return user ? is_return(code, length) || is_call(code, length) || is_exact_in_program(code, length)
	            : interpreter_is_exact(code, length);
}

static bool interpret(struct patch_execution *execution, const uint8_t *code, size_t n)
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

	if (interpreter_step(&interpreter, code, n) != INTERPRETER_NEXT)
		return false;
#define X(name) regs->name = interpreter.registers[i++];
	REGISTERS(X)
#undef X
	regs->rip = interpreter.rip;
	regs->rflags = (regs->rflags & ~INTERPRETER_FLAGS) | interpreter.flags;
	if (interpreter.n_writes > 0)
		execution->write = interpreter.writes[0];
	return true;
}

bool patch_execute(struct patch_execution *execution, const uint8_t *code, size_t n)
{
	execution->write = (struct interpreter_write){.bytes = 0};
	if ((!execution->user && (execution->regs.rflags & FLAG_TF)) || !patch_executes(code, n, execution->user))
		return false;
	if (execution->user && is_return(code, n))
		return run_return(execution, code + opcode_of(code, n));
	return execution->user && is_call(code, n) ? run_call(execution, code) : interpret(execution, code, n);
}
