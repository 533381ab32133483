// SPDX-License-Identifier: BSD-2-Clause
#include "linux/maple.h"

#define NODE_WORDS 32u
#define NODE_MASK UINT64_C(0xff)
#define TYPE_SHIFT 3u
#define TYPE_MASK UINT64_C(0xf)

/* Entries with 10 as their lowest two bits are the tree's own (linux/xarray.h): nodes above 4096, markers below. */
#define INTERNAL_MASK UINT64_C(3)
#define INTERNAL UINT64_C(2)
#define MARKER_MAX UINT64_C(4096)

#define LEVELS_MAX 8u /* of 10 entries each at least: far more than MAPLE_NODES_MAX */

enum node_type { MAPLE_DENSE, MAPLE_LEAF_64, MAPLE_RANGE_64, MAPLE_ARANGE_64, NODE_TYPES };

/*
 * A node has its parent, the last index of each slot but the last (none in a dense node), the slots, and data that is
 * not needed here.
 */
static const struct {
	uint8_t slots, first_slot;
	bool leaf;
} shapes[NODE_TYPES] = {
	[MAPLE_DENSE] = {31, 1, true},
	[MAPLE_LEAF_64] = {16, 16, true},
	[MAPLE_RANGE_64] = {16, 16, false},
	[MAPLE_ARANGE_64] = {10, 10, false},
};

struct node {
	uint64_t words[NODE_WORDS];
	uint64_t next, last; /* indices still to visit, from `next` on */
	enum node_type type;
	unsigned slot;
	bool done;
};

struct range {
	uint64_t first, last, entry;
};

static bool is_internal(uint64_t entry)
{
	return (entry & INTERNAL_MASK) == INTERNAL;
}

static bool node_open(struct page_walk *walk, const struct range *range, struct node *node)
{
	uint64_t type = range->entry >> TYPE_SHIFT & TYPE_MASK;

	if (type >= NODE_TYPES ||
	    !page_walk_read_kernel(walk, (gva_t){range->entry & ~NODE_MASK}, node->words, sizeof(node->words)))
		return false;
	node->next = range->first;
	node->last = range->last;
	node->type = (enum node_type)type;
	node->slot = 0;
	node->done = false;
	return true;
}

/* The last index of the slot. A pivot of 0 behind the first slot: this is the last one in use (ma_data_end). */
static uint64_t slot_last(const struct node *node)
{
	uint64_t pivot = node->words[1 + node->slot];

	if (node->type == MAPLE_DENSE)
		return node->next;
	if (node->slot + 1u == shapes[node->type].slots || (pivot == 0 && node->slot > 0) || pivot > node->last)
		return node->last;
	return pivot;
}

/* The next slot; false at the end, and for a node that runs backwards. */
static bool node_next(struct node *node, struct range *range)
{
	if (node->done || node->slot == shapes[node->type].slots)
		return false;
	uint64_t last = slot_last(node);

	if (last < node->next)
		return false;
	*range = (struct range){node->next, last, node->words[shapes[node->type].first_slot + node->slot]};
	node->done = last >= node->last;
	node->next = last + 1;
	node->slot++;
	return true;
}

/* Of a tree with a node as its root. */
static bool nodes_walk(struct page_walk *walk, uint64_t root,
                       bool (*each)(uint64_t first, uint64_t last, uint64_t entry, void *data), void *data)
{
	struct range range = {.last = UINT64_MAX, .entry = root};
	struct node path[LEVELS_MAX];
	unsigned depth = 1, nodes = 1;

	if (!node_open(walk, &range, &path[0]))
		return false;
	while (depth > 0) {
		struct node *node = &path[depth - 1];

		if (!node_next(node, &range)) {
			depth--;
		} else if (range.entry == 0) {
			continue;
		} else if (shapes[node->type].leaf) {
			/* Entries that a fork has reserved, and not filled in yet, are internal. */
			if (!is_internal(range.entry) && !each(range.first, range.last, range.entry, data))
				return false;
		} else if (depth == LEVELS_MAX || ++nodes > MAPLE_NODES_MAX ||
		           !node_open(walk, &range, &path[depth++])) {
			return false;
		}
	}
	return true;
}

bool maple_each(struct page_walk *walk, uint64_t root,
                bool (*each)(uint64_t first, uint64_t last, uint64_t entry, void *data), void *data)
{
	if (root == 0)
		return true;
	if (is_internal(root) && root > MARKER_MAX)
		return nodes_walk(walk, root, each, data);
	/* A tree of one entry, at index 0, is nothing but that. */
	return is_internal(root) || each(0, 0, root, data);
}
