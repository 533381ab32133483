// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/call_tree.h"

#include <glib.h>
#include <string.h>
#include <vprof/recording.h>

#include "lib/profile/chain.h"
#include "lib/profile/hash.h"

#define SLOTS_AT_FIRST 64u /* a power of two; there may be a tree for each task */
#define NO_PLACE 0u        /* the root is no place */

/* One address, as called from the chain above it. Node 0 is the root. */
struct address_node {
	uint64_t ip;
	const struct mapping *mapping; /* of user space, when mappings are known; NULL */
	uint32_t parent;
	uint8_t mode; /* enum profile_mode */
	uint64_t self_samples;
	uint64_t self_period;
};

struct call_tree {
	GArray *nodes;       /* of struct address_node; parents stand before their children */
	uint32_t *slots;     /* node numbers, 0: free; open addressing, linear probing, at most half full */
	size_t n_slots;      /* a power of two */
	struct names *names; /* NULL: not known */
	struct call_tree_room *room;
	bool tells_waits;
};

struct call_tree *call_tree_new(struct names *names, struct call_tree_room *room)
{
	struct call_tree *tree = g_new0(struct call_tree, 1);

	tree->nodes = g_array_new(FALSE, TRUE, sizeof(struct address_node));
	g_array_set_size(tree->nodes, 1);
	tree->n_slots = SLOTS_AT_FIRST;
	tree->names = names;
	tree->room = room;
	tree->slots = g_new0(uint32_t, tree->n_slots);
	return tree;
}

void call_tree_tell_waits(struct call_tree *tree)
{
	tree->tells_waits = true;
}

void call_tree_free(struct call_tree *tree)
{
	if (!tree)
		return;
	g_array_unref(tree->nodes);
	g_free(tree->slots);
	g_free(tree);
}

static struct address_node *node_at(const struct call_tree *tree, uint32_t i)
{
	return &g_array_index(tree->nodes, struct address_node, i);
}

/* The slot that holds the node like `key`, or the free one where it belongs. */
static uint32_t *slot_find(const struct call_tree *tree, const struct address_node *key)
{
	uint64_t above = ((uint64_t)key->parent << 8 | key->mode) ^ (uintptr_t)key->mapping;
	size_t i = hash_mix(key->ip ^ hash_mix(above)) & (tree->n_slots - 1);

	for (; tree->slots[i] != 0; i = (i + 1) & (tree->n_slots - 1)) {
		const struct address_node *node = node_at(tree, tree->slots[i]);

		if (node->ip == key->ip && node->parent == key->parent && node->mode == key->mode &&
		    node->mapping == key->mapping)
			break;
	}
	return &tree->slots[i];
}

static void slots_grow(struct call_tree *tree)
{
	g_free(tree->slots);
	tree->n_slots *= 2;
	tree->slots = g_new0(uint32_t, tree->n_slots);
	for (uint32_t i = 1; i < tree->nodes->len; i++)
		*slot_find(tree, node_at(tree, i)) = i;
}

/* NO_PLACE: it is new, and there is no room. */
static uint32_t node_intern(struct call_tree *tree, const struct address_node *key)
{
	uint32_t *slot = slot_find(tree, key);

	if (*slot == 0) {
		if (tree->room->places == CALL_TREE_PLACES_MAX)
			return NO_PLACE;
		tree->room->places++;
		if (tree->nodes->len >= tree->n_slots / 2) {
			slots_grow(tree);
			slot = slot_find(tree, key);
		}
		*slot = tree->nodes->len;
		g_array_append_val(tree->nodes, *key);
	}
	return *slot;
}

uint32_t call_tree_add(struct call_tree *tree, const struct record_sample *sample)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const bool waits = tree->tells_waits && profile_state_of(sample->misc) != VPROF_TASK_RUNNING;
	uint32_t parent = 0, node;

	for (uint32_t i = chain_frames(sample, frames); i-- > 0;) {
		struct address_node key = {
			.ip = frames[i].ip,
			.parent = parent,
			.mode = (uint8_t)profile_mode_of(frames[i].misc),
		};

		if (tree->names)
			key.mapping = names_mapping(tree->names, (enum profile_mode)key.mode, sample->pid, key.ip,
			                            sample->time_ns);
		if (waits)
			key.mode = PROFILE_WAITING;
		node = node_intern(tree, &key);
		if (node == NO_PLACE) {
			tree->room->cut++;
			break;
		}
		parent = node;
	}
	node_at(tree, parent)->self_samples++;
	node_at(tree, parent)->self_period += sample->period;
	return parent;
}

/* The nodes by symbol, and where each of them is: a node may have as many children as there are symbols. */
struct merge {
	GArray *nodes;     /* of struct call_node */
	GHashTable *index; /* of struct child, which are their own keys, owned */
};

struct child {
	size_t parent, node;
	enum profile_mode mode;
	uint64_t ip; /* 0: by symbols */
	const struct mapping *mapping;
	const char *symbol, *module;
};

static guint child_hash(gconstpointer key)
{
	const struct child *child = key;

	return (guint)hash_mix(((uint64_t)child->parent << 3 | child->mode) ^ hash_mix(child->ip)) ^
	       g_str_hash(child->symbol);
}

static gboolean child_equal(gconstpointer a, gconstpointer b)
{
	const struct child *left = a, *right = b;

	return left->parent == right->parent && left->mode == right->mode && left->ip == right->ip &&
	       left->mapping == right->mapping && strcmp(left->symbol, right->symbol) == 0 &&
	       strcmp(left->module, right->module) == 0;
}

