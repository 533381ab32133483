// SPDX-License-Identifier: BSD-2-Clause
/*
 * In which cgroup a Linux task is, read in the guest's memory: that of the default hierarchy, which cgroup2 file
 * systems show. A kernel on which only version 1's hierarchies are in use has all tasks in this one's root.
 */
#ifndef VPROF_GUEST_CGROUP_H
#define VPROF_GUEST_CGROUP_H

#include "guest/page_walk.h"
#include "guest/task.h"
#include "guest/types.h"

#define CGROUP_DEPTH_MAX 64u    /* of a cgroup that is named */
#define CGROUP_NAME_BYTES 256u  /* NAME_MAX, and a NUL */
#define CGROUP_PATH_BYTES 1024u /* longer ones are not read */

struct cgroup_layout {
	uint32_t task_cgroups;                    /* in task_struct */
	uint32_t set_default;                     /* in css_set */
	uint32_t node;                            /* in struct cgroup */
	uint32_t node_id, node_name, node_parent; /* in kernfs_node */
};

/* Errors: TYPES_ERROR_MEMBER. */
bool cgroup_layout_load(const struct types *types, struct cgroup_layout *layout, GError **error);

struct cgroup {
	uint64_t id;   /* that of its directory; another cgroup that is made later has another, or so the guest says */
	uint64_t node; /* address of its kernfs_node */
};

/*
 * That of a task now; false when it cannot be read, or the kernel has not set it up yet. Four reads of guest memory,
 * and the page walks for them. Neither lock nor allocation here and below.
 */
bool cgroup_read(const struct cgroup_layout *layout, struct page_walk *walk, const struct task *task,
                 struct cgroup *cgroup);

/*
 * Its path from the root of all cgroups on, "/" or "/a/b", control characters replaced. Points into `buffer`; NULL when
 * it cannot be read.
 */
const char *cgroup_path(const struct cgroup_layout *layout, struct page_walk *walk, const struct cgroup *cgroup,
                        char buffer[CGROUP_PATH_BYTES]);

#endif
