// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process in the memory of a fake guest: its mm_struct, mappings, files, directories and mounts, at kernel addresses
 * that are guest physical ones above FAKE_KERNEL.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_PROCESS_H
#define VPROF_TEST_SUPPORT_FAKE_PROCESS_H

#include <elf.h>

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/vma.h"

#define FAKE_KERNEL UINT64_C(0xffff888000000000)
#define FAKE_OBJECTS_GPA UINT64_C(0x20000) /* page tables lie below */

/* Where fake structures have their members. */
static const struct vma_layout fake_tree_layout = {
	.has_tree = true,
	.mm_tree = 0x40,
	.mm_exec_vm = 0x10,
	.mm_start_code = 0x18,
	.mm_start_stack = 0x20,
	.start = 0,
	.end = 8,
	.flags = 0x20,
	.offset = 0x28,
	.file = 0x30,
	.file_path = 0x10,
	.file_mapping = 0x28,
	.path_mnt = 0,
	.path_dentry = 8,
	.dentry_parent = 0x18,
	.dentry_name = 0x20,
	.name_length = 4,
	.name_text = 8,
	.vfsmount_root = 0,
	.mount_vfsmount = 0x20,
	.mount_parent = 0x10,
	.mount_point = 0x18,
};

struct fake_process {
	struct fake_guest fake;
	struct page_walk walk;
	uint64_t root;        /* CR3 */
	uint64_t next_object; /* GPA */
};

static inline void fake_process_init(struct fake_process *process)
{
	fake_guest_init(&process->fake);
	process->root = fake_table_new(&process->fake);
	for (uint64_t gpa = FAKE_OBJECTS_GPA; gpa < FAKE_RAM_BYTES; gpa += 4096)
		fake_map(&process->fake, process->root, 4, FAKE_KERNEL + gpa, gpa, 1);
	process->next_object = FAKE_OBJECTS_GPA;
	page_walk_init(&process->walk, &process->fake.guest, process->root, false);
}

/* Its kernel address, aligned to 256 bytes as maple nodes are. */
static inline uint64_t fake_object(struct fake_process *process, size_t bytes)
{
	uint64_t at = process->next_object;

	process->next_object += (bytes + 255) & ~UINT64_C(255);
	return FAKE_KERNEL + at;
}

static inline void fake_set(struct fake_process *process, uint64_t object, uint64_t offset, uint64_t value)
{
	fake_write(&process->fake, object - FAKE_KERNEL + offset, value);
}

static inline uint64_t fake_get(struct fake_process *process, uint64_t object, uint64_t offset)
{
	return fake_read(&process->fake, object - FAKE_KERNEL + offset);
}

static inline uint64_t fake_vma(struct fake_process *process, uint64_t start, uint64_t end, uint64_t pages,
                                uint64_t file, bool executable)
{
	const struct vma_layout *layout = &fake_tree_layout;
	uint64_t vma = fake_object(process, 64);

	fake_set(process, vma, layout->start, start);
	fake_set(process, vma, layout->end, end);
	fake_set(process, vma, layout->offset, pages);
	fake_set(process, vma, layout->file, file);
	fake_set(process, vma, layout->flags, executable ? 5 : 1);
	return vma;
}

/* parent 0: a root, which is its own parent. */
static inline uint64_t fake_dentry(struct fake_process *process, uint64_t parent, const char *name)
{
	const struct vma_layout *layout = &fake_tree_layout;
	uint64_t dentry = fake_object(process, 64), text = fake_object(process, strlen(name) + 1);

	strcpy((char *)process->fake.ram + (text - FAKE_KERNEL), name);
	fake_set(process, dentry, layout->dentry_parent, parent != 0 ? parent : dentry);
	fake_set(process, dentry, layout->dentry_name, (uint64_t)strlen(name) << 32); /* hash and length */
	fake_set(process, dentry, layout->dentry_name + layout->name_text, text);
	return dentry;
}

/* on 0: the root's. Returns the address of its struct vfsmount. */
static inline uint64_t fake_mount(struct fake_process *process, uint64_t root, uint64_t on, uint64_t point)
{
	const struct vma_layout *layout = &fake_tree_layout;
	uint64_t mount = fake_object(process, 64);

	fake_set(process, mount, layout->mount_vfsmount + layout->vfsmount_root, root);
	fake_set(process, mount, layout->mount_parent, on != 0 ? on - layout->mount_vfsmount : mount);
	fake_set(process, mount, layout->mount_point, on != 0 ? point : root);
	return mount + layout->mount_vfsmount;
}

static inline uint64_t fake_file(struct fake_process *process, uint64_t vfsmount, uint64_t dentry)
{
	uint64_t file = fake_object(process, 64);

	fake_set(process, file, fake_tree_layout.file_path + fake_tree_layout.path_mnt, vfsmount);
	fake_set(process, file, fake_tree_layout.file_path + fake_tree_layout.path_dentry, dentry);
	return file;
}

#define FAKE_BUILD_ID_BYTES 20u

/* The first page of an ELF file with a build-id of bytes `fill`, behind another note; mapped at user address `gva`. */
static inline void fake_elf_page(struct fake_process *process, uint64_t gva, uint8_t fill)
{
	static const Elf64_Nhdr other = {4, 8, NT_GNU_ABI_TAG}, build_id = {4, FAKE_BUILD_ID_BYTES, NT_GNU_BUILD_ID};
	uint64_t gpa = (process->next_object + 4095) & ~UINT64_C(4095);
	uint8_t *page = process->fake.ram + gpa;
	const Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_phoff = 64,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_filesz = 4096},
		{.p_type = PT_NOTE, .p_offset = 0x200, .p_vaddr = 0x400200, .p_filesz = 24 + 36},
	};

	process->next_object = gpa + 4096;
	memcpy(page, &header, sizeof(header));
	memcpy(page + 64, segments, sizeof(segments));
	memcpy(page + 0x200, &other, 12);
	memcpy(page + 0x20c, "GNU", 4);
	memcpy(page + 0x218, &build_id, 12);
	memcpy(page + 0x224, "GNU", 4);
	memset(page + 0x228, fill, FAKE_BUILD_ID_BYTES);
	fake_map(&process->fake, process->root, 4, gva, gpa, 1);
}

/* A maple node of that type; `root`: marked as the one that ma_root has. */
static inline uint64_t fake_node(struct fake_process *process, unsigned type, bool root)
{
	return fake_object(process, 256) | type << 3 | (root ? 2 : 4);
}

static inline void fake_node_slot(struct fake_process *process, uint64_t node, unsigned i, uint64_t last,
                                  uint64_t entry)
{
	static const unsigned slots[] = {31, 16, 16, 10};
	unsigned type = node >> 3 & 0xf;

	node &= ~UINT64_C(255);
	if (type != 0 && i + 1 < slots[type])
		fake_set(process, node, 8 * (1 + i), last);
	fake_set(process, node, 8 * ((type == 0 ? 1 : slots[type]) + i), entry);
}

#endif
