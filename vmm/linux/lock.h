// SPDX-License-Identifier: BSD-2-Clause
/*
 * The lock that a task of a Linux guest waits for, by what it has left on its stack: a task that waits for a
 * mutex or an rwsem is in a list of those that do, which begins in the lock (kernel/locking/mutex.c, rwsem.c); one that
 * waits for a futex has its address among the arguments of its system call. Since 7.1 the list of waiters has no head;
 * the lock, which points to the first, is found by its address, which the waiter has in a register or on its stack.
 */
#ifndef VPROF_LINUX_LOCK_H
#define VPROF_LINUX_LOCK_H

#include <vprof/recording.h>

#include "guest/os.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define LOCK_FUNCTIONS_MAX 64u

/* Offsets of one kind of lock, and in what its tasks have on their stacks. */
struct lock_type {
	bool known;
	uint32_t list, owner;              /* in the lock */
	uint32_t waiter_list, waiter_task; /* in struct mutex_waiter and rwsem_waiter */
	bool first;                        /* since 7.1: `list` has the address of the first waiter and is not a head */
};

struct lock_layout {
	uint32_t task_stack;    /* in task_struct */
	uint32_t stack_padding; /* struct linux_processor */
	struct lock_type types[VPROF_LOCK_COUNT];
	struct lock_function {
		uint64_t begin, end;
		enum vprof_lock kind;
	} functions[LOCK_FUNCTIONS_MAX]; /* that wait for one */
	unsigned n_functions;
};

/* Errors, where no lock can be told: TASK_ERROR, TYPES_ERROR. */
bool lock_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                      uint32_t stack_padding, struct lock_layout *layout, GError **error);
/* Whether a function is known that waits for this kind. */
bool lock_layout_has(const struct lock_layout *layout, enum vprof_lock kind);

/*
 * False: the task with its task_struct at `task`, which has switched away with this stack pointer, waits for no lock,
 * or it cannot be told. `walk`: with the kernel's part. Reads 768 bytes of the stack, and those that wait before it,
 * 256 at most.
 */
bool lock_wait_find(const struct lock_layout *layout, struct page_walk *walk, uint64_t task, uint64_t stack_pointer,
                    struct os_lock *wait);

#endif
