// SPDX-License-Identifier: BSD-2-Clause
/*
 * In the place of sample/session_tasks.c: a look at tasks that are as long as tasks can be, FAKE_TASKS of them, or one
 * of them if a process is asked for.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_TASK_LOOK_H
#define VPROF_TEST_SUPPORT_FAKE_TASK_LOOK_H

#include <linux/perf_event.h>
#include <string.h>

#include "sample/session_tasks.h"

#define FAKE_TASKS 40u

struct task_look *task_look_new(struct session *of G_GNUC_UNUSED, const struct task_look_config *config,
                                GError **error G_GNUC_UNUSED)
{
	static char path[OS_GROUP_PATH_BYTES];
	struct task_look *look = g_new0(struct task_look, 1);
	struct looked_task task = {.cgroup = path, .wait_channel = UINT64_MAX - 1, .n_chain = UNWIND_CHAIN_MAX};

	memset(path, 1, sizeof(path) - 1);
	memset(task.listed.task.comm, 0xff, TASK_COMM_BYTES - 1);
	look->tasks = g_array_new(FALSE, FALSE, sizeof(task));
	look->words = g_new(uint64_t, UNWIND_CHAIN_MAX);
	for (unsigned i = 0; i < UNWIND_CHAIN_MAX; i++)
		look->words[i] = (uint64_t)PERF_CONTEXT_KERNEL;
	for (uint32_t i = 1; i <= FAKE_TASKS; i++) {
		task.listed.task.pid = task.listed.task.tid = i;
		task.listed.state = i % 2 ? 'S' : 'R';
		task.runs = i % 2 == 0;
		if (!config->targets || config->targets->targets[0].pid == i)
			g_array_append_val(look->tasks, task);
	}
	return look;
}

void task_look_free(struct task_look *look)
{
	if (!look)
		return;
	g_array_unref(look->tasks);
	g_free(look->words);
	g_free(look);
}

#endif
