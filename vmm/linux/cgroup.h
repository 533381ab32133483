// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cgroup of a Linux task, read from guest memory: the one in the default hierarchy, which cgroup2 file systems
 * show. On a kernel that only uses hierarchies of version 1, all tasks are in the root of the default hierarchy.
 */
#ifndef VPROF_LINUX_CGROUP_H
#define VPROF_LINUX_CGROUP_H

#include "guest/os.h"
#include "guest/types.h"
#include "linux/task.h"

#define CGROUP_DEPTH_MAX 64u   /* of a cgroup that is named */
#define CGROUP_NAME_BYTES 256u /* NAME_MAX, and a NUL */

struct cgroup_layout {
	uint32_t task_cgroups;                    /* in task_struct */
	uint32_t set_default;                     /* in css_set */
	uint32_t node;                            /* in struct cgroup */
	uint32_t node_id, node_name, node_parent; /* in kernfs_node */
};

/* Errors: TYPES_ERROR_MEMBER. */
bool cgroup_layout_load(const struct types *types, struct cgroup_layout *layout, GError **error);

/*
 * Reads the cgroup of a task; false when it cannot be read, or is not set up yet. Takes four reads of guest memory and
 * their page walks. No lock and no allocation, here and below.
 */
bool cgroup_read(const struct cgroup_layout *layout, struct page_walk *walk, const struct task *task,
                 struct os_group *cgroup);

/*
 * The path from the root cgroup, "/" or "/a/b", with control characters replaced. Points into `buffer`; NULL when it
 * cannot be read.
 */
const char *cgroup_path(const struct cgroup_layout *layout, struct page_walk *walk, const struct os_group *cgroup,
                        char buffer[OS_GROUP_PATH_BYTES]);

#endif
