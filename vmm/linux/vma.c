// SPDX-License-Identifier: BSD-2-Clause
#include "linux/vma.h"

#include "linux/maple.h"

#define PAGE_SHIFT 12u
#define PAGE_MASK UINT64_C(0xfff)
#define VM_EXEC UINT64_C(4) /* linux/mm.h */

/* The tree came with 6.1, and the list went. */
static bool mm_layout_load(const struct types *types, struct vma_layout *layout, GError **error)
{
	uint32_t tree, root;

	layout->has_tree = types_has(types, "mm_struct", "mm_mt", TYPES_PLACE, &tree) &&
	                   types_has(types, "maple_tree", "ma_root", 8, &root);
	if (layout->has_tree) {
		layout->mm_tree = tree + root;
		return true;
	}
	const struct types_member members[] = {
		{"mm_struct", "mmap", 8, &layout->mm_list},
		{"vm_area_struct", "vm_next", 8, &layout->next},
	};

	return types_find(types, members, G_N_ELEMENTS(members), error);
}

bool vma_layout_load(const struct types *types, struct vma_layout *layout, GError **error)
{
	struct vma_layout loaded = {0};
	const struct types_member members[] = {
		{"mm_struct", "exec_vm", 8, &loaded.mm_exec_vm},
		{"mm_struct", "start_code", 8, &loaded.mm_start_code},
		{"mm_struct", "start_stack", 8, &loaded.mm_start_stack},
		{"vm_area_struct", "vm_start", 8, &loaded.start},
		{"vm_area_struct", "vm_end", 8, &loaded.end},
		{"vm_area_struct", "vm_pgoff", 8, &loaded.offset},
		{"vm_area_struct", "vm_file", 8, &loaded.file},
		{"vm_area_struct", "vm_flags", 8, &loaded.flags},
		{"file", "f_path", TYPES_PLACE, &loaded.file_path},
		{"file", "f_mapping", 8, &loaded.file_mapping},
		{"path", "mnt", 8, &loaded.path_mnt},
		{"path", "dentry", 8, &loaded.path_dentry},
		{"dentry", "d_parent", 8, &loaded.dentry_parent},
		{"dentry", "d_name", TYPES_PLACE, &loaded.dentry_name},
		{"qstr", "len", 4, &loaded.name_length},
		{"qstr", "name", 8, &loaded.name_text},
		{"vfsmount", "mnt_root", 8, &loaded.vfsmount_root},
		{"mount", "mnt", TYPES_PLACE, &loaded.mount_vfsmount},
		{"mount", "mnt_parent", 8, &loaded.mount_parent},
		{"mount", "mnt_mountpoint", 8, &loaded.mount_point},
	};

	if (!mm_layout_load(types, &loaded, error) || !types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	*layout = loaded;
	return true;
}

static bool word_read(struct page_walk *walk, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(walk, (gva_t){from}, word, sizeof(*word));
}

struct walk_call {
	const struct vma_layout *layout;
	struct page_walk *walk;
	bool (*each)(const struct os_mapping *vma, void *data);
	void *data;
	unsigned left; /* of VMAS_MAX */
};

static bool vma_read(const struct walk_call *call, uint64_t address, struct os_mapping *vma)
{
	const struct vma_layout *layout = call->layout;
	uint64_t pages, flags;

	if (!word_read(call->walk, address + layout->start, &vma->start) ||
	    !word_read(call->walk, address + layout->end, &vma->end) ||
	    !word_read(call->walk, address + layout->offset, &pages) ||
	    !word_read(call->walk, address + layout->file, &vma->file) ||
	    !word_read(call->walk, address + layout->flags, &flags))
		return false;
	vma->file_offset = pages << PAGE_SHIFT;
	vma->executable = flags & VM_EXEC;
	return vma->start < vma->end && vma->end >> 63 == 0 && ((vma->start | vma->end) & PAGE_MASK) == 0;
}

/* An entry that is not where its mapping is was freed meanwhile. */
static bool tree_entry(uint64_t first, uint64_t last, uint64_t entry, void *data)
{
	struct walk_call *call = data;
	struct os_mapping vma;

	if (call->left-- == 0)
		return false;
	if (!vma_read(call, entry, &vma) || vma.start != first || vma.end - 1 != last)
		return true;
	return call->each(&vma, call->data);
}

static bool list_each(struct walk_call *call, uint64_t address)
{
	uint64_t previous_end = 0;
	struct os_mapping vma;

	for (; address != 0; call->left--) {
		if (call->left == 0 || !vma_read(call, address, &vma) || vma.start < previous_end ||
		    !call->each(&vma, call->data) || !word_read(call->walk, address + call->layout->next, &address))
			return false;
		previous_end = vma.end;
	}
	return true;
}

bool vma_each(const struct vma_layout *layout, struct page_walk *walk, uint64_t mm,
              bool (*each)(const struct os_mapping *vma, void *data), void *data)
{
	struct walk_call call = {layout, walk, each, data, VMAS_MAX};
	uint64_t root;

	if (!word_read(walk, mm + (layout->has_tree ? layout->mm_tree : layout->mm_list), &root))
		return false;
	return layout->has_tree ? maple_each(walk, root, tree_entry, &call) : list_each(&call, root);
}

bool vma_state_read(const struct vma_layout *layout, struct page_walk *walk, uint64_t mm,
                    struct os_mapping_state *state)
{
	return word_read(walk, mm + layout->mm_exec_vm, &state->exec_pages) &&
	       word_read(walk, mm + layout->mm_start_code, &state->start_code) &&
	       word_read(walk, mm + layout->mm_start_stack, &state->start_stack);
}
