// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs to find a stack pointer (linux/unwind_search.h), against walking the same chain by ORC from the stack
 * pointer in the same run, and what is copied of the guest's memory for it.
 *
 * The kernel is made: as many functions as a distribution's has, all over its text, each with a call of the next. Its
 * stack has one chain that leads to user space, and below it what earlier calls have left: pieces of chains that lead
 * to nothing, and return addresses without a chain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/bpf/guest_sample.h"
#include "elf_builder.h"
#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/orc.h"
#include "linux/os_linux.h"
#include "linux/unwind_search.h"
#include "linux/x86/orc_entry.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define TABLES UINT64_C(0xffffffff83000000)
#define STACK UINT64_C(0xffffc90000010000)
#define STACK_GPA UINT64_C(0x40000)
#define STACK_PAGES 4u
#define STACK_BYTES (STACK_PAGES * 4096u)
#define FUNCTIONS 100000u
#define FUNCTION_BYTES 160u
#define CALL_BYTES 5u
#define STRIDE 7919u /* a prime: from one frame's function to the next */
#define ENTRY (FUNCTIONS - 1)
#define PT_REGS_BYTES 168u
#define FRAME_BYTES 16u
#define OLD_CHAINS 9u
#define OLD_FRAMES 8u
#define TURNS 500u
#define SLICES 9u

static const unsigned depths[] = {4, 16, 64};

static struct fake_guest fake;
static struct guest_regs regs;
static struct unwind_tables *orc;
static struct call_sites *sites;

static void must(bool done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "bench_search: cannot %s\n", what);
	exit(EXIT_FAILURE);
}

/* The function that is `level` calls above the one that runs; the entry of user space is above `depth` of them. */
static unsigned function_at(unsigned level)
{
	return level * STRIDE % ENTRY;
}

static uint64_t return_address(unsigned function)
{
	return TEXT + (uint64_t)function * FUNCTION_BYTES + CALL_BYTES;
}

/* ---- the kernel ---- */

static void put_call(uint8_t *text, unsigned from, unsigned to)
{
	uint8_t *code = text + (size_t)from * FUNCTION_BYTES;
	int32_t distance = (int32_t)(to * FUNCTION_BYTES) - (int32_t)(from * FUNCTION_BYTES + CALL_BYTES);

	code[0] = 0xe8;
	memcpy(code + 1, &distance, sizeof(distance));
	code[FUNCTION_BYTES - 1] = 0xc3;
}

/* Every function calls the one below it; the entry calls that which `depth` needs. */
static uint8_t *text_make(unsigned depth)
{
	uint8_t *text = g_malloc((size_t)FUNCTIONS * FUNCTION_BYTES);

	memset(text, 0x90, (size_t)FUNCTIONS * FUNCTION_BYTES);
	for (unsigned i = 0; i < ENTRY; i++)
		put_call(text, i, (i + ENTRY - STRIDE) % ENTRY);
	put_call(text, ENTRY, function_at(depth - 1));
	return text;
}

/* Linux 6.1: "the caller's stack pointer is rsp + 16", and at the entry "a pt_regs is at rsp". */
static void tables_make(GByteArray *ips, GByteArray *rules)
{
	static const uint8_t call[] = {FRAME_BYTES, 0, 0, 0, ORC_REG_SP, 0}, entry[] = {0, 0, 0, 0, ORC_REG_SP, 1};
	static const uint8_t end[6];

	for (unsigned i = 0; i <= FUNCTIONS; i++) {
		int32_t distance = (int32_t)(TEXT + (uint64_t)i * FUNCTION_BYTES - (TABLES + i * sizeof(distance)));

		g_byte_array_append(ips, (const uint8_t *)&distance, sizeof(distance));
		g_byte_array_append(rules, i == FUNCTIONS ? end : i == ENTRY ? entry : call, sizeof(call));
	}
}

static void symbols_add(struct elf_builder *elf, uint16_t code)
{
	const uint8_t function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), mark = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
	char name[16];

	elf_builder_symbol(elf, "_text", TEXT, 0, mark, code);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		elf_builder_symbol(elf, name, TEXT + (uint64_t)i * FUNCTION_BYTES, 0, function, code);
	}
	elf_builder_symbol(elf, "_etext", TEXT + (uint64_t)FUNCTIONS * FUNCTION_BYTES, 0, mark, code);
}

static void kernel_open(unsigned depth)
{
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y)";
	g_autoptr(GByteArray) ips = g_byte_array_new(), rules = g_byte_array_new();
	g_autofree uint8_t *text = text_make(depth);
	struct elf_builder elf;

	tables_make(ips, rules);
	elf_builder_init(&elf);
	uint16_t code =
		elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                       0x1000000, text, (size_t)FUNCTIONS * FUNCTION_BYTES, 0});
	elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, TABLES - 0x1000, 0x3000000,
	                                               banner, sizeof(banner), 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind_ip", SHT_PROGBITS, SHF_ALLOC, TABLES, 0x4000000,
	                                               ips->data, ips->len, 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind", SHT_PROGBITS, SHF_ALLOC, TABLES + 0x800000,
	                                               0x5000000, rules->data, rules->len, 0});
	symbols_add(&elf, code);
	struct image *image = image_new("made.elf", g_byte_array_free_to_bytes(elf_builder_finish(&elf)), NULL);
	struct symtab *symtab = image ? symtab_load(image, NULL) : NULL;

	orc = image ? orc_load(image, NULL) : NULL;
	sites = symtab ? call_sites_load(image, symtab, NULL) : NULL;
	must(orc && sites, "make a kernel");
	symtab_free(symtab);
	image_free(image);
	elf_builder_deinit(&elf);
}

