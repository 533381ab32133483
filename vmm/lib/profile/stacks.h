// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples by task name and call chain, and by cgroup if that is wanted: what flame graphs and other tools' profiles are
 * made of.
 */
#ifndef VPROF_PROFILE_STACKS_H
#define VPROF_PROFILE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/profile/call_tree.h"
#include "lib/profile/names.h"

struct stacks;

/* `names` is borrowed. */
struct stacks *stacks_new(struct names *names, bool by_cgroup);
void stacks_free(struct stacks *stacks);
/* call_tree_tell_waits, before the first sample. */
void stacks_tell_waits(struct stacks *stacks);

void stacks_add(struct stacks *stacks, const struct record_sample *sample);
/* Samples that count at one of their callers: call_tree_room. */
uint64_t stacks_cut(const struct stacks *stacks);

/* The call tree of all tasks of one name, in one cgroup; nodes[0] is its root. */
struct task_stacks {
	const char *comm;   /* lives as long as the names */
	const char *cgroup; /* its path, which lives as long; NULL: not recorded, or not wanted */
	struct call_node *nodes;
	size_t n_nodes;
};

/* Array of *n, the largest period first, ties by name; by task_stacks_free. by_address: call_tree_resolve_addresses. */
struct task_stacks *stacks_resolve(const struct stacks *stacks, struct resolver *resolver, bool by_address, size_t *n);
void task_stacks_free(struct task_stacks *tasks, size_t n);

#endif
