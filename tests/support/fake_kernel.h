// SPDX-License-Identifier: BSD-2-Clause
/*
 * A Linux kernel in the memory of a fake guest, with everything that is searched for: its mapping, an
 * interrupt descriptor table, the banner, a build-id and kallsyms.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_KERNEL_H
#define VPROF_TEST_SUPPORT_FAKE_KERNEL_H

#include <elf.h>
#include <stdio.h>

#include "fake_guest_memory.h"
#include "guest/registers.h"
#include "kallsyms_builder.h"
#include "linux/search_linux.h"

#define FAKE_KERNEL_ROOT UINT64_C(0x10000)      /* page tables */
#define FAKE_KERNEL_USER_ROOT UINT64_C(0x11000) /* those of user space, with page table isolation */
#define FAKE_KERNEL_IDT UINT64_C(0x3f000)
#define FAKE_KERNEL_GPA UINT64_C(0x40000)
#define FAKE_KERNEL_BYTES UINT64_C(0x40000)
#define FAKE_KERNEL_LINKED UINT64_C(0xffffffff81000000)
#define FAKE_KERNEL_IDT_GVA UINT64_C(0xfffffe0000000000)
#define FAKE_KERNEL_SYMBOLS 400u

static const struct os_search *const fake_searches[] = {&search_linux, NULL};

/* Offsets in the image. */
enum {
	FAKE_KERNEL_DIVIDE_ERROR = 0x100,
	FAKE_KERNEL_EARLY_HANDLER = 0x200,
	FAKE_KERNEL_VECTORS = 0x400, /* of arm64 */
	FAKE_KERNEL_BANNER = 0x800,
	FAKE_KERNEL_NOTES = 0x900,
	FAKE_KERNEL_FUNCTIONS = 0x1000,
	FAKE_KERNEL_KALLSYMS = 0x8000,
};
#define FAKE_KERNEL_NOTE_BYTES (sizeof(Elf64_Nhdr) + 4 + 20)

static inline void fake_kernel_map(struct fake_guest *fake, uint64_t root, uint64_t at, uint64_t bytes)
{
	for (uint64_t offset = 0; offset < bytes; offset += 4096)
		fake_map(fake, root, 4, at + offset, FAKE_KERNEL_GPA + offset, 1);
	fake_map(fake, root, 4, FAKE_KERNEL_IDT_GVA, FAKE_KERNEL_IDT, 1);
}

static inline void fake_kernel_notes(struct fake_guest *fake, uint8_t build_id)
{
	uint8_t *at = fake->ram + FAKE_KERNEL_GPA + FAKE_KERNEL_NOTES;
	const Elf64_Nhdr header = {.n_namesz = 4, .n_descsz = 20, .n_type = 3 /* NT_GNU_BUILD_ID */};

	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), "GNU", 4);
	memset(at + sizeof(header) + 4, build_id, 20);
}

static inline void fake_kernel_kallsyms(struct fake_guest *fake, uint64_t at)
{
	struct kallsyms_symbol symbols[FAKE_KERNEL_SYMBOLS + 6];
	g_autoptr(GByteArray) tables = g_byte_array_new();
	static char names[FAKE_KERNEL_SYMBOLS][32];
	uint32_t n = 0;

	symbols[n++] = (struct kallsyms_symbol){at, "T_text"};
	symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_DIVIDE_ERROR, "Tasm_exc_divide_error"};
	symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_EARLY_HANDLER, "Tearly_idt_handler_array"};
	symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_VECTORS, "Tvectors"};
	symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_NOTES, "R__start_notes"};
	symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_NOTES + FAKE_KERNEL_NOTE_BYTES, "R__stop_notes"};
	for (unsigned i = 0; i < FAKE_KERNEL_SYMBOLS; i++) {
		snprintf(names[i], sizeof(names[i]), "Tfunction_%u", i);
		symbols[n++] = (struct kallsyms_symbol){at + FAKE_KERNEL_FUNCTIONS + 16 * i, names[i]};
	}
	kallsyms_build(tables, &KALLSYMS_LAYOUTS[4], at + FAKE_KERNEL_KALLSYMS, symbols, n);
	memcpy(fake->ram + FAKE_KERNEL_GPA + FAKE_KERNEL_KALLSYMS, tables->data, tables->len);
}

static inline void fake_kernel_gate(struct fake_guest *fake, uint64_t handler)
{
	fake_write(fake, FAKE_KERNEL_IDT,
	           (handler & 0xffff) | (handler >> 16 & 0xffff) << 48 | UINT64_C(0x8e00) << 32 | 0x10 << 16);
	fake_write(fake, FAKE_KERNEL_IDT + 8, handler >> 32);
}

/* At `at`, a multiple of 2 MiB, with a build-id of 20 such bytes. Returns the registers of a vCPU that runs it. */
static inline struct seen_vcpu fake_kernel_make(struct fake_guest *fake, uint64_t at, uint8_t build_id)
{
	static const char banner[] = "Linux version 6.1.0-fake (test@nowhere) #1 SMP\n";

	fake_guest_init(fake);
	fake->guest.searches = fake_searches;
	fake->next_table = 0x20000;
	fake_kernel_map(fake, FAKE_KERNEL_ROOT, at, FAKE_KERNEL_BYTES);
	memcpy(fake->ram + FAKE_KERNEL_GPA + FAKE_KERNEL_BANNER, banner, sizeof(banner));
	fake_kernel_notes(fake, build_id);
	fake_kernel_kallsyms(fake, at);
	fake_kernel_gate(fake, at + FAKE_KERNEL_DIVIDE_ERROR);
	return (struct seen_vcpu){
		.regs = {.rip = at + FAKE_KERNEL_FUNCTIONS, .cr3 = FAKE_KERNEL_ROOT, .valid = true},
		.vectors = FAKE_KERNEL_IDT_GVA,
		.long_mode = true,
	};
}

#endif
