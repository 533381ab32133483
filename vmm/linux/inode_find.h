// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file of a Linux guest by its name, among the inodes that the guest has in memory, of all file systems that are
 * mounted: a file that was written a while ago, and that no process has open or mapped, is still there.
 */
#ifndef VPROF_LINUX_INODE_FIND_H
#define VPROF_LINUX_INODE_FIND_H

#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define INODES_MAX 262144u /* that are looked at */
#define INODE_SUPER_BLOCKS_MAX 1024u
#define INODE_FIND_US_MAX 500000 /* that the search for one name takes */

struct inode_layout {
	uint64_t super_blocks;            /* address of the list of all */
	uint32_t sb_list, sb_inodes;      /* in struct super_block */
	uint32_t list, dentries, mapping; /* in struct inode */
	uint32_t alias, name;             /* in struct dentry */
	uint32_t name_length, name_text;  /* in struct qstr */
};

/* Errors: TASK_ERROR, TYPES_ERROR. */
bool inode_layout_load(const struct symtab *symtab, const struct types *types, struct inode_layout *layout,
                       GError **error);

/*
 * The address_space of the first file with this last component of its path; 0, with *why: there is none, the lists
 * change all the time, or there are more files than can be looked at in the time above. `name`: 63 bytes at most. Takes
 * about a microsecond for each inode, several where each read of guest memory is a system call.
 */
uint64_t inode_find(const struct inode_layout *layout, struct page_walk *walk, const char *name, const char **why);

#endif
