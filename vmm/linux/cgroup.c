// SPDX-License-Identifier: BSD-2-Clause
#include "linux/cgroup.h"

#include <string.h>

#include "linux/guest_text.h"

#define NAME_PIECE_BYTES 64u /* a piece with this alignment is never in two pages */

bool cgroup_layout_load(const struct types *types, struct cgroup_layout *layout, GError **error)
{
	struct cgroup_layout loaded = {0};
	/* Linux 6.15 has renamed it. */
	const bool renamed = types_has(types, "kernfs_node", "__parent", 8, &loaded.node_parent);
	const struct types_member members[] = {
		{"css_set", "dfl_cgrp", 8, &loaded.set_default},
		{"cgroup", "kn", 8, &loaded.node},
		{"kernfs_node", "id", 8, &loaded.node_id},
		{"kernfs_node", "name", 8, &loaded.node_name},
		{"kernfs_node", renamed ? "__parent" : "parent", 8, &loaded.node_parent},
	};

	if (!types_has(types, "task_struct", "cgroups", 8, &loaded.task_cgroups)) {
		g_set_error(error, TYPES_ERROR, TYPES_ERROR_MEMBER,
		            "the kernel has no cgroups; build Linux with CONFIG_CGROUPS");
		return false;
	}
	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	*layout = loaded;
	return true;
}

static bool word_read(struct page_walk *walk, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(walk, (gva_t){from}, word, sizeof(*word));
}

bool cgroup_read(const struct cgroup_layout *layout, struct page_walk *walk, const struct task *task,
                 struct os_group *cgroup)
{
	struct os_group read;
	uint64_t set, group;

	if (!word_read(walk, task->address + layout->task_cgroups, &set) ||
	    !word_read(walk, set + layout->set_default, &group) || !word_read(walk, group + layout->node, &read.node) ||
	    !word_read(walk, read.node + layout->node_id, &read.id) || read.id == 0)
		return false;
	*cgroup = read;
	return true;
}

/* Reads the text at `from`; returns its length, or 0 when it is empty, too long or cannot be read. */
static size_t name_read(struct page_walk *walk, uint64_t from, char name[CGROUP_NAME_BYTES])
{
	size_t n = 0;

	while (n < CGROUP_NAME_BYTES) {
		size_t piece = NAME_PIECE_BYTES - (from + n) % NAME_PIECE_BYTES;
		const char *end;

		piece = MIN(piece, CGROUP_NAME_BYTES - n);
		if (!page_walk_read_kernel(walk, (gva_t){from + n}, name + n, piece))
			return 0;
		end = memchr(name + n, '\0', piece);
		if (end)
			return (size_t)(end - name);
		n += piece;
	}
	return 0;
}

/* Puts "/NAME" of a node ahead of the path that begins at *at. */
static bool name_prepend(const struct cgroup_layout *layout, struct page_walk *walk, uint64_t node, char *buffer,
                         size_t *at)
{
	char name[CGROUP_NAME_BYTES];
	uint64_t text;
	size_t n;

	if (!word_read(walk, node + layout->node_name, &text))
		return false;
	n = name_read(walk, text, name);
	if (n == 0 || n + 1 > *at)
		return false;
	guest_text_clean(name, n);
	*at -= n + 1;
	buffer[*at] = '/';
	memcpy(buffer + *at + 1, name, n);
	return true;
}

const char *cgroup_path(const struct cgroup_layout *layout, struct page_walk *walk, const struct os_group *cgroup,
                        char buffer[OS_GROUP_PATH_BYTES])
{
	size_t at = OS_GROUP_PATH_BYTES - 1;
	uint64_t node = cgroup->node, parent;

	buffer[at] = '\0';
	for (unsigned i = 0; i < CGROUP_DEPTH_MAX; i++) {
		if (!word_read(walk, node + layout->node_parent, &parent))
			return NULL;
		/* The root has no name. */
		if (parent == 0) {
			if (buffer[at] == '\0')
				buffer[--at] = '/';
			return buffer + at;
		}
		if (!name_prepend(layout, walk, node, buffer, &at))
			return NULL;
		node = parent;
	}
	return NULL;
}
