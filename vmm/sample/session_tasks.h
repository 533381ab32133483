// SPDX-License-Identifier: BSD-2-Clause
/*
 * One look at all tasks of the guest, now: what each does, and its call chain, in user space too on request. A task
 * that sleeps has its registers in memory, so nothing is interrupted for it; the guest goes on meanwhile. Main thread
 * only.
 */
#ifndef VPROF_SAMPLE_SESSION_TASKS_H
#define VPROF_SAMPLE_SESSION_TASKS_H

#include "guest/task.h"
#include "guest/task_match.h"
#include "guest/unwind.h"
#include "sample/looked_code.h"
#include "sample/session.h"

#define TASK_LOOK_CHAIN_WORDS_MAX (1u << 20) /* of all call chains together */
#define TASK_LOOK_US_MAX 500000              /* of walking stacks: clients wait meanwhile */

struct looked_task {
	struct listed_task listed;
	const char *cgroup;    /* path; NULL: not known */
	bool runs;             /* on a vCPU: the chain is that of the vCPU */
	uint64_t wait_channel; /* address; 0: it runs, or may, or that is not known */
	size_t chain, n_chain; /* words in task_look.words, in the form of unwind; none: not known */
	enum unwind_end end;
};

struct task_look {
	GArray *tasks; /* of struct looked_task: processes, each before its threads, and idle tasks that run */
	uint64_t *words;
	size_t n_words;
	enum task_list_end end;
	unsigned torn;            /* tasks without a chain because they ran while it was walked */
	unsigned late;            /* because of the limits above */
	unsigned unseen;          /* because they run, and the registers of their vCPU are not known */
	bool orc;                 /* chains are by ORC; else by frame pointers */
	GHashTable *cgroups;      /* the paths, by the address of their kernfs_node */
	struct looked_code *code; /* of user space; NULL: it was not asked for, or the mappings are not known */
};

struct task_look_config {
	const struct task_targets *targets; /* these tasks only; NULL: all. Without descendants */
	unsigned depth;                     /* of call chains, 1..UNWIND_DEPTH_MAX */
	bool user;                          /* chains go on into user space */
};

/* Errors: SESSION_ERROR_UNSUPPORTED, SESSION_ERROR_STATE: the tasks cannot be read (now). */
struct task_look *task_look_new(struct session *session, const struct task_look_config *config, GError **error);
void task_look_free(struct task_look *look); /* NULL is fine */

#endif