/* The child of `parent` for that place, made if it is new. address: NULL for a tree by symbols. */
static size_t child_intern(struct merge *merge, size_t parent, enum profile_mode mode, const struct place *place,
                           const struct address_node *address)
{
	const struct child key = {
		.parent = parent,
		.node = merge->nodes->len,
		.mode = mode,
		.ip = address ? address->ip : 0,
		.mapping = address ? address->mapping : NULL,
		.symbol = place->symbol,
		.module = place->module,
	};
	const struct child *known = g_hash_table_lookup(merge->index, &key);
	const struct call_node node = {
		.symbol = place->symbol,
		.module = place->module,
		.mode = mode,
		.ip = key.ip,
		.mapping = key.mapping,
		.next_sibling = g_array_index(merge->nodes, struct call_node, parent).first_child,
	};

	if (known)
		return known->node;
	g_hash_table_add(merge->index, g_memdup2(&key, sizeof(key)));
	g_array_append_val(merge->nodes, node);
	g_array_index(merge->nodes, struct call_node, parent).first_child = key.node;
	return key.node;
}

static int nodes_compare(const void *a, const void *b, void *data)
{
	const struct call_node *nodes = data;
	const struct call_node *left = &nodes[*(const size_t *)a], *right = &nodes[*(const size_t *)b];

	if (left->period != right->period)
		return left->period > right->period ? -1 : 1;
	if (left->samples != right->samples)
		return left->samples > right->samples ? -1 : 1;
	if (left->ip != right->ip)
		return left->ip < right->ip ? -1 : 1;
	return strcmp(left->symbol, right->symbol);
}

static void children_sort(struct call_node *nodes, size_t parent, GArray *scratch)
{
	size_t *link = &nodes[parent].first_child;

	g_array_set_size(scratch, 0);
	for (size_t child = *link; child != 0; child = nodes[child].next_sibling)
		g_array_append_val(scratch, child);
	g_array_sort_with_data(scratch, nodes_compare, nodes);
	for (guint i = 0; i < scratch->len; i++) {
		*link = g_array_index(scratch, size_t, i);
		link = &nodes[*link].next_sibling;
	}
	*link = 0;
}

/* A task that waits does so in the kernel or in user space: not outside the guest. */
static enum profile_mode mode_within(const struct address_node *address)
{
	if (address->mode != PROFILE_WAITING)
		return (enum profile_mode)address->mode;
	return address->ip >> 63 ? PROFILE_KERNEL : PROFILE_USER;
}

/* Nodes by symbol or by address, with what fell into each itself; parents[i] is the one above node i. */
static GArray *nodes_merge(const struct call_tree *tree, struct resolver *resolver, bool by_address, size_t *parents,
                           size_t *node_of)
{
	struct merge merge = {
		.nodes = g_array_new(FALSE, TRUE, sizeof(struct call_node)),
		.index = g_hash_table_new_full(child_hash, child_equal, g_free, NULL),
	};

	g_array_set_size(merge.nodes, 1);
	for (uint32_t i = 1; i < tree->nodes->len; i++) {
		const struct address_node *address = node_at(tree, i);
		size_t parent = node_of[address->parent];
		struct place place;

		resolver_find(resolver, mode_within(address), address->ip, address->mapping, &place);
		node_of[i] = child_intern(&merge, parent, (enum profile_mode)address->mode, &place,
		                          by_address ? address : NULL);
		parents[node_of[i]] = parent;
		g_array_index(merge.nodes, struct call_node, node_of[i]).self_samples += address->self_samples;
		g_array_index(merge.nodes, struct call_node, node_of[i]).self_period += address->self_period;
	}
	g_hash_table_unref(merge.index);
	return merge.nodes;
}

static struct call_node *resolve(const struct call_tree *tree, struct resolver *resolver, bool by_address, size_t *n,
                                 size_t **node_of)
{
	size_t *parents = g_new0(size_t, tree->nodes->len);
	g_autoptr(GArray) scratch = g_array_new(FALSE, FALSE, sizeof(size_t));
	GArray *merged;

	*node_of = g_new0(size_t, tree->nodes->len);
	merged = nodes_merge(tree, resolver, by_address, parents, *node_of);
	*n = merged->len;
	struct call_node *nodes = (struct call_node *)(void *)g_array_free(merged, FALSE);

	/* Children stand behind their parents, so that one pass from the end sums everything up. */
	for (size_t i = *n; i-- > 0;) {
		nodes[i].samples += nodes[i].self_samples;
		nodes[i].period += nodes[i].self_period;
		if (i == 0)
			break;
		nodes[parents[i]].samples += nodes[i].samples;
		nodes[parents[i]].period += nodes[i].period;
	}
	for (size_t i = 0; i < *n; i++)
		children_sort(nodes, i, scratch);
	g_free(parents);
	return nodes;
}

struct call_node *call_tree_resolve_numbers(const struct call_tree *tree, struct resolver *resolver, size_t *n,
                                            size_t **node_of)
{
	return resolve(tree, resolver, false, n, node_of);
}

struct call_node *call_tree_resolve(const struct call_tree *tree, struct resolver *resolver, size_t *n)
{
	g_autofree size_t *node_of = NULL;

	return resolve(tree, resolver, false, n, &node_of);
}

struct call_node *call_tree_resolve_addresses(const struct call_tree *tree, struct resolver *resolver, size_t *n)
{
	g_autofree size_t *node_of = NULL;

	return resolve(tree, resolver, true, n, &node_of);
}
