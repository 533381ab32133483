// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of a guest's tasks and their stacks: five tasks in memory, in which the input changes words. An input is
 * triples: two bytes that choose a word in the tasks, what they share, their stacks or the page tables, and one that
 * says what it becomes: the place of another such word, or a number.
 */
#include <stdlib.h>

#include "../support/fake_locks.h"
#include "fuzz_target.h"
#include "guest/unwind.h"
#include "linux/os_linux.h"

#define READS_MAX 20000u /* five tasks and stacks, of UNWIND_DEPTH_MAX frames each with their code and page tables */

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
			fake_write(&fake, at, data[2]);
		else
			fake_write(&fake, at, FAKE_MEMORY + place_of((uint32_t)(data[2] * 0x101)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_config config = {.system = &linux_unwinding, .depth = UNWIND_DEPTH_MAX};
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct task_list list;
	struct page_walk walk;
	enum unwind_end end;
	struct frame frame;

	fake_tasks_init(&fake, &walk);
	fake_lock(&fake, VPROF_LOCK_MUTEX, 3, FAKE_MEMORY + FAKE_TASK(4));
	fake_futex(&fake, 4, 202, 0, 0x1000);
	memory_change(data, size);
	fake.reads = 0;
	task_list_read(&fake_list_layout, &fake_task_layout, &walk, &list);
	if (list.tasks->len > TASK_LIST_MAX || list.end > TASK_LIST_LIMIT)
		abort();
	for (guint i = 0; i < list.tasks->len && i < 8; i++) {
		const struct listed_task *task = &g_array_index(list.tasks, struct listed_task, i);
		struct os_lock wait;
		size_t n = 0;

		if (listed_task_frame(&fake_list_layout, &walk, task, &frame))
			n = unwind_from(&config, &walk, &frame, chain, &end);
		if (n > UNWIND_CHAIN_MAX || task->task.tid == 0 || !strchr("RSDTtXZPI", task->state))
			abort();
		if (lock_wait_find(&fake_lock_layout, &walk, task->task.address, task->stack_pointer, &wait) &&
		    (wait.kind == VPROF_LOCK_UNKNOWN || wait.kind >= VPROF_LOCK_COUNT))
			abort();
		task_wait_channel(&fake_list_layout, chain, n);
	}
	if (list.tasks->len < 8 && fake.reads > READS_MAX)
		abort();
	task_list_clear(&list);
	return 0;
}
