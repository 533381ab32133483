// SPDX-License-Identifier: BSD-2-Clause
/* Locks of the fake tasks, which wait for them with what Linux leaves on their stacks. */
#ifndef VPROF_TEST_SUPPORT_FAKE_LOCKS_H
#define VPROF_TEST_SUPPORT_FAKE_LOCKS_H

#include "fake_tasks.h"

#define FAKE_LOCK UINT64_C(0x3f000)                      /* guest physical; a kernel's own data */
#define FAKE_WAITER(i) (FAKE_STACK(i) + UINT64_C(0x200)) /* on its stack */
#define FAKE_LOCKS_CODE(kind) (FAKE_WAITS + UINT64_C(0x100) * (kind))
#define FAKE_STACK_BYTES UINT64_C(0x4000)

static const struct lock_layout fake_lock_layout = {
	.task_stack = 0xa0,
	.types = {[VPROF_LOCK_MUTEX] = {true, 0x10, 0, 0, 0x10, false},
                  [VPROF_LOCK_RWSEM] = {true, 0x18, 8, 8, 0x18, false},
                  [VPROF_LOCK_FUTEX] = {.known = true}},
	.functions = {{FAKE_LOCKS_CODE(1), FAKE_LOCKS_CODE(2), VPROF_LOCK_MUTEX},
                      {FAKE_LOCKS_CODE(2), FAKE_LOCKS_CODE(3), VPROF_LOCK_RWSEM},
                      {FAKE_LOCKS_CODE(3), FAKE_LOCKS_CODE(4), VPROF_LOCK_FUTEX}},
	.n_functions = 3,
};

/* Tasks 1 to n wait for it, the first one first; `owner`: the word that says who has it. */
static inline void fake_lock(struct fake_guest *fake, enum vprof_lock kind, unsigned n, uint64_t owner)
{
	const struct lock_type *type = &fake_lock_layout.types[kind];
	uint64_t heads[6] = {FAKE_LOCK + type->list};

	fake_write(fake, FAKE_LOCK + type->owner, owner);
	for (unsigned i = 1; i <= n; i++) {
		heads[i] = FAKE_WAITER(i) + type->waiter_list;
		fake_write(fake, FAKE_WAITER(i) - 8, FAKE_LOCKS_CODE(kind) + 0x10);
		fake_write(fake, FAKE_WAITER(i) + type->waiter_task, FAKE_MEMORY + FAKE_TASK(i));
		fake_write(fake, FAKE_TASK(i) + fake_lock_layout.task_stack,
		           FAKE_MEMORY + (FAKE_STACK(i) & ~(FAKE_STACK_BYTES - 1)));
	}
	fake_ring(fake, heads, n + 1);
}

/* As fake_lock, as it is since 7.1: the waiters are a ring of their own, and each has the lock's address on its stack.
 */
static inline void fake_lock_first(struct fake_guest *fake, const struct lock_layout *layout, enum vprof_lock kind,
                                   unsigned n, uint64_t owner)
{
	const struct lock_type *type = &layout->types[kind];
	uint64_t links[5];

	fake_lock(fake, kind, n, owner);
	for (unsigned i = 1; i <= n; i++) {
		links[i - 1] = FAKE_WAITER(i) + type->waiter_list;
		fake_write(fake, FAKE_STACK(i) + 0x10, FAKE_MEMORY + FAKE_LOCK);
	}
	fake_ring(fake, links, n);
	fake_write(fake, FAKE_LOCK + type->list, FAKE_MEMORY + FAKE_WAITER(1));
}

/* Task i waits for a futex at this address of its own, by system call `number` with `command`. */
static inline void fake_futex(struct fake_guest *fake, unsigned i, uint64_t number, uint64_t command, uint64_t address)
{
	const uint64_t regs = (FAKE_STACK(i) | (FAKE_STACK_BYTES - 1)) + 1 - 168;

	fake_write(fake, FAKE_STACK(i) + 0x1f8, FAKE_LOCKS_CODE(VPROF_LOCK_FUTEX) + 0x10);
	fake_write(fake, regs + 104, command);
	fake_write(fake, regs + 112, address);
	fake_write(fake, regs + 120, number);
	fake_write(fake, regs + 136, 0x33);
}

#endif
