// SPDX-License-Identifier: BSD-2-Clause
#include "guest/task_match.h"

#include <string.h>

/* The other bits of a register that has the address hold flags and tags of the TLB (SDM vol. 3A, 4.5.2). */
#define TABLES_ADDRESS UINT64_C(0x000ffffffffff000)

bool task_target_equal(const struct task_target *a, const struct task_target *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case TASK_TARGET_PID:
		return a->pid == b->pid;
	case TASK_TARGET_COMM:
		return strcmp(a->comm, b->comm) == 0;
	case TASK_TARGET_TABLES:
		return ((a->tables ^ b->tables) & TABLES_ADDRESS) == 0;
	}
	return false;
}

/* Backtracks only to the last *, which is enough. */
static bool glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text != '\0') {
		if (*glob == '*') {
			star = glob++;
			resume = text;
		} else if (*glob == *text || *glob == '?') {
			glob++;
			text++;
		} else if (star) {
			glob = star + 1;
			text = ++resume;
		} else {
			return false;
		}
	}
	return glob[strspn(glob, "*")] == '\0';
}

static bool target_match(const struct task_target *target, const struct guest_regs *regs, const struct task *task)
{
	switch (target->kind) {
	case TASK_TARGET_PID:
		return task && task->pid == target->pid;
	case TASK_TARGET_COMM:
		return task && glob_match(target->comm, task->comm);
	case TASK_TARGET_TABLES:
		return ((guest_regs_root(regs) ^ target->tables) & TABLES_ADDRESS) == 0;
	}
	return false;
}

static bool any_match(const struct task_targets *targets, const struct guest_regs *regs, const struct task *task)
{
	for (size_t i = 0; i < targets->n; i++)
		if (target_match(&targets->targets[i], regs, task))
			return true;
	return false;
}

/* Page tables are those of the vCPU and do not apply to an ancestor. */
static bool ancestor_match(const struct task_targets *targets, const struct task *task)
{
	for (size_t i = 0; i < targets->n; i++)
		if (targets->targets[i].kind != TASK_TARGET_TABLES && target_match(&targets->targets[i], NULL, task))
			return true;
	return false;
}

/* A task_struct is a few KiB long and aligned to 64 bytes. */
static size_t place_of(const struct task *task)
{
	uint64_t mixed = (task->address >> 6 ^ task->start_time) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed >> 32 & (TASK_FAMILY_MEMBERS - 1);
}

static bool family_has(const struct task_family *family, const struct task *task)
{
	size_t place = place_of(task);

	return family->members[place].address == task->address && family->members[place].start_time == task->start_time;
}

static void family_add(struct task_family *family, const struct task *task)
{
	size_t place = place_of(task);

	family->members[place].address = task->address;
	family->members[place].start_time = task->start_time;
}

static bool descends(const struct task_targets *targets, const struct task_family *family, const struct task_view *view,
                     const struct task *task)
{
	bool (*const parent)(const struct os_kernel *, struct page_walk *, const struct task *, struct task *) =
		view->kernel->tasks->parent;
	struct task ancestor = *task;

	if (!parent)
		return false;

	for (unsigned i = 0; i < TASK_GENERATIONS_MAX && ancestor.pid != 0; i++) {
		if (!parent(view->kernel, view->walk, &ancestor, &ancestor))
			return false;
		if (family_has(family, &ancestor) || ancestor_match(targets, &ancestor))
			return true;
	}
	return false;
}

bool task_targets_match(const struct task_targets *targets, struct task_family *family, const struct task_view *view,
                        const struct task *task)
{
	if (!targets->descendants || !task)
		return any_match(targets, view->regs, task);
	if (family_has(family, task))
		return true;
	if (!any_match(targets, view->regs, task) && !descends(targets, family, view, task))
		return false;
	family_add(family, task);
	return true;
}
