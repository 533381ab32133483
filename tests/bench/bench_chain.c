// SPDX-License-Identifier: BSD-2-Clause
/*
 * One stack that both unwinders can walk: each frame is its caller's rbp and the return address. The functions lie all
 * over a table of as many entries as a distribution's kernel has, so that a look-up misses the caches as it does there.
 */
#include "bench_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "elf_builder.h"
#include "fake_guest_memory.h"
#include "guest/unwind.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/orc.h"
#include "linux/os_linux.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define TABLES UINT64_C(0xffffffff82000000)
#define STACK UINT64_C(0xffffc90000010000)
#define STACK_GPA UINT64_C(0x40000)
/* Where frame pointers start, at their dearest: as far into a function without a frame as its start is looked for. */
#define LEAF UINT64_C(0xffffffff81801000)
#define LEAF_GPA UINT64_C(0x41000)
#define LEAF_INSTRUCTION 1000u
#define LEAF_CALLER_GPA UINT64_C(0x42000) /* the page before it */
#define ENTRIES 400000u
#define FUNCTION_BYTES 16u
#define STRIDE 7919u /* a prime: from one frame's function to the next */
#define TURNS 2000u

static struct fake_guest fake;
static struct guest_regs regs, leaf_regs;
static struct unwind_tables *orc;
static struct cfi_table user_table;
static struct user_code code;

static uint64_t return_address(unsigned frame)
{
	return TEXT + (uint64_t)(frame * STRIDE % ENTRIES) * FUNCTION_BYTES + 4;
}

/* Linux 6.1: "the caller's stack pointer is rsp + 16", for each function in turn with a frame pointer rule or none. */
static struct unwind_tables *orc_make(void)
{
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y)";
	static const uint8_t entries[2][6] = {{16, 0, 0, 0, 0x05, 0}, {16, 0, 0xf0, 0xff, 0x15, 0}};
	g_autofree int32_t *ips = g_new(int32_t, ENTRIES);
	g_autofree uint8_t *table = g_malloc((size_t)ENTRIES * sizeof(entries[0]));
	struct elf_builder elf;

	for (unsigned i = 0; i < ENTRIES; i++) {
		ips[i] = (int32_t)(TEXT + (uint64_t)i * FUNCTION_BYTES - (TABLES + i * sizeof(*ips)));
		memcpy(table + i * sizeof(entries[0]), entries[i % 2], sizeof(entries[0]));
	}
	elf_builder_init(&elf);
	elf.entry = 0x200000;
	elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                               0x200000, banner, sizeof(banner), 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind_ip", SHT_PROGBITS, SHF_ALLOC, TABLES, 0x1000000,
	                                               ips, ENTRIES * sizeof(*ips), 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind", SHT_PROGBITS, SHF_ALLOC, TABLES + 0x800000,
	                                               0x2000000, table, ENTRIES * sizeof(entries[0]), 0});
	struct image *image = image_new("made.elf", g_byte_array_free_to_bytes(elf_builder_finish(&elf)), NULL);
	struct unwind_tables *made = image ? orc_load(image, NULL) : NULL;

	image_free(image);
	elf_builder_deinit(&elf);
	return made;
}

static void leaf_put(void)
{
	static const uint8_t call[] = {0xe8, 0x00, 0x08, 0x00, 0x00};
	const uint64_t after = 0x800, slot = 0xff8;

	fake_map(&fake, regs.cr3, 4, LEAF, LEAF_GPA, 1);
	fake_map(&fake, regs.cr3, 4, LEAF - 0x1000, LEAF_CALLER_GPA, 1);
	memset(fake.ram + LEAF_GPA, 0x90, 0x1000);
	memcpy(fake.ram + LEAF_CALLER_GPA + after - sizeof(call), call, sizeof(call));
	fake_write(&fake, STACK_GPA + slot, LEAF - 0x1000 + after);
	leaf_regs = regs;
	leaf_regs.rip = LEAF + LEAF_INSTRUCTION;
	leaf_regs.rsp = STACK + slot;
}

/*
 * The same code as a process has it, with as many rows: "the caller's stack pointer is rsp + 16", and rbp is saved, or
 * rbx and rbp are.
 */
static void table_make(void)
{
	static const struct cfi_cell cells[] = {
		{CFI_CFA, CFI_VALUE, CFI_RSP, 3, 16, 0},   {CFI_RBP, CFI_MEMORY, CFI_CFA, 0, -16, 0},
		{CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},  {CFI_CFA, CFI_VALUE, CFI_RSP, 4, 16, 0},
		{CFI_RBX, CFI_MEMORY, CFI_CFA, 0, -24, 0}, {CFI_RBP, CFI_MEMORY, CFI_CFA, 0, -16, 0},
		{CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},
	};
	struct cfi_row *rows = g_new(struct cfi_row, ENTRIES);

	for (unsigned i = 0; i < ENTRIES; i++)
		rows[i] = (struct cfi_row){i * FUNCTION_BYTES, i % 2 * 3};
	uint32_t *index = g_new(uint32_t, ENTRIES * FUNCTION_BYTES / CFI_INDEX_BYTES);

	for (unsigned i = 0; i < ENTRIES * FUNCTION_BYTES / CFI_INDEX_BYTES; i++)
		index[i] = i * CFI_INDEX_BYTES / FUNCTION_BYTES;
	user_table = (struct cfi_table){
		rows, cells, index, ENTRIES, G_N_ELEMENTS(cells), ENTRIES * FUNCTION_BYTES / CFI_INDEX_BYTES};
	code = (struct user_code){
		.n = 1, .ranges = {{.start = TEXT, .end = TEXT + ENTRIES * FUNCTION_BYTES, .table = &user_table}}};
}

void bench_chain_open(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.rip = return_address(0), .rsp = STACK, .rbp = STACK, .valid = true};
	regs.cr3 = fake_table_new(&fake);
	fake_map(&fake, regs.cr3, 4, STACK, STACK_GPA, 1);
	for (unsigned i = 0; i < UNWIND_DEPTH_MAX + 1; i++) {
		fake_write(&fake, STACK_GPA + i * 16, STACK + (i + 1) * 16);
		fake_write(&fake, STACK_GPA + i * 16 + 8, return_address(i + 1));
	}
	leaf_put();
	orc = orc_make();
	table_make();
}

static double chain_ns(const struct unwind_config *config, const struct guest_regs *from)
{
	const unsigned depth = config->depth;
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct timespec start, end;
	enum unwind_end why;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		if (unwind(config, &fake.guest, from, NULL, chain, &why) == depth + 1 && why == UNWIND_DEPTH)
			continue;
		fprintf(stderr, "bench_sample: a chain of %u frames was cut\n", depth);
		exit(EXIT_FAILURE);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / TURNS;
}

double bench_chain_ns(bool by_orc, unsigned depth)
{
	const struct unwind_config config = {.system = &linux_unwinding, .tables = by_orc ? orc : NULL, .depth = depth};

	return chain_ns(&config, by_orc ? &regs : &leaf_regs);
}

double bench_chain_user_ns(unsigned depth)
{
	const struct unwind_config config = {.user = true, .code = &code, .depth = depth};
	struct guest_regs user = regs;

	user.cpl = 3;
	return chain_ns(&config, &user);
}
