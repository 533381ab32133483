// SPDX-License-Identifier: BSD-2-Clause
/* Inodes of a kernel in memory laid out by hand: two file systems with three and two of them. */
#ifndef VPROF_TEST_SUPPORT_FAKE_INODES_H
#define VPROF_TEST_SUPPORT_FAKE_INODES_H

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/inode_find.h"

#define FAKE_INODES_MEMORY UINT64_C(0xffff888000000000) /* maps the fake guest's RAM */
#define FAKE_SUPER_BLOCKS UINT64_C(0x20000)
#define FAKE_SUPER_BLOCK(i) (UINT64_C(0x21000) + (i)*UINT64_C(0x100))
#define FAKE_INODE(i) (UINT64_C(0x30000) + (i)*UINT64_C(0x100))
#define FAKE_DENTRY(i) (UINT64_C(0x40000) + (i)*UINT64_C(0x100))
#define FAKE_MAPPING(i) (FAKE_INODES_MEMORY + 0x50000 + (i))

static const struct inode_layout fake_inode_layout = {
	.super_blocks = FAKE_INODES_MEMORY + FAKE_SUPER_BLOCKS,
	.sb_list = 0x10,
	.sb_inodes = 0x40,
	.list = 0x20,
	.dentries = 0x30,
	.mapping = 0x38,
	.alias = 0x50,
	.name = 0x18,
	.name_length = 4,
	.name_text = 8,
};

static inline void fake_inodes_link(struct fake_guest *fake, const uint64_t *heads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_write(fake, heads[i], FAKE_INODES_MEMORY + heads[(i + 1) % n]);
}

static inline void fake_inode(struct fake_guest *fake, unsigned i, const char *name)
{
	const struct inode_layout *layout = &fake_inode_layout;
	const uint64_t dentry = FAKE_DENTRY(i), text = dentry + 0x80;
	const uint32_t length = name ? (uint32_t)strlen(name) : 0;

	fake_write(fake, FAKE_INODE(i) + layout->mapping, FAKE_MAPPING(i));
	fake_write(fake, FAKE_INODE(i) + layout->dentries, name ? FAKE_INODES_MEMORY + dentry + layout->alias : 0);
	memcpy(fake->ram + dentry + layout->name + layout->name_length, &length, sizeof(length));
	fake_write(fake, dentry + layout->name + layout->name_text, FAKE_INODES_MEMORY + text);
	if (name)
		memcpy(fake->ram + text, name, length);
}

static inline void fake_inodes_init(struct fake_guest *fake, struct page_walk *walk)
{
	static const char *const names[] = {"perf-1.map", NULL, "perf-12.map", "libc.so.6", "perf-12.mapx"};
	const uint64_t list = fake_inode_layout.list, sb_list = fake_inode_layout.sb_list,
		       inodes = fake_inode_layout.sb_inodes;

	fake_guest_init(fake);
	const uint64_t cr3 = fake_table_new(fake);

	fake_map(fake, cr3, 4, FAKE_INODES_MEMORY, 0, 2);
	page_walk_init(walk, &fake->guest, cr3, false);
	for (unsigned i = 0; i < G_N_ELEMENTS(names); i++)
		fake_inode(fake, i, names[i]);
	fake_inodes_link(
		fake, (uint64_t[]){FAKE_SUPER_BLOCKS, FAKE_SUPER_BLOCK(0) + sb_list, FAKE_SUPER_BLOCK(1) + sb_list}, 3);
	fake_inodes_link(fake,
	                 (uint64_t[]){FAKE_SUPER_BLOCK(0) + inodes, FAKE_INODE(4) + list, FAKE_INODE(0) + list,
	                              FAKE_INODE(1) + list},
	                 4);
	fake_inodes_link(fake, (uint64_t[]){FAKE_SUPER_BLOCK(1) + inodes, FAKE_INODE(3) + list, FAKE_INODE(2) + list},
	                 3);
}

#endif
