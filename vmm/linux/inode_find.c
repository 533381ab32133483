// SPDX-License-Identifier: BSD-2-Clause
/* fs/super.c, linux/fs.h, linux/dcache.h */
#include "linux/inode_find.h"

#include <string.h>

#include "linux/task.h"

#define LOOKS_MAX 3u     /* at lists that change meanwhile */
#define CLOCK_INODES 64u /* between looks at the clock */
#define NAME_BYTES_MAX 64u

bool inode_layout_load(const struct symtab *symtab, const struct types *types, struct inode_layout *layout,
                       GError **error)
{
	struct inode_layout loaded = {.super_blocks = symtab_address(symtab, "super_blocks")};
	/* Up to 7.0 in a union of that name, as the first of its members. */
	const bool in_union = types_has(types, "dentry", "d_u", TYPES_PLACE, &loaded.alias);
	const struct types_member members[] = {
		{"super_block", "s_list", TYPES_PLACE, &loaded.sb_list},
		{"super_block", "s_inodes", TYPES_PLACE, &loaded.sb_inodes},
		{"inode", "i_sb_list", TYPES_PLACE, &loaded.list},
		{"inode", "i_dentry", 8, &loaded.dentries},
		{"inode", "i_mapping", 8, &loaded.mapping},
		{"dentry", in_union ? "d_u" : "d_alias", TYPES_PLACE, &loaded.alias},
		{"dentry", "d_name", TYPES_PLACE, &loaded.name},
		{"qstr", "len", 4, &loaded.name_length},
		{"qstr", "name", 8, &loaded.name_text},
	};

	if (loaded.super_blocks == 0) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "the kernel has no symbol super_blocks");
		return false;
	}
	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	*layout = loaded;
	return true;
}

struct search {
	const struct inode_layout *layout;
	struct page_walk *walk;
	const char *name;
	uint32_t length;
	unsigned inodes, super_blocks; /* that may still be looked at */
	int64_t until_us;
	bool late;
};

static bool word_read(const struct search *search, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(search->walk, (gva_t){from}, word, sizeof(*word));
}

/* A file has as many names as links; those that are made for others to read have one. */
static bool is_named(const struct search *search, uint64_t inode)
{
	const struct inode_layout *layout = search->layout;
	char text[NAME_BYTES_MAX];
	uint64_t alias, at;
	uint32_t length;

	if (!word_read(search, inode + layout->dentries, &alias) || alias == 0)
		return false;
	const uint64_t name = alias - layout->alias + layout->name;

	return page_walk_read_kernel(search->walk, (gva_t){name + layout->name_length}, &length, sizeof(length)) &&
	       length == search->length && word_read(search, name + layout->name_text, &at) &&
	       page_walk_read_kernel(search->walk, (gva_t){at}, text, length) &&
	       memcmp(text, search->name, length) == 0;
}

/* One inode more. False: it is one too many, or too late for it. */
static bool inode_count(struct search *search)
{
	if (search->inodes % CLOCK_INODES == 0)
		search->late = g_get_monotonic_time() > search->until_us;
	return !search->late && search->inodes-- > 0;
}

/* False: the list of inodes is no list, or too long. */
static bool super_block_search(struct search *search, uint64_t super_block, uint64_t *mapping)
{
	const uint64_t head = super_block + search->layout->sb_inodes;
	uint64_t link;

	if (!word_read(search, head, &link))
		return false;
	while (link != head && *mapping == 0) {
		const uint64_t inode = link - search->layout->list;

		if (!inode_count(search) || !word_read(search, link, &link))
			return false;
		if (is_named(search, inode) && !word_read(search, inode + search->layout->mapping, mapping))
			return false;
	}
	return true;
}

/* False where the lists were not whole. */
static bool search_all(struct search *search, uint64_t *mapping)
{
	const uint64_t head = search->layout->super_blocks;
	bool whole = true;
	uint64_t link;

	if (!word_read(search, head, &link))
		return false;
	while (link != head && *mapping == 0) {
		const uint64_t super_block = link - search->layout->sb_list;

		if (search->super_blocks-- == 0 || !word_read(search, link, &link))
			return false;
		whole &= super_block_search(search, super_block, mapping);
		if (search->late)
			return false;
	}
	return whole;
}

uint64_t inode_find(const struct inode_layout *layout, struct page_walk *walk, const char *name, const char **why)
{
	const int64_t until_us = g_get_monotonic_time() + INODE_FIND_US_MAX;
	uint64_t mapping = 0;
	bool late = false;

	for (unsigned i = 0; i < LOOKS_MAX && mapping == 0 && !late; i++) {
		struct search search = {.layout = layout,
		                        .walk = walk,
		                        .name = name,
		                        .length = (uint32_t)strlen(name),
		                        .inodes = INODES_MAX,
		                        .super_blocks = INODE_SUPER_BLOCKS_MAX,
		                        .until_us = until_us};

		if (search.length < NAME_BYTES_MAX && search_all(&search, &mapping))
			break;
		late = search.late;
	}
	*why = late ? "the guest has more files in memory than can be looked at in half a second" : "it is not there";
	return mapping;
}
