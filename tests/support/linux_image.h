// SPDX-License-Identifier: BSD-2-Clause
/* A Linux kernel's image that says where its tasks and cgroups have their members, and nothing else. */
#ifndef VPROF_TEST_SUPPORT_LINUX_IMAGE_H
#define VPROF_TEST_SUPPORT_LINUX_IMAGE_H

#include "btf_builder.h"
#include "elf_builder.h"
#include "lib/symbol/image.h"

/* Of which a kernel_layout can be loaded; all zero but per_cpu: one without cgroups. */
struct linux_image {
	const char *per_cpu;     /* the symbol of what holds the running task: current_task or pcpu_hot */
	const char *node_parent; /* what kernfs_node calls its parent; NULL: there is no such structure */
	bool no_btf;
};

static inline void linux_image_cgroups(struct btf_builder *btf, uint32_t quad, const char *node_parent)
{
	btf_builder_struct(btf, "css_set", (struct btf_member_spec[]){{"dfl_cgrp", quad, 8 * 16}, {NULL}});
	btf_builder_struct(btf, "cgroup", (struct btf_member_spec[]){{"kn", quad, 8 * 24}, {NULL}});
	btf_builder_struct(btf, "kernfs_node",
	                   (struct btf_member_spec[]){
				   {node_parent, quad, 8 * 8}, {"name", quad, 8 * 16}, {"id", quad, 8 * 96}, {NULL}});
}

/* A kernel's image at the usual address, with a symbol table and types. By image_free. */
static inline struct image *linux_image_make(const struct linux_image *wanted)
{
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y) (gcc) #1 SMP\n";
	static const uint8_t code[64];
	struct elf_builder elf;
	struct btf_builder btf;
	uint16_t text, section;
	GError *error = NULL;

	btf_builder_init(&btf);
	const uint32_t word = btf_builder_int(&btf, "int", 4), quad = btf_builder_int(&btf, "long int", 8);
	const uint32_t name = btf_builder_array(&btf, btf_builder_int(&btf, "char", 1), 16);

	btf_builder_struct(&btf, "task_struct",
	                   (struct btf_member_spec[]){{"pid", word, 8 * 100},
	                                              {"tgid", word, 8 * 104},
	                                              {"start_time", quad, 8 * 200},
	                                              {"comm", name, 8 * 280},
	                                              {"mm", quad, 8 * 304},
	                                              {"real_parent", quad, 8 * 312},
	                                              {"exit_state", word, 8 * 320},
	                                              {wanted->node_parent ? "cgroups" : "none", quad, 8 * 328},
	                                              {NULL}});
	btf_builder_struct(
		&btf, "pcpu_hot",
		(struct btf_member_spec[]){
			{"pad", word, 0}, {"current_task", quad, 8 * 24}, {"hardirq_stack_ptr", quad, 8 * 32}, {NULL}});
	if (wanted->node_parent)
		linux_image_cgroups(&btf, quad, wanted->node_parent);
	g_autoptr(GByteArray) types = btf_builder_finish(&btf);

	btf_builder_deinit(&btf);
	elf_builder_init(&elf);
	text = elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                      UINT64_C(0xffffffff81000000), 0x1000000, code, 64, 0});
	elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, UINT64_C(0xffffffff81001000),
	                                               0x1001000, banner, sizeof(banner), 0});
	section = elf_builder_section(&elf, (struct elf_section){".data..percpu", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
	                                                         0, 0x1002000, code, 64, 0});
	if (!wanted->no_btf)
		elf_builder_section(&elf,
		                    (struct elf_section){".BTF", SHT_PROGBITS, 0, 0, 0, types->data, types->len, 0});
	elf_builder_symbol(&elf, "_text", UINT64_C(0xffffffff81000000), 64, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text);
	elf_builder_symbol(&elf, "this_cpu_off", 0x18, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), section);
	elf_builder_symbol(&elf, wanted->per_cpu, 0x20, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), section);
	if (g_str_equal(wanted->per_cpu, "current_task"))
		elf_builder_symbol(&elf, "hardirq_stack_ptr", 0x28, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), section);
	GByteArray *file = elf_builder_finish(&elf);
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(file);
	struct image *image = image_new("vmlinux", bytes, &error);

	g_assert_no_error(error);
	elf_builder_deinit(&elf);
	return image;
}

#endif
