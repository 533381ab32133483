// SPDX-License-Identifier: BSD-2-Clause
/* A kernel of a few functions that call each other, with its symbols and unwind tables, for searches of a stack. */
#ifndef VPROF_TEST_SUPPORT_FAKE_CALLS_H
#define VPROF_TEST_SUPPORT_FAKE_CALLS_H

#include "elf_builder.h"
#include "linux/call_sites.h"
#include "linux/orc.h"
#include "linux/x86/orc_entry.h"

#define FAKE_TEXT UINT64_C(0xffffffff81000000)
#define FAKE_TABLES (FAKE_TEXT + 0x100000)
#define FAKE_DATA (FAKE_TEXT + 0x200000)
#define FAKE_TEXT_BYTES 0xc00u

/* Functions, by their offset in the text. */
enum {
	FAKE_ENTRY = 0x000, /* of user space and of interrupts: a pt_regs is above its return addresses */
	FAKE_OUTER = 0x100,
	FAKE_INNER = 0x200,
	FAKE_FRAMED = 0x280, /* keeps a frame pointer */
	FAKE_OTHER = 0x300,
	FAKE_JUMPER = 0x400, /* jumps to inner */
	FAKE_TAKEN = 0x500,  /* its address is in the data */
	FAKE_SWITCH = 0x600, /* __switch_to_asm */
	FAKE_THREAD = 0x700, /* a thread's first function */
	FAKE_CALLED = 0x800, /* by a call alone */
	FAKE_ON_IRQ = 0x900, /* on the interrupt stack; the stack pointer before is that stack's last word */
	FAKE_COLD = 0xa00,   /* a part of inner */
	FAKE_BEFORE = 0xb00, /* runs into within */
	FAKE_WITHIN = 0xb10,
	FAKE_ARRIVAL = 0xb80, /* the first instructions of an entry: only what the processor has pushed is there */
};

/* Behind the calls. */
enum {
	FAKE_ENTRY_TO_OUTER = 0x15,
	FAKE_ENTRY_TO_OTHER = 0x25,
	FAKE_ENTRY_TO_CALLED = 0x35,
	FAKE_ENTRY_TO_ON_IRQ = 0x45,
	FAKE_ENTRY_TO_FRAMED = 0x55,
	FAKE_OUTER_TO_INNER = 0x125,
	FAKE_INNER_TO_INNER = 0x225,
	FAKE_INNER_TO_JUMPER = 0x245,
	FAKE_OTHER_INDIRECT = 0x322,
	FAKE_SWITCH_TO_INNER = 0x615,
	FAKE_THREAD_TO_OUTER = 0x715,
	FAKE_ON_IRQ_TO_INNER = 0x915,
	FAKE_COLD_TO_CALLED = 0xa15,
	FAKE_COLD_TO_BEFORE = 0xa35,
};

static inline void fake_call_put(uint8_t *text, uint32_t after, uint32_t to)
{
	int32_t distance = (int32_t)(to - after);

	text[after - 5] = 0xe8;
	memcpy(text + after - 4, &distance, sizeof(distance));
}

static inline void fake_text_fill(uint8_t text[FAKE_TEXT_BYTES])
{
	static const uint8_t jump_to_inner[] = {0xe9, 0xfb, 0xfd, 0xff, 0xff};      /* at jumper */
	static const uint8_t jump_to_cold[] = {0x0f, 0x85, 0xaa, 0x07, 0x00, 0x00}; /* at inner + 0x50 */

	memset(text, 0x90, FAKE_TEXT_BYTES);
	fake_call_put(text, FAKE_ENTRY_TO_OUTER, FAKE_OUTER);
	fake_call_put(text, FAKE_ENTRY_TO_OTHER, FAKE_OTHER);
	fake_call_put(text, FAKE_ENTRY_TO_CALLED, FAKE_CALLED);
	fake_call_put(text, FAKE_ENTRY_TO_ON_IRQ, FAKE_ON_IRQ);
	fake_call_put(text, FAKE_ENTRY_TO_FRAMED, FAKE_FRAMED);
	fake_call_put(text, FAKE_OUTER_TO_INNER, FAKE_INNER);
	fake_call_put(text, FAKE_INNER_TO_INNER, FAKE_INNER);
	fake_call_put(text, FAKE_INNER_TO_JUMPER, FAKE_JUMPER);
	memcpy(text + FAKE_INNER + 0x50, jump_to_cold, sizeof(jump_to_cold));
	memcpy(text + FAKE_OTHER_INDIRECT - 2, "\xff\xd0", 2);
	memcpy(text + FAKE_JUMPER, jump_to_inner, sizeof(jump_to_inner));
	fake_call_put(text, FAKE_SWITCH_TO_INNER, FAKE_INNER);
	fake_call_put(text, FAKE_THREAD_TO_OUTER, FAKE_OUTER);
	fake_call_put(text, FAKE_ON_IRQ_TO_INNER, FAKE_INNER);
	fake_call_put(text, FAKE_COLD_TO_CALLED, FAKE_CALLED);
	fake_call_put(text, FAKE_COLD_TO_BEFORE, FAKE_BEFORE);
	text[FAKE_BEFORE] = 0x50; /* PUSH %rax; NOPs */
	text[FAKE_WITHIN] = 0xc3;
}

