// SPDX-License-Identifier: BSD-2-Clause
/* The path of a file, from its last component up, as prepend_path of fs/d_path.c does it. */
#include "linux/guest_text.h"
#include "linux/vma.h"

#define COMPONENTS_MAX 64u       /* directories and mount points */
#define COMPONENT_BYTES_MAX 255u /* NAME_MAX */

struct climb {
	const struct vma_layout *layout;
	struct page_walk *walk;
	uint64_t dentry;
	uint64_t vfsmount;
	char *buffer;
	size_t at; /* where in `buffer` the path begins so far */
};

static bool word_read(const struct climb *climb, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(climb->walk, (gva_t){from}, word, sizeof(*word));
}

/* Prepends "/NAME" of the current dentry to the path. */
static bool name_prepend(struct climb *climb)
{
	uint64_t name = climb->dentry + climb->layout->dentry_name, text;
	uint32_t length;

	if (!page_walk_read_kernel(climb->walk, (gva_t){name + climb->layout->name_length}, &length, sizeof(length)) ||
	    length == 0 || length > COMPONENT_BYTES_MAX || length + 1 > climb->at ||
	    !word_read(climb, name + climb->layout->name_text, &text) ||
	    !page_walk_read_kernel(climb->walk, (gva_t){text}, climb->buffer + climb->at - length, length))
		return false;
	climb->at -= length;
	guest_text_clean(climb->buffer + climb->at, length);
	climb->buffer[--climb->at] = '/';
	return true;
}

enum climb_result { CLIMB_ON, CLIMB_TOP, CLIMB_FAILED };

/* Goes from the root of a mounted file system to its mount point. The first file system is mounted on itself. */
static enum climb_result mount_leave(struct climb *climb)
{
	const struct vma_layout *layout = climb->layout;
	uint64_t mount = climb->vfsmount - layout->mount_vfsmount, parent;

	if (!word_read(climb, mount + layout->mount_parent, &parent) ||
	    !word_read(climb, mount + layout->mount_point, &climb->dentry))
		return CLIMB_FAILED;
	climb->vfsmount = parent + layout->mount_vfsmount;
	return parent == mount ? CLIMB_TOP : CLIMB_ON;
}

static enum climb_result climb_step(struct climb *climb)
{
	uint64_t root, parent;

	if (!word_read(climb, climb->vfsmount + climb->layout->vfsmount_root, &root) ||
	    !word_read(climb, climb->dentry + climb->layout->dentry_parent, &parent))
		return CLIMB_FAILED;
	if (climb->dentry == root || climb->dentry == parent)
		return mount_leave(climb);
	if (!name_prepend(climb))
		return CLIMB_FAILED;
	climb->dentry = parent;
	return CLIMB_ON;
}

const char *vma_file_name(const struct vma_layout *layout, struct page_walk *walk, uint64_t file,
                          char buffer[OS_FILE_NAME_BYTES])
{
	struct climb climb = {.layout = layout, .walk = walk, .buffer = buffer, .at = OS_FILE_NAME_BYTES - 1};
	enum climb_result result = CLIMB_ON;

	buffer[climb.at] = '\0';
	if (!word_read(&climb, file + layout->file_path + layout->path_dentry, &climb.dentry) ||
	    !word_read(&climb, file + layout->file_path + layout->path_mnt, &climb.vfsmount))
		return NULL;
	uint64_t itself = climb.dentry;

	for (unsigned i = 0; i < COMPONENTS_MAX && result == CLIMB_ON; i++)
		result = climb_step(&climb);
	if (result != CLIMB_TOP)
		return NULL;
	/*
	 * A file without a directory, as memfd_create makes them, is the root of its file system: its name is the path.
	 */
	if (buffer[climb.at] == '\0') {
		climb.dentry = itself;
		if (!name_prepend(&climb))
			return NULL;
	}
	return buffer + climb.at;
}
