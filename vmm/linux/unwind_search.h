// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stack pointer of a vCPU in a Linux kernel with ORC, where only its other registers are known: on VMX, KVM keeps
 * it in no memory. A word of the stack is where it must be if the unwind table, from there on, leads by return
 * addresses, each behind a call of the function that was called, to a root: where user space entered the kernel, or
 * where a kernel thread began. Of several chains that differ, the one with the surest first call is taken; if two are
 * as sure, none is.
 *
 * Stacks are as hostile as all guest memory. A search takes at most UNWIND_SEARCH_STEPS_MAX steps of the unwinder, no
 * lock and no allocation.
 */
#ifndef VPROF_LINUX_UNWIND_SEARCH_H
#define VPROF_LINUX_UNWIND_SEARCH_H

#include "guest/unwind.h"
#include "linux/call_sites.h"

#define UNWIND_SEARCH_STEPS_MAX 2000u
#define UNWIND_SEARCH_STACK_BYTES 8192u /* of each stack, from its end, are searched; kernels use 3 KiB at most */

/* What the kernel says of a vCPU's stacks: addresses behind their last bytes; 0: not known. */
struct unwind_stacks {
	uint64_t task;      /* of the current task */
	uint64_t interrupt; /* of the vCPU's interrupts; 0: not in use now */
	uint64_t entry;     /* of the vCPU's entries from user space, as long as the task's is not used yet */
	bool in_kernel;     /* no user space, or the kernel's addresses in registers: an entry is from there */
	/* In user mode, instead of these: its stack pointer when it last entered the kernel. */
	uint64_t user;
};

enum unwind_search_result {
	UNWIND_SEARCH_FOUND,
	UNWIND_SEARCH_NONE,      /* no word of the stack leads to a root */
	UNWIND_SEARCH_AMBIGUOUS, /* several do, by different chains */
	UNWIND_SEARCH_SWITCHING, /* in the code that changes from one task's stack to another's */
	UNWIND_SEARCH_NO_TABLE,  /* in code that the tables do not cover: a module, BPF, a return thunk */
	UNWIND_SEARCH_WORK,      /* it took more than UNWIND_SEARCH_STEPS_MAX */
	UNWIND_SEARCH_RESULTS,
};

/*
 * `config`: with orc and sites. `memory`: has the stacks, as `unwind` reads them. Sets the stack pointer of `regs` if
 * it is found; where the unwind table does not need it, it stays 0.
 */
enum unwind_search_result unwind_search(const struct unwind_config *config, const struct unwind_stacks *stacks,
                                        struct page_walk *memory, struct guest_regs *regs);

/*
 * The same in user space, by the tables of `config->code`, near stacks->user: what calls a function is read in the
 * code. Not found are functions that run several times in the chain, and those that were called by a register, or by
 * way of a jump: then, the chains with calls that are certain are several or none. Up to UNWIND_SEARCH_USER_BELOW
 * before the page with stacks->user, and UNWIND_SEARCH_USER_BYTES in all, are searched.
 */
#define UNWIND_SEARCH_USER_BELOW 8192u
#define UNWIND_SEARCH_USER_BYTES 28672u
#define UNWIND_SEARCH_CODE_BYTES_MAX (UINT64_C(256) << 10) /* looked through for jumps */
enum unwind_search_result unwind_search_user(const struct unwind_config *config, const struct unwind_stacks *stacks,
                                             struct page_walk *memory, struct guest_regs *regs);

#endif