/* In the encoding of 6.1. */
static inline void fake_tables_fill(GByteArray *ips, GByteArray *entries)
{
	enum {
		SP = ORC_REG_SP,
		BP = ORC_REG_BP,
		PREV = ORC_REG_PREV_SP,
		CALL = 0,
		REGS = 1 << 8,
		PARTIAL = 2 << 8,
		END = 1 << 10
	};

	static const struct {
		uint32_t at;
		int16_t sp, bp;
		uint16_t flags;
	} rules[] = {
		{FAKE_ENTRY, 0, 0, SP | REGS},
		{FAKE_OUTER, 16, 0, SP | CALL},
		{FAKE_INNER, 24, 0, SP | CALL},
		{FAKE_FRAMED, 16, -16, BP | PREV << 4 | CALL},
		{FAKE_OTHER, 16, 0, SP | CALL},
		{FAKE_JUMPER, 8, 0, SP | CALL},
		{FAKE_TAKEN, 8, 0, SP | CALL},
		{FAKE_SWITCH, 8, 0, SP | CALL},
		{FAKE_THREAD, 0, 0, END},
		{FAKE_CALLED, 8, 0, SP | CALL},
		{FAKE_ON_IRQ, 8, 0, ORC_REG_SP_INDIRECT | CALL},
		{FAKE_COLD, 24, 0, SP | CALL},
		{FAKE_BEFORE, 8, 0, SP | CALL},
		{FAKE_ARRIVAL, 8, 0, SP | PARTIAL},
		{FAKE_TEXT_BYTES, 0, 0, 0},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
		int32_t distance = (int32_t)(FAKE_TEXT + rules[i].at - (FAKE_TABLES + 4 * i));

		g_byte_array_append(ips, (const uint8_t *)&distance, sizeof(distance));
		g_byte_array_append(entries, (const uint8_t *)&rules[i].sp, 6);
	}
}

/* The image, which the caller frees; NULL: it could not be made. */
static inline struct image *fake_calls_image(void)
{
	static const struct {
		const char *name;
		uint32_t at;
	} symbols[] = {
		{"_text", 0},
		{"entry", FAKE_ENTRY},
		{"outer", FAKE_OUTER},
		{"inner", FAKE_INNER},
		{"framed", FAKE_FRAMED},
		{"other", FAKE_OTHER},
		{"jumper", FAKE_JUMPER},
		{"taken", FAKE_TAKEN},
		{"__switch_to_asm", FAKE_SWITCH},
		{"thread", FAKE_THREAD},
		{"called", FAKE_CALLED},
		{"on_irq", FAKE_ON_IRQ},
		{"inner.cold", FAKE_COLD},
		{"before", FAKE_BEFORE},
		{"within", FAKE_WITHIN},
		{"arrival", FAKE_ARRIVAL},
		{"_etext", FAKE_TEXT_BYTES},
	};
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y)";
	const uint64_t data[] = {0, FAKE_TEXT + FAKE_TAKEN};
	g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();
	uint8_t text[FAKE_TEXT_BYTES];
	struct elf_builder builder;

	fake_text_fill(text);
	fake_tables_fill(ips, entries);
	elf_builder_init(&builder);
	uint16_t code =
		elf_builder_section(&builder, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                           FAKE_TEXT, 0x1000000, text, sizeof(text), 0});

	elf_builder_section(&builder, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, FAKE_TEXT + 0x80000,
	                                                   0x1080000, banner, sizeof(banner), 0});
	elf_builder_section(&builder, (struct elf_section){".orc_unwind_ip", SHT_PROGBITS, SHF_ALLOC, FAKE_TABLES,
	                                                   0x1100000, ips->data, ips->len, 0});
	elf_builder_section(&builder, (struct elf_section){".orc_unwind", SHT_PROGBITS, SHF_ALLOC, FAKE_TABLES + 0x1000,
	                                                   0x1101000, entries->data, entries->len, 0});
	elf_builder_section(&builder, (struct elf_section){".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, FAKE_DATA,
	                                                   0x1200000, data, sizeof(data), 0});
	for (size_t i = 0; i < G_N_ELEMENTS(symbols); i++)
		elf_builder_symbol(&builder, symbols[i].name, FAKE_TEXT + symbols[i].at, 0,
		                   ELF64_ST_INFO(STB_GLOBAL, i == 0 ? STT_NOTYPE : STT_FUNC), code);
	GByteArray *file = elf_builder_finish(&builder);

	elf_builder_deinit(&builder);
	return image_new("made.elf", g_byte_array_free_to_bytes(file), NULL);
}

/* Both tables; false: they could not be made. */
static inline bool fake_calls_load(struct unwind_tables **orc, struct call_sites **sites)
{
	struct image *image = fake_calls_image();
	struct symtab *symtab = image ? symtab_load(image, NULL) : NULL;

	*orc = image ? orc_load(image, NULL) : NULL;
	*sites = symtab ? call_sites_load(image, symtab, NULL) : NULL;
	symtab_free(symtab);
	image_free(image);
	return *orc && *sites;
}

#endif