static void kernel_close(void)
{
	orc_free(orc);
	call_sites_free(sites);
}

/* ---- its stack ---- */

static void put(uint64_t at, uint64_t value)
{
	fake_write(&fake, at - STACK + STACK_GPA, value);
}

/* The return addresses of a chain of `frames`, the first one at `at`. */
static void put_chain(uint64_t at, unsigned frames, bool whole)
{
	for (unsigned i = 0; i < frames; i++)
		put(at + (uint64_t)i * FRAME_BYTES,
		    return_address(whole && i == frames - 1 ? ENTRY : function_at(i + 1)));
}

static uint64_t stack_fill(unsigned depth)
{
	const uint64_t end = STACK + STACK_BYTES, pt_regs = end - PT_REGS_BYTES;
	const uint64_t first = pt_regs - sizeof(uint64_t) - (uint64_t)(depth - 1) * FRAME_BYTES;

	for (uint64_t at = STACK; at < pt_regs; at += sizeof(uint64_t))
		put(at, at % 32 == 0 ? return_address((unsigned)(at / 32) % ENTRY) : 0);
	for (unsigned i = 1; i <= OLD_CHAINS; i++)
		put_chain(first - (uint64_t)i * (OLD_FRAMES + 4) * FRAME_BYTES, OLD_FRAMES, false);
	put_chain(first, depth, true);
	put(pt_regs + 128, 0x401000);
	put(pt_regs + 136, 0x33);
	put(pt_regs + 144, 0x202);
	put(pt_regs + 152, 0x7fff0000);
	put(pt_regs + 160, 0x2b);
	return first - sizeof(uint64_t);
}

/* ---- what is measured ---- */

static double elapsed_ns(const struct timespec *start)
{
	struct timespec end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - start->tv_sec) * 1e9 + (double)(end.tv_nsec - start->tv_nsec)) / TURNS;
}

static double walk_ns(const struct unwind_config *config, uint64_t rsp)
{
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct timespec start;
	enum unwind_end end;

	regs.rsp = rsp;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		unwind(config, &fake.guest, &regs, NULL, chain, &end);
		must(end == UNWIND_END_OF_STACK, "walk the chain");
	}
	return elapsed_ns(&start);
}

static double search_ns(const struct unwind_config *config, uint64_t rsp)
{
	const struct unwind_stacks stacks = {.task = STACK + STACK_BYTES};
	struct timespec start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		struct page_walk memory;

		regs.rsp = 0;
		page_walk_init(&memory, &fake.guest, regs.cr3, false);
		must(unwind_search(config, &stacks, &memory, &regs) == UNWIND_SEARCH_FOUND && regs.rsp == rsp,
		     "find the stack pointer");
	}
	return elapsed_ns(&start);
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static double median(double values[SLICES])
{
	qsort(values, SLICES, sizeof(values[0]), compare);
	return values[SLICES / 2];
}

static void bench(unsigned depth)
{
	double walk[SLICES], search[SLICES];

	kernel_open(depth);
	const struct unwind_config config = {
		.system = &linux_unwinding, .tables = orc, .sites = sites, .depth = UNWIND_DEPTH_MAX};
	const uint64_t rsp = stack_fill(depth);

	regs.rip = TEXT + FUNCTION_BYTES / 2;
	for (unsigned i = 0; i < SLICES; i++) {
		walk[i] = walk_ns(&config, rsp);
		search[i] = search_ns(&config, rsp);
	}
	double one = median(walk), other = median(search);

	printf("search %4u  %6.0f ns   walk from RSP %6.0f ns   ratio %4.1f   copied from RSP %5u bytes\n", depth,
	       other, one, other / one, (unsigned)(STACK + STACK_BYTES - rsp));
	kernel_close();
}

int main(void)
{
	const unsigned of_stack = GUEST_SAMPLE_SEARCHED_PAGES * 4096u;

	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true};
	for (unsigned i = 0; i < STACK_PAGES; i++)
		fake_map(&fake, regs.cr3, 4, STACK + i * 4096, STACK_GPA + i * 4096, 1);
	for (size_t i = 0; i < G_N_ELEMENTS(depths); i++)
		bench(depths[i]);
	printf("copied       %u bytes of a task's stack, as many of an interrupt's in use, %u of the entry's\n",
	       of_stack, PT_REGS_BYTES);
	return 0;
}
