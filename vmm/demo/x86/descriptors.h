// SPDX-License-Identifier: BSD-2-Clause
/* Descriptor tables of long mode, for freestanding guests (SDM volume 3, chapters 3, 6 and 7). */
#ifndef VPROF_DEMO_X86_DESCRIPTORS_H
#define VPROF_DEMO_X86_DESCRIPTORS_H

#include <stdint.h>

struct idt_gate {
	uint16_t offset_low, selector;
	uint8_t ist, type;
	uint16_t offset_middle;
	uint32_t offset_high, reserved;
};

/* What LGDT and LIDT load. */
struct __attribute__((packed)) table_pointer {
	uint16_t limit;
	uint64_t base;
};

struct __attribute__((packed)) tss {
	uint32_t reserved;
	uint64_t rsp0; /* the stack of CPL 0, which an interrupt at CPL 3 gets */
	uint32_t unused[22];
	uint32_t iomap_base;
};
_Static_assert(sizeof(struct tss) == 104, "SDM volume 3, 7.7");

/* A present interrupt gate to `handler` in the code segment `selector`. */
static inline struct idt_gate idt_gate_to(const void *handler, uint16_t selector)
{
	const uint64_t at = (uint64_t)handler;
	return (struct idt_gate){
		.offset_low = (uint16_t)at,
		.selector = selector,
		.type = 0x8e,
		.offset_middle = (uint16_t)(at >> 16),
		.offset_high = (uint32_t)(at >> 32),
	};
}

/* Fills the two GDT entries of `tss`, available and present, and the fields of it that never change. */
static inline void tss_describe(uint64_t entries[2], struct tss *tss)
{
	const uint64_t base = (uint64_t)tss;
	tss->iomap_base = sizeof *tss;
	entries[0] = (sizeof *tss - 1) | (base & 0xffffff) << 16 | UINT64_C(0x89) << 40 | (base >> 24 & 0xff) << 56;
	entries[1] = base >> 32;
}

#endif
