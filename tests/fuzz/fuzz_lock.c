// SPDX-License-Identifier: BSD-2-Clause
/*
 * The lock that a task waits for: three tasks in the list of a mutex or an rwsem and one at a futex, in memory in which
 * the input changes words. The first byte chooses the kind of lock, the task and whether its stack pointer is its own;
 * then come triples: two bytes that choose a word in the tasks, their stacks, the lock or the page tables, and one that
 * says what it becomes: the place of another such word, code that waits for a lock, or a number.
 */
#include <stdlib.h>

#include "../support/fake_locks.h"
#include "fuzz_target.h"

/* 256 waiters and 96 words of the stack, each with few words, and for each word the page tables. */
#define READS_MAX 20000u

static struct fake_guest fake;

/* The page tables are from 0x10000 on, and so are the tasks and stacks: 256 KiB of words. */
static uint64_t place_of(uint32_t number)
{
	return 0x10000 + number % (0x40000 / 8) * 8;
}

static void memory_change(const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3) {
		const uint64_t at = place_of((uint32_t)(data[0] | data[1] << 8));

		if (data[2] < 0x20)
			fake_write(&fake, at, FAKE_LOCKS_CODE(data[2] % VPROF_LOCK_COUNT) + data[2]);
		else if (data[2] < 0x40)
			fake_write(&fake, at, data[2]);
		else
			fake_write(&fake, at, FAKE_MEMORY + place_of((uint32_t)(data[2] * 0x101)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t choice = size != 0 ? data[0] : 0;
	const unsigned task = 1 + choice / 2 % 4;
	struct os_lock wait = {.kind = VPROF_LOCK_COUNT};
	struct page_walk walk;
	uint64_t stack_pointer;

	fake_tasks_init(&fake, &walk);
	fake_lock(&fake, choice & 1 ? VPROF_LOCK_RWSEM : VPROF_LOCK_MUTEX, 3, FAKE_MEMORY + FAKE_TASK(5));
	fake_futex(&fake, 4, 202, 0, 0x1000);
	if (size != 0)
		memory_change(data + 1, size - 1);
	fake.reads = 0;
	stack_pointer = choice & 0x80 ? fake_read(&fake, FAKE_TASK(task) + fake_list_layout.stack_pointer)
	                              : FAKE_MEMORY + FAKE_STACK(task) + (choice & 0x70);
	if (lock_wait_find(&fake_lock_layout, &walk, FAKE_MEMORY + FAKE_TASK(task), stack_pointer, &wait)) {
		if (wait.kind == VPROF_LOCK_UNKNOWN || wait.kind >= VPROF_LOCK_COUNT ||
		    (wait.owner != 0 && wait.owner >> 63 == 0))
			abort();
	} else if (wait.kind != VPROF_LOCK_COUNT) {
		abort();
	}
	if (fake.reads > READS_MAX)
		abort();
	return 0;
}
