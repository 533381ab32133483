// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples by call chain: a tree with callers above and callees below.
 *
 * Adding a sample is one look-up in a hash table for each frame. Symbols are looked up afterwards, once per distinct
 * place in the tree.
 */
#ifndef VPROF_PROFILE_CALL_TREE_H
#define VPROF_PROFILE_CALL_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/profile/mode.h"
#include "lib/profile/names.h"
#include "lib/profile/resolver.h"
#include "lib/record/record.h"

struct call_tree;

#define CALL_TREE_PLACES_MAX (2u << 20) /* a recording of random chains could have one for each of its bytes */

/* What trees that are read together have of these places; all 0 at first. */
struct call_tree_room {
	uint32_t places;
	uint64_t cut; /* samples that count at one of their callers, because no place was left */
};

/*
 * names: say which file is mapped at an address, for its symbols. Borrowed; NULL: nothing is known. room: borrowed, for
 * adding.
 */
struct call_tree *call_tree_new(struct names *names, struct call_tree_room *room);
/* Frames of samples of tasks that wait have the mode PROFILE_WAITING, and are apart from those of tasks that run. */
void call_tree_tell_waits(struct call_tree *tree);
void call_tree_free(struct call_tree *tree);

/*
 * A sample without a call chain counts as a chain of its own ip. Returns the number of the node where the sample fell,
 * for call_tree_resolve_numbers.
 */
uint32_t call_tree_add(struct call_tree *tree, const struct record_sample *sample);

/* A function as called from the one above it. */
struct call_node {
	const char *symbol; /* lives as long as the resolver; NULL in the root */
	const char *module;
	enum profile_mode mode;
	uint64_t ip;                   /* by address: of the instruction; of a caller, inside its call. Else 0 */
	const struct mapping *mapping; /* by address: what is mapped there, of user space or a module. Else NULL */
	uint64_t samples;              /* in it and in what it called */
	uint64_t period;               /* summed: events, nanoseconds for clocks */
	uint64_t self_samples;         /* in it alone */
	uint64_t self_period;
	size_t first_child; /* indexes into the array; 0: none */
	size_t next_sibling;
};

/*
 * The tree by symbols: an array of *n nodes to be freed by g_free. The first is the root, with everything below it.
 * Children are linked with the largest period first, ties by name.
 */
struct call_node *call_tree_resolve(const struct call_tree *tree, struct resolver *resolver, size_t *n);

/* The tree by addresses: functions as called from the one above, once for each address in them. */
struct call_node *call_tree_resolve_addresses(const struct call_tree *tree, struct resolver *resolver, size_t *n);

/* By symbols; (*node_of)[what call_tree_add returned] is an index into the array. By g_free. */
struct call_node *call_tree_resolve_numbers(const struct call_tree *tree, struct resolver *resolver, size_t *n,
                                            size_t **node_of);

#endif
