// SPDX-License-Identifier: BSD-2-Clause
/*
 * Executes instructions of the guest on a copy of a vCPU's registers: the guest's memory is read, and what is written
 * stays in the interpreter. For the short pieces of code in which Linux loads the arguments of a trace point: moves,
 * arithmetic and jumps of 64-bit code without vectors, strings, and division. No lock, no allocation.
 */
#ifndef VPROF_GUEST_X86_INTERPRETER_H
#define VPROF_GUEST_X86_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERPRETER_WRITES_MAX 32u

/* In the order of their numbers (SDM Vol. 2, table 2-2). */
enum interpreter_register {
	INTERPRETER_RAX,
	INTERPRETER_RCX,
	INTERPRETER_RDX,
	INTERPRETER_RBX,
	INTERPRETER_RSP,
	INTERPRETER_RBP,
	INTERPRETER_RSI,
	INTERPRETER_RDI,
	INTERPRETER_R8,
	INTERPRETER_R9,
	INTERPRETER_REGISTERS = 16,
};

/* CF, PF, AF, ZF, SF and OF, where RFLAGS has them (SDM Vol. 1, 3.4.3.1). */
#define INTERPRETER_FLAGS UINT64_C(0x8d5)

struct interpreter_write {
	uint64_t address, value;
	unsigned bytes;
};

struct interpreter {
	uint64_t registers[INTERPRETER_REGISTERS];
	uint64_t rip, gs_base;
	uint64_t flags; /* INTERPRETER_FLAGS; PF and AF are those of interpreter_is_exact's instructions only */
	/* Memory of the guest. */
	bool (*read)(void *data, uint64_t from, void *to, size_t bytes);
	void *data;
	struct interpreter_write writes[INTERPRETER_WRITES_MAX];
	unsigned n_writes;
};

enum interpreter_step {
	INTERPRETER_NEXT,    /* done: rip is that of the next instruction */
	INTERPRETER_UNKNOWN, /* an instruction that is not interpreted, or more than INTERPRETER_WRITES_MAX writes */
	INTERPRETER_FAULT,   /* memory that cannot be read */
};

/* Executes the instruction of which the code begins with these `n` bytes, at rip. Calls and returns are UNKNOWN. */
enum interpreter_step interpreter_step(struct interpreter *self, const uint8_t *code, size_t n);

/* Memory as the code sees it, with its own writes; 1 to 8 bytes. */
bool interpreter_load(struct interpreter *self, uint64_t address, unsigned bytes, uint64_t *value);

/* Whether interpreter_step can execute the instruction at all, whatever the registers and the memory are. */
bool interpreter_knows(const uint8_t *code, size_t n);

/*
 * Whether it does all that a processor does: moves to registers, arithmetic on them, tests, PUSH of a register, NOP and
 * ENDBR64. AF, where the SDM leaves it undefined, is 0. At most one write, of PUSH.
 */
bool interpreter_is_exact(const uint8_t *code, size_t n);

#endif
