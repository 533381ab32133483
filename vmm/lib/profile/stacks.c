// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/stacks.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* What samples of one tree have in common. */
struct task {
	const char *comm;
	const char *cgroup; /* NULL: not known, or not wanted */
};

struct stacks {
	struct names *names;
	bool by_cgroup;
	struct call_tree_room room;
	GHashTable *trees; /* of struct call_tree, by struct task */
	bool tells_waits;
};

static void tree_free(void *data)
{
	call_tree_free(data);
}

static guint task_hash(gconstpointer key)
{
	const struct task *task = key;

	return g_str_hash(task->comm) ^ (task->cgroup ? g_str_hash(task->cgroup) : 0);
}

static gboolean task_equal(gconstpointer left, gconstpointer right)
{
	const struct task *a = left, *b = right;

	return strcmp(a->comm, b->comm) == 0 && g_strcmp0(a->cgroup, b->cgroup) == 0;
}

struct stacks *stacks_new(struct names *names, bool by_cgroup)
{
	struct stacks *stacks = g_new0(struct stacks, 1);

	stacks->names = names;
	stacks->by_cgroup = by_cgroup;
	stacks->trees = g_hash_table_new_full(task_hash, task_equal, g_free, tree_free);
	return stacks;
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	g_hash_table_unref(stacks->trees);
	g_free(stacks);
}

void stacks_tell_waits(struct stacks *stacks)
{
	stacks->tells_waits = true;
}

void stacks_add(struct stacks *stacks, const struct record_sample *sample)
{
	const struct task task = {
		.comm = names_comm(stacks->names, sample->tid, sample->time_ns),
		.cgroup = stacks->by_cgroup && sample->has_cgroup && sample->cgroup != 0
	                          ? names_cgroup(stacks->names, sample)
	                          : NULL,
	};
	struct call_tree *tree = g_hash_table_lookup(stacks->trees, &task);

	if (!tree) {
		tree = call_tree_new(stacks->names, &stacks->room);
		if (stacks->tells_waits)
			call_tree_tell_waits(tree);
		g_hash_table_insert(stacks->trees, g_memdup2(&task, sizeof(task)), tree);
	}
	call_tree_add(tree, sample);
}

uint64_t stacks_cut(const struct stacks *stacks)
{
	return stacks->room.cut;
}

static int tasks_compare(const void *a, const void *b)
{
	const struct task_stacks *left = a, *right = b;

	if (left->nodes[0].period != right->nodes[0].period)
		return left->nodes[0].period > right->nodes[0].period ? -1 : 1;
	return strcmp(left->comm, right->comm) != 0 ? strcmp(left->comm, right->comm)
	                                            : g_strcmp0(left->cgroup, right->cgroup);
}

struct task_stacks *stacks_resolve(const struct stacks *stacks, struct resolver *resolver, bool by_address, size_t *n)
{
	struct task_stacks *tasks = g_new0(struct task_stacks, g_hash_table_size(stacks->trees));
	GHashTableIter iterator;
	gpointer key, tree;

	*n = 0;
	g_hash_table_iter_init(&iterator, stacks->trees);
	while (g_hash_table_iter_next(&iterator, &key, &tree)) {
		const struct task *task = key;

		tasks[*n].comm = task->comm;
		tasks[*n].cgroup = task->cgroup;
		tasks[*n].nodes = by_address ? call_tree_resolve_addresses(tree, resolver, &tasks[*n].n_nodes)
		                             : call_tree_resolve(tree, resolver, &tasks[*n].n_nodes);
		(*n)++;
	}
	if (*n != 0)
		qsort(tasks, *n, sizeof(*tasks), tasks_compare);
	return tasks;
}

void task_stacks_free(struct task_stacks *tasks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g_free(tasks[i].nodes);
	g_free(tasks);
}
