// SPDX-License-Identifier: BSD-2-Clause
/*
 * The mappings of a Linux process, read from guest memory: its struct vm_area_structs, in a maple tree from 6.1 on and
 * in a list before, and the names of the mapped files.
 */
#ifndef VPROF_LINUX_VMA_H
#define VPROF_LINUX_VMA_H

#include "guest/os.h"
#include "guest/types.h"

#define VMAS_MAX 2048u /* of one process that are looked at */

struct vma_layout {
	bool has_tree;
	uint32_t mm_tree, mm_list;                          /* in mm_struct: one or the other */
	uint32_t mm_exec_vm, mm_start_code, mm_start_stack; /* there, too */
	uint32_t start, end, offset, file, flags, next;     /* in vm_area_struct; `next` without a tree */
	uint32_t file_path, file_mapping;                   /* in struct file */
	uint32_t path_mnt, path_dentry;                     /* in struct path */
	uint32_t dentry_parent, dentry_name;                /* in struct dentry */
	uint32_t name_length, name_text;                    /* in struct qstr */
	uint32_t vfsmount_root;                             /* in struct vfsmount */
	uint32_t mount_vfsmount, mount_parent, mount_point; /* in struct mount */
};

/* Errors: TYPES_ERROR_MEMBER. */
bool vma_layout_load(const struct types *types, struct vma_layout *layout, GError **error);

/*
 * Calls `each` for the mappings of the mm_struct at `mm`, by address, until it returns false. Returns true when all
 * were visited. Inconsistent mappings are left out. Here and below: no lock, no allocation.
 */
bool vma_each(const struct vma_layout *layout, struct page_walk *walk, uint64_t mm,
              bool (*each)(const struct os_mapping *vma, void *data), void *data);

bool vma_state_read(const struct vma_layout *layout, struct page_walk *walk, uint64_t mm,
                    struct os_mapping_state *state);

/*
 * The path of the struct file at `file`, as a process in the guest's first mount namespace would name it. Points into
 * `buffer`; NULL when it cannot be read.
 */
const char *vma_file_name(const struct vma_layout *layout, struct page_walk *walk, uint64_t file,
                          char buffer[OS_FILE_NAME_BYTES]);

#endif
