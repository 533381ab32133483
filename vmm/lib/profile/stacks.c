// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/stacks.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

struct stacks {
	struct names *names;
	struct call_tree_room room;
	GHashTable *trees; /* of struct call_tree, by name */
	bool tells_waits;
};

static void tree_free(void *data)
{
	call_tree_free(data);
}

struct stacks *stacks_new(struct names *names)
{
	struct stacks *stacks = g_new0(struct stacks, 1);

	stacks->names = names;
	stacks->trees = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, tree_free);
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
	const char *comm = names_comm(stacks->names, sample->tid, sample->time_ns);
	struct call_tree *tree = g_hash_table_lookup(stacks->trees, comm);

	if (!tree) {
		tree = call_tree_new(stacks->names, &stacks->room);
		if (stacks->tells_waits)
			call_tree_tell_waits(tree);
		g_hash_table_insert(stacks->trees, (gpointer)comm, tree);
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
	return strcmp(left->comm, right->comm);
}

struct task_stacks *stacks_resolve(const struct stacks *stacks, struct resolver *resolver, bool by_address, size_t *n)
{
	struct task_stacks *tasks = g_new0(struct task_stacks, g_hash_table_size(stacks->trees));
	GHashTableIter iterator;
	gpointer comm, tree;

	*n = 0;
	g_hash_table_iter_init(&iterator, stacks->trees);
	while (g_hash_table_iter_next(&iterator, &comm, &tree)) {
		tasks[*n].comm = comm;
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
