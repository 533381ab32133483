// SPDX-License-Identifier: BSD-2-Clause
/* Loadable modules in the memory of a fake guest, at kernel addresses as fake_process.h has them. */
#ifndef VPROF_TEST_SUPPORT_FAKE_MODULES_H
#define VPROF_TEST_SUPPORT_FAKE_MODULES_H

#include <elf.h>

#include "fake_process.h"
#include "linux/module.h"

#define FAKE_MODULE_BYTES 256u
#define FAKE_MODULE_CODE UINT64_C(0xffffffffc0000000) /* code is not looked at, and need not be there */

/* Where fake structures have their members; the head of the list is the first object. */
static const struct module_layout fake_module_layout = {
	.head = FAKE_KERNEL + FAKE_OBJECTS_GPA,
	.state = 0,
	.list = 8,
	.name = 0x18,
	.build_id = 0x50,
	.parts = {{.base = 0x68, .bytes = 0x70}, {.base = 0x78, .bytes = 0x80}},
	.orc_ips = 0x88,
	.orc_entries = 0x90,
	.orc_n = 0x98,
	.kallsyms = 0xa0,
	.symbols = 0,
	.n_symbols = 8,
	.names = 0x10,
	.notes = {.n = 8, .first = 16, .bytes = 64, .size = 16, .at = 24},
	.has_orc = true,
	.has_kallsyms = true,
};

static inline void fake_bytes(struct fake_process *process, uint64_t object, uint64_t offset, const void *bytes,
                              size_t n)
{
	memcpy(process->fake.ram + (object - FAKE_KERNEL) + offset, bytes, n);
}

/* An empty list. */
static inline void fake_modules_init(struct fake_process *process)
{
	fake_process_init(process);
	uint64_t head = fake_object(process, 16);

	fake_set(process, head, 0, head);
	fake_set(process, head, 8, head);
}

/* Puts a module in front of the list, as the kernel does, and returns where it is. Its build-id is bytes `fill`. */
static inline uint64_t fake_module(struct fake_process *process, const char *name, uint64_t code, uint32_t bytes,
                                   uint8_t fill)
{
	const struct module_layout *layout = &fake_module_layout;
	uint64_t module = fake_object(process, FAKE_MODULE_BYTES), link = module + layout->list;
	uint64_t first = fake_read(&process->fake, layout->head - FAKE_KERNEL);
	uint8_t build_id[MODULE_BUILD_ID_BYTES];

	memset(build_id, fill, sizeof(build_id));
	fake_bytes(process, module, layout->name, name, strlen(name) + 1);
	fake_bytes(process, module, layout->build_id, build_id, sizeof(build_id));
	fake_set(process, module, layout->parts[MODULE_TEXT].base, code);
	fake_set(process, module, layout->parts[MODULE_TEXT].bytes, bytes);
	fake_set(process, link, 0, first);
	fake_set(process, link, 8, layout->head);
	fake_set(process, first, 8, link);
	fake_set(process, layout->head, 0, link);
	return module;
}

static inline void fake_module_part(struct fake_process *process, uint64_t module, enum module_part part, uint64_t code,
                                    uint32_t bytes)
{
	fake_set(process, module, fake_module_layout.parts[part].base, code);
	fake_set(process, module, fake_module_layout.parts[part].bytes, bytes);
}

/* Notes for sysfs instead: something else, then the build-id. `attributes`: in struct module. */
static inline void fake_module_notes(struct fake_process *process, uint64_t module, uint32_t attributes, uint8_t fill)
{
	static const Elf64_Nhdr other = {4, 8, 0x1234}, build_id = {4, MODULE_BUILD_ID_BYTES, NT_GNU_BUILD_ID};
	uint64_t groups = fake_object(process, 16 + 2 * 64), notes = fake_object(process, 24 + 36);
	uint8_t id[MODULE_BUILD_ID_BYTES];

	memset(id, fill, sizeof(id));
	fake_bytes(process, notes, 0, &other, sizeof(other));
	fake_bytes(process, notes, 12, "GNU", 4);
	fake_bytes(process, notes, 24, &build_id, sizeof(build_id));
	fake_bytes(process, notes, 36, "GNU", 4);
	fake_bytes(process, notes, 40, id, sizeof(id));
	fake_set(process, groups, 8, 2);
	fake_set(process, groups, 16 + 16, 24); /* of the first section */
	fake_set(process, groups, 16 + 24, notes);
	fake_set(process, groups, 80 + 16, 36);
	fake_set(process, groups, 80 + 24, notes + 24);
	fake_set(process, module, attributes, groups);
}

/* The same as they are since 6.16: by a list of pointers, which `layout` is told of. */
static inline void fake_module_notes_list(struct fake_process *process, uint64_t module, struct module_layout *layout)
{
	const uint32_t bytes = layout->notes.bytes, first = layout->notes.first;
	const uint64_t groups = fake_get(process, module, layout->notes.attributes), list = fake_object(process, 24);

	layout->notes.has_list = true;
	layout->notes.list = 0;
	fake_set(process, groups, layout->notes.list, list);
	fake_set(process, list, 0, groups + first);
	fake_set(process, list, 8, groups + first + bytes);
	fake_set(process, list, 16, 0);
}

/* Functions of 0x100 bytes each, one after the other from the module's first byte of code on. */
static inline void fake_module_symbols(struct fake_process *process, uint64_t module, uint64_t code,
                                       const char *const *names, uint32_t n)
{
	uint64_t kallsyms = fake_object(process, 24), symbols = fake_object(process, (n + 1) * sizeof(Elf64_Sym));
	uint64_t texts = fake_object(process, 4096);
	uint32_t used = 1;

	for (uint32_t i = 0; i < n; i++) {
		const Elf64_Sym symbol = {.st_name = used,
		                          .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
		                          .st_shndx = 1,
		                          .st_value = code + i * UINT64_C(0x100),
		                          .st_size = 0x100};

		fake_bytes(process, symbols, (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		fake_bytes(process, texts, used, names[i], strlen(names[i]) + 1);
		used += (uint32_t)strlen(names[i]) + 1;
	}
	fake_set(process, kallsyms, fake_module_layout.symbols, symbols);
	fake_set(process, kallsyms, fake_module_layout.n_symbols, n + 1);
	fake_set(process, kallsyms, fake_module_layout.names, texts);
	fake_set(process, module, fake_module_layout.kallsyms, kallsyms);
}

#endif
