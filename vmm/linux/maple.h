// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linux' maple trees (include/linux/maple_tree.h, lib/maple_tree.c; from 6.1 on a process has its mappings in one),
 * walked from outside. Nodes are 256 bytes and aligned to that; the bits below say in a pointer to a node what type it
 * is of. Those bits and the nodes' layouts are not in the kernel's type information, and have not changed since 6.1.
 */
#ifndef VPROF_LINUX_MAPLE_H
#define VPROF_LINUX_MAPLE_H

#include "guest/page_walk.h"

#define MAPLE_NODES_MAX 1024u /* nodes that one walk reads, of 16 entries each */

/*
 * Calls `each` for every entry of the tree with this root (maple_tree.ma_root), in order, with its first and last
 * index, until `each` returns false. Returns true when the whole tree was walked; false when it was too large, `each`
 * stopped it, or the tree was damaged or changed meanwhile. No lock, no allocation.
 */
bool maple_each(struct page_walk *walk, uint64_t root,
                bool (*each)(uint64_t first, uint64_t last, uint64_t entry, void *data), void *data);

#endif
