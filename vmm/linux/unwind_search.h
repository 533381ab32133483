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

/*
 * `config`: with tables and sites. `memory`: has the stacks, as `unwind` reads them. Sets the stack pointer of `regs`
 * if it is found; where the unwind table does not need it, it stays 0.
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
