// SPDX-License-Identifier: BSD-2-Clause
/* arm64: page tables of each granule, and chains by frame records over stacks and code made by hand. */
#include <check.h>
#include <linux/perf_event.h>

#include "fake_guest_memory.h"
#include "guest/page_walk.h"
#include "guest/processor.h"
#include "guest/unwind.h"
#include "lib/symbol/arm64/cfi_arm64.h"
#include "linux/os_linux.h"
#include "linux/task.h"
#include "linux/task_list.h"
#include "run_suite.h"

#define PAGE 3u
#define BLOCK 1u
#define READ_ONLY (UINT64_C(1) << 7)
#define NO_EXECUTE (UINT64_C(1) << 53)

#define KERNEL UINT64_C(0xffff800080000000)
#define USER UINT64_C(0x0000000000400000)
#define SIGNED UINT64_C(0x002b000000000000) /* bits that a signature may have; not 55, which chooses the half */

/* TCR_EL1: 48 bits in both halves, 4 KiB pages. */
#define TCR_4K (UINT64_C(16) | UINT64_C(16) << 16 | UINT64_C(2) << 30)

#define STP_FRAME 0xa9be7bfdu /* stp x29, x30, [sp, #-32]! */
#define LDP_FRAME 0xa8c27bfdu /* ldp x29, x30, [sp], #32 */
#define MOV_FRAME 0x910003fdu /* mov x29, sp */
#define RET 0xd65f03c0u
#define PACIASP 0xd503233fu
#define ADD 0x8b010000u
#define BLR 0xd63f0000u
#define LOOP 0x54ffffe1u /* b.ne, back */

static struct fake_guest fake;
static struct guest_regs regs;
static struct page_walk walk;
static struct page_leaf leaf;

/* Puts an entry for `gva` into the table of a level with `index` bits from `shift` on; returns where it is. */
static uint64_t entry_put(uint64_t table, uint64_t gva, unsigned shift, unsigned bits, uint64_t entry)
{
	uint64_t at = table + (gva >> shift & ((UINT64_C(1) << bits) - 1)) * 8;

	fake_write(&fake, at, entry);
	return at;
}

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.processor = GUEST_ARM64, .valid = true};
	regs.arm64.tables = (struct guest_tables_arm64){.ttbr0 = 0x10000, .ttbr1 = 0x20000, .tcr = TCR_4K, .mmu = true};
	regs.arm64.el = 1;
	/* The RAM, as one block of 2 MiB in each half. */
	entry_put(0x10000, USER, 39, 9, 0x11000 | PAGE);
	entry_put(0x11000, USER, 30, 9, 0x12000 | PAGE);
	entry_put(0x12000, USER, 21, 9, 0 | BLOCK);
	entry_put(0x20000, KERNEL, 39, 9, 0x21000 | PAGE);
	entry_put(0x21000, KERNEL, 30, 9, 0x22000 | PAGE);
	entry_put(0x22000, KERNEL, 21, 9, 0 | BLOCK);
}

static bool find(uint64_t gva)
{
	page_walk_init_regs(&walk, &fake.guest, &regs);
	return page_walk_leaf(&walk, (gva_t){gva}, &leaf);
}

static void expect_leaf(uint64_t gva, uint64_t gpa, uint64_t bytes)
{
	ck_assert(find(gva));
	ck_assert_uint_eq(page_leaf_gpa(&leaf, gva).value, gpa);
	ck_assert_uint_eq(leaf.page.bytes, bytes);
}

START_TEST(each_half_has_its_table)
{
	expect_leaf(USER + 0x1234, 0x1234, 2 << 20);
	expect_leaf(KERNEL + 0x4321, 0x4321, 2 << 20);
	ck_assert(!find(USER + (2 << 20)));
	ck_assert(!find(KERNEL + (2 << 20)));
	/* Neither the one half nor the other; and one that is turned off (EPD1). */
	ck_assert(!find(UINT64_C(0x0001000000400000)));
	ck_assert(!find(UINT64_C(0xfffe800080000000)));
	regs.arm64.tables.tcr |= UINT64_C(1) << 23;
	ck_assert(!find(KERNEL));
	ck_assert(find(USER));
}
END_TEST

START_TEST(pages_of_4_kib_and_blocks_of_1_gib)
{
	uint64_t page = entry_put(0x23000, KERNEL + 0x201000, 12, 9, 0x30000 | PAGE | READ_ONLY);

	entry_put(0x22000, KERNEL + 0x200000, 21, 9, 0x23000 | PAGE);
	expect_leaf(KERNEL + 0x201008, 0x30008, 4096);
	ck_assert(!leaf.writable);
	ck_assert(leaf.executable);
	fake_write(&fake, page, 0x30000 | PAGE | NO_EXECUTE);
	expect_leaf(KERNEL + 0x201008, 0x30008, 4096);
	ck_assert(leaf.writable);
	ck_assert(!leaf.executable);
	fake_write(&fake, page, 0x30000 | BLOCK); /* reserved at the last level */
	ck_assert(!find(KERNEL + 0x201008));
	entry_put(0x21000, KERNEL + 0x40000000, 30, 9, UINT64_C(0x80000000) | BLOCK);
	expect_leaf(KERNEL + 0x40001000, 0x80001000, UINT64_C(1) << 30);
	entry_put(0x20000, KERNEL, 39, 9, BLOCK); /* there are none of 512 GiB */
	ck_assert(!find(KERNEL));
}
END_TEST

/* 42 bits in two levels (TG1 3, T1SZ 22), 47 in four with a first one of a single bit (TG0 2, T0SZ 17). */
START_TEST(pages_of_64_and_of_16_kib)
{
	const uint64_t high = UINT64_C(0xfffffc0000000000);

	regs.arm64.tables.tcr = UINT64_C(17) | UINT64_C(2) << 14 | UINT64_C(22) << 16 | UINT64_C(3) << 30;
	entry_put(0x20000, high + (UINT64_C(5) << 29), 29, 13, 0x30000 | PAGE);
	entry_put(0x30000, UINT64_C(7) << 16, 16, 13, 0x40000 | PAGE);
	expect_leaf(high + (UINT64_C(5) << 29) + (UINT64_C(7) << 16) + 77, 0x40000 + 77, 64 << 10);
	entry_put(0x20000, high + (UINT64_C(6) << 29), 29, 13, UINT64_C(0x40000000) | BLOCK);
	expect_leaf(high + (UINT64_C(6) << 29) + 77, 0x40000000 + 77, 512 << 20);

	entry_put(0x10000, 0, 47, 1, 0x50000 | PAGE);
	entry_put(0x10000, 0, 36, 11, 0x50000 | PAGE);
	entry_put(0x50000, 0, 25, 11, 0x54000 | PAGE);
	entry_put(0x54000, UINT64_C(3) << 14, 14, 11, 0x58000 | PAGE);
	expect_leaf((UINT64_C(3) << 14) + 5, 0x58000 + 5, 16 << 10);
}
END_TEST

/* TCR_EL1.DS: five levels of 4 KiB pages, of which the first has four bits; blocks of 512 GiB. */
START_TEST(addresses_of_52_bits)
{
	const uint64_t high = UINT64_C(0xfff0000000000000), wide = UINT64_C(2) << 8; /* PA[51:50] */

	regs.arm64.tables.tcr = UINT64_C(12) | UINT64_C(12) << 16 | UINT64_C(2) << 30 | UINT64_C(1) << 59;
	entry_put(0x20000, KERNEL, 48, 4, 0x23000 | PAGE);
	entry_put(0x23000, KERNEL, 39, 9, 0x21000 | PAGE);
	expect_leaf(KERNEL + 0x4321, 0x4321, 2 << 20);
	entry_put(0x20000, high, 48, 4, 0x24000 | PAGE);
	entry_put(0x24000, high, 39, 9, wide | BLOCK);
	expect_leaf(high + 5, (UINT64_C(1) << 51) + 5, UINT64_C(1) << 39);
	regs.arm64.tables.tcr &= ~(UINT64_C(1) << 59);
	ck_assert(!find(high));
	/* 64 KiB: PA[51:48] are bits 15 to 12. */
	regs.arm64.tables.tcr = UINT64_C(12) << 16 | UINT64_C(3) << 30;
	entry_put(0x20000, high, 42, 10, 0x30000 | PAGE);
	entry_put(0x30000, high, 29, 13, UINT64_C(0x40000000) | UINT64_C(8) << 12 | BLOCK);
	expect_leaf(high + 7, (UINT64_C(1) << 51) + 0x40000007, 512 << 20);
}
END_TEST

START_TEST(without_translation_addresses_are_physical)
{
	regs.arm64.tables.mmu = false;
	expect_leaf(0x5432, 0x5432, 4096);
	page_walk_init_regs(&walk, &fake.guest, &regs);
	uint8_t byte;
	ck_assert(!page_walk_read(&walk, (gva_t){FAKE_RAM_BYTES}, &byte, 1));
}
END_TEST

/* Sizes that cannot be: 52 bits without TCR_EL1.DS, a granule that is none. */
START_TEST(tables_that_are_not_known_map_nothing)
{
	regs.arm64.tables.tcr = (TCR_4K & ~UINT64_C(63)) | 12;
	ck_assert(!find(USER));
	regs.arm64.tables.tcr = TCR_4K | UINT64_C(3) << 14;
	ck_assert(!find(USER));
	regs.arm64.tables.tcr = (TCR_4K & ~UINT64_C(63)) | 63;
	ck_assert(!find(USER));
	regs.arm64.tables.ttbr1 = FAKE_RAM_BYTES;
	regs.arm64.tables.tcr = TCR_4K;
	ck_assert(!find(KERNEL));
}
END_TEST

/* ---- tasks ---- */

#define OFFSETS (KERNEL + 0x40000)
#define AREA UINT64_C(0x50000) /* what TPIDR_EL1 adds to per-CPU addresses */
#define TASK (KERNEL + 0x60000)

static bool task_find(struct task *task)
{
	static const struct task_layout layout = {.offsets = OFFSETS,
	                                          .kernel_tables = KERNEL + 0x20000,
	                                          .current_task = KERNEL + 0x200,
	                                          .pid = 4,
	                                          .tgid = 0,
	                                          .comm = 0x20,
	                                          .start_time = 0x10,
	                                          .mm = 0x40};
	struct task_cpu cpu = {0};

	task_cpu_note(&cpu, &regs);
	return task_read(&layout, &cpu, &fake.guest, &regs, &walk, task);
}

START_TEST(the_task_is_the_one_of_the_next_entry)
{
	struct task task = {0};

	fake_write(&fake, 0x40008, AREA); /* of the second processor */
	fake_write(&fake, 0x50200, TASK);
	fake_write(&fake, 0x60000, UINT64_C(42) | UINT64_C(43) << 32);
	memcpy(fake.ram + 0x60020, "worker", 7);
	ck_assert(!task_find(&task));
	regs.arm64.tpidr = AREA;
	for (regs.arm64.el = 0; regs.arm64.el < 2; regs.arm64.el++) {
		ck_assert(task_find(&task));
		ck_assert_uint_eq(task.address, TASK);
		ck_assert_uint_eq(task.pid, 42);
		ck_assert_uint_eq(task.tid, 43);
		ck_assert_str_eq(task.comm, "worker");
	}
	/* With page table isolation: the kernel's tables are where its image is. */
	regs.arm64.tables.ttbr1 = 0x30000;
	ck_assert(!task_find(&task));
	fake.guest.start = (struct image_start){.gpa = 0, .gva = KERNEL, .bytes = 0x100000};
	ck_assert(task_find(&task));
	regs.arm64.tables.ttbr1 = 0x20000;
	regs.arm64.tpidr = AREA + 8; /* of no processor */
	ck_assert(!task_find(&task));
	regs.arm64.tpidr = AREA;
	fake_write(&fake, 0x50200, USER);
	ck_assert(!task_find(&task));
}
END_TEST

START_TEST(a_process_has_its_own_lower_half)
{
	static const struct task_layout layout = {.mm_pgd = 0x48};
	struct task task = {.mm = TASK};
	struct page_walk of_process;

	fake_write(&fake, 0x60048, KERNEL + 0x70000);
	entry_put(0x70000, USER, 39, 9, 0x71000 | PAGE);
	entry_put(0x71000, USER, 30, 9, 0x72000 | PAGE);
	entry_put(0x72000, USER + (2 << 20), 21, 9, 0 | BLOCK);
	page_walk_init_regs(&walk, &fake.guest, &regs);
	ck_assert(task_walk_open(&layout, &walk, &task, &of_process));
	ck_assert(!page_walk_leaf(&of_process, (gva_t){USER}, &leaf));
	ck_assert(page_walk_leaf(&of_process, (gva_t){USER + (2 << 20)}, &leaf));
	ck_assert(page_walk_leaf(&of_process, (gva_t){KERNEL}, &leaf));
	/* Tables that are not in the kernel's memory, and a kernel thread: it stays in the one it was in. */
	fake_write(&fake, 0x60048, USER);
	ck_assert(!task_walk_open(&layout, &walk, &task, &of_process));
	task.mm = 0;
	ck_assert(!task_walk_open(&layout, &walk, &task, &of_process));
	ck_assert(page_walk_leaf(&of_process, (gva_t){USER}, &leaf));
}
END_TEST

START_TEST(the_area_of_the_first_processor)
{
	static const struct task_layout layout = {.offsets = OFFSETS}, none = {0};

	fake_write(&fake, 0x40000, AREA);
	page_walk_init_regs(&walk, &fake.guest, &regs);
	ck_assert_uint_eq(task_first_area(&layout, &walk), AREA);
	ck_assert_uint_eq(task_first_area(&none, &walk), 0);
}
END_TEST

/* ---- chains ---- */

static void code_put(uint64_t gpa, const uint32_t *words, size_t n)
{
	memcpy(fake.ram + gpa, words, n * sizeof(*words));
}

static void record_put(uint64_t gpa, uint64_t fp, uint64_t lr)
{
	fake_write(&fake, gpa, fp);
	fake_write(&fake, gpa + 8, lr);
}

#define ENTRY_RECORD 0x130u

static void expect_chain(const uint64_t *words, unsigned n, enum unwind_end why)
{
	const struct unwind_config config = {
		.depth = UNWIND_DEPTH_DEFAULT, .user = true, .system = &linux_unwinding, .entry_record = ENTRY_RECORD};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert_uint_eq(unwind(&config, &fake.guest, &regs, NULL, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

START_TEST(records_lead_to_the_end)
{
	static const uint32_t body[] = {STP_FRAME, MOV_FRAME, ADD, BLR, ADD, LDP_FRAME, RET};
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x1008, KERNEL + 0x2000,
	                                KERNEL + 0x3000};

	code_put(0x1000, body, G_N_ELEMENTS(body));
	regs.arm64.pc = KERNEL + 0x1008;
	regs.arm64.fp = KERNEL + 0x8000;
	regs.arm64.lr = KERNEL + 0x1010; /* of a call that it has made */
	record_put(0x8000, KERNEL + 0x8040, KERNEL + 0x2000);
	record_put(0x8040, 0, (KERNEL + 0x3000) ^ SIGNED);
	expect_chain(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

/* At each instruction where X30 has the return address, the chain is the same. */
START_TEST(before_and_after_the_record_the_link_register_counts)
{
	static const uint32_t body[] = {PACIASP, STP_FRAME, MOV_FRAME, ADD, BLR, ADD, LDP_FRAME, ADD, RET};
	static const bool outside[] = {true, true, true, false, false, false, false, true, true};

	code_put(0x1000, body, G_N_ELEMENTS(body));
	for (size_t i = 0; i < G_N_ELEMENTS(body); i++) {
		const uint64_t pc = KERNEL + 0x1000 + 4 * i;
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, pc, KERNEL + 0x2000, KERNEL + 0x3000};

		regs.arm64.pc = pc;
		regs.arm64.fp = KERNEL + (outside[i] ? 0x8040 : 0x8000);
		regs.arm64.lr = outside[i] ? (KERNEL + 0x2000) ^ SIGNED : KERNEL + 0x1014;
		record_put(0x8000, KERNEL + 0x8040, KERNEL + 0x2000);
		record_put(0x8040, 0, KERNEL + 0x3000);
		expect_chain(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
	}
}
END_TEST

/* The middle of a long leaf, which has neither a record nor a return near; X30 follows the BL that has called it. */
START_TEST(a_leaf_is_known_by_the_call_of_it)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x1008, USER + 0x2004, USER + 0x3000};
	static const uint32_t leaf_body[] = {ADD, ADD, ADD, LOOP};
	const uint32_t call = 0x94000000 | ((0x1000 - 0x2000) / 4 & 0x3ffffff);

	code_put(0x1000, leaf_body, G_N_ELEMENTS(leaf_body));
	code_put(0x2000, &call, 1);
	regs.arm64.el = 0;
	regs.arm64.pc = USER + 0x1008;
	regs.arm64.lr = USER + 0x2004;
	regs.arm64.fp = USER + 0x8000;
	record_put(0x8000, 0, USER + 0x3000);
	expect_chain(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);

	/* With a record on the way, it is no leaf: X30 is of a call that it has made. */
	static const uint64_t without[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x1008, USER + 0x3000};
	static const uint32_t body[] = {STP_FRAME, MOV_FRAME, ADD, LOOP};
	code_put(0x1000, body, G_N_ELEMENTS(body));
	expect_chain(without, G_N_ELEMENTS(without), UNWIND_END_OF_STACK);
}
END_TEST

/* struct pt_regs with these registers and an empty record. */
static void pt_regs_put(uint64_t gpa, uint64_t fp, uint64_t lr, uint64_t pc, uint64_t pstate)
{
	fake_write(&fake, gpa + 29 * 8, fp);
	fake_write(&fake, gpa + 30 * 8, lr);
	fake_write(&fake, gpa + 32 * 8, pc);
	fake_write(&fake, gpa + 33 * 8, pstate);
	record_put(gpa + ENTRY_RECORD, 0, 0);
}

/* A system call, and from 6.13 on an interrupt in the kernel: the chain goes on with the registers saved there. */
START_TEST(entries_lead_to_what_was_interrupted)
{
	static const uint32_t svc[] = {ADD, RET};
	static const uint64_t user[] = {(uint64_t)PERF_CONTEXT_KERNEL,
	                                KERNEL + 0x1000,
	                                KERNEL + 0x3000,
	                                (uint64_t)PERF_CONTEXT_USER,
	                                USER + 0x2000,
	                                USER + 0x4000,
	                                USER + 0x5000};
	static const uint64_t kernel[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x1000, KERNEL + 0x3000,
	                                  (uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x2000, KERNEL + 0x4000};

	code_put(0x2000, svc, G_N_ELEMENTS(svc));
	regs.arm64.pc = KERNEL + 0x1000;
	regs.arm64.fp = KERNEL + 0x8000;
	record_put(0x8000, KERNEL + 0x9000 + ENTRY_RECORD, KERNEL + 0x3000);
	record_put(0xa000, 0, USER + 0x5000);
	pt_regs_put(0x9000, USER + 0xa000, USER + 0x4000, USER + 0x2000, 0x80000000);
	expect_chain(user, G_N_ELEMENTS(user), UNWIND_END_OF_STACK);
	pt_regs_put(0x9000, 0, KERNEL + 0x4000, KERNEL + 0x2000, 5);
	expect_chain(kernel, G_N_ELEMENTS(kernel), UNWIND_END_OF_STACK);
	/* 32-bit code, the other half, a thread of the kernel, registers that are not there. */
	pt_regs_put(0x9000, 0, 0, USER + 0x2000, 16);
	expect_chain(user, 3, UNWIND_END_OF_STACK);
	pt_regs_put(0x9000, 0, 0, KERNEL + 0x2000, 0);
	expect_chain(user, 3, UNWIND_END_OF_STACK);
	pt_regs_put(0x9000, 0, 0, 0, 5);
	expect_chain(user, 3, UNWIND_END_OF_STACK);
	record_put(0x8000, KERNEL + 0x100, KERNEL + 0x3000);
	record_put(0x100, 0, 0);
	expect_chain(user, 3, UNWIND_END_OF_STACK);
}
END_TEST

/* At USER + 0x1000, 0x1100, ... of a file's 0x1000, 0x1100, ... */
static const struct {
	char magic[4];
	uint32_t n_rows, n_cells, n_index;
	struct cfi_row rows[5];
	struct cfi_cell cells[10];
} block = {
	.magic = {'C', 'F', 'I', '1'},
	.n_rows = 5,
	.n_cells = 10,
	.rows = {{0x1000, 0}, {0x1100, 2}, {0x1200, 5}, {0x1300, 8}, {0x1400, CFI_NONE}},
	.cells =
		{
			/* A leaf: the return address is in X30. */
			[0] = {CFI_CFA, CFI_VALUE, CFI_ARM64_SP, 2, 0, 0},
			{CFI_ARM64_X30, CFI_VALUE, CFI_ARM64_X30, 0, 0, 0},
			/* Without a frame record: X29 is any register. */
			[2] = {CFI_CFA, CFI_VALUE, CFI_ARM64_SP, 3, 32, 0},
			{CFI_ARM64_X29, CFI_MEMORY, CFI_CFA, 0, -16, 0},
			{CFI_ARM64_X30, CFI_MEMORY, CFI_CFA, 0, -32, 0},
			/* With one, which does not lie at the end of the frame. */
			[5] = {CFI_CFA, CFI_VALUE, CFI_ARM64_X29, 3, 48, 0},
			{CFI_ARM64_X29, CFI_MEMORY, CFI_CFA, 0, -48, 0},
			{CFI_ARM64_X30, CFI_MEMORY, CFI_CFA, 0, -40, 0},
			/* _start. */
			[8] = {CFI_CFA, CFI_VALUE, CFI_ARM64_SP, 2, 0, 0},
			{CFI_ARM64_X30, CFI_UNDEFINED, 0, 0, 0, 0},
		},
};

static void expect_user_chain(const uint64_t *words, unsigned n, enum unwind_end why)
{
	static struct cfi_table table;
	static struct user_code code;
	const struct unwind_config config = {.depth = UNWIND_DEPTH_DEFAULT, .user = true, .code = &code};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert(cfi_table_open(&block, sizeof(block), &table));
	code = (struct user_code){.n = 1, .ranges = {{USER + 0x1000, USER + 0x1600, 0x1000, &table}}};
	ck_assert_uint_eq(unwind(&config, &fake.guest, &regs, NULL, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

/* A leaf, called by what has no record, called by what has one, called by _start. Return addresses are signed. */
START_TEST(call_frame_information_leads_through_user_space)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x1008, USER + 0x1110, USER + 0x1220,
	                                USER + 0x1330};

	regs.arm64.el = 0;
	regs.arm64.pc = USER + 0x1008;
	regs.arm64.sp = USER + 0x8000;
	regs.arm64.fp = 0x123; /* no record */
	regs.arm64.lr = SIGNED | (USER + 0x1110);
	fake_write(&fake, 0x8000, SIGNED | (USER + 0x1220));
	fake_write(&fake, 0x8010, USER + 0x8020); /* X29 of the next */
	record_put(0x8020, 0, USER + 0x1330);
	expect_user_chain(want, 5, UNWIND_END_OF_STACK);
}
END_TEST

/* The stack pointer behind a record is not known: the next record leads on. */
START_TEST(records_lead_where_there_is_no_information)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER + 0x1408, USER + 0x1110, USER + 0x1220,
	                                USER + 0x1330};

	regs.arm64.el = 0;
	regs.arm64.pc = USER + 0x1408;
	regs.arm64.sp = USER + 0x8000;
	regs.arm64.fp = USER + 0x8000;
	record_put(0x8000, USER + 0x8010, USER + 0x1110);
	record_put(0x8010, USER + 0x8020, USER + 0x1220);
	record_put(0x8020, 0, USER + 0x1330);
	expect_user_chain(want, 5, UNWIND_END_OF_STACK);
	regs.arm64.fp = 0x123;
	expect_user_chain(want, 2, UNWIND_NO_ENTRY);
}
END_TEST

START_TEST(bad_records_end_the_chain)
{
	const uint64_t one[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x1000};

	regs.arm64.pc = KERNEL + 0x1000;
	regs.arm64.fp = KERNEL + 0x8004;
	expect_chain(one, 2, UNWIND_BAD_FRAME);
	regs.arm64.fp = KERNEL + (UINT64_C(4) << 20);
	expect_chain(one, 2, UNWIND_UNREADABLE);
	regs.arm64.fp = KERNEL + 0x8000;
	record_put(0x8000, KERNEL + 0x8000, KERNEL + 0x2000);
	expect_chain(one, 2, UNWIND_BAD_FRAME);
	/* The entry of an exception: X29 and X30 are user space's. */
	regs.arm64.fp = USER + 0x8000;
	regs.arm64.lr = USER + 0x2000;
	expect_chain(one, 2, UNWIND_END_OF_STACK);
}
END_TEST

/* What cpu_switch_to has saved, with a return address that is signed; and where a task begins that has never run. */
START_TEST(a_task_that_does_not_run_goes_on_where_it_switched)
{
	static const struct task_list_layout layout = {.fork_return = KERNEL + 0x5000, .pc = 1};
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 0x1008, KERNEL + 0x2000};
	const struct unwind_config config = {.depth = UNWIND_DEPTH_DEFAULT};
	struct listed_task task = {
		.pc = (KERNEL + 0x1008) ^ SIGNED, .stack_pointer = KERNEL + 0x7ff0, .frame_pointer = KERNEL + 0x8000};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;
	struct frame frame;

	record_put(0x8000, 0, KERNEL + 0x2000);
	page_walk_init_regs(&walk, &fake.guest, &regs);
	ck_assert(listed_task_frame(&layout, &walk, &task, &frame));
	ck_assert(!frame.exact);
	/* The sample of it has the same chain. */
	const struct guest_regs of_frame = processor_of(GUEST_ARM64)->frames->registers(&frame, &walk);

	ck_assert_uint_eq(unwind_from(&config, &walk, &frame, chain, &end), G_N_ELEMENTS(want));
	ck_assert_mem_eq(chain, want, sizeof(want));
	ck_assert(!guest_regs_user(&of_frame));
	ck_assert_uint_eq(guest_regs_ip(&of_frame), KERNEL + 0x1008);
	ck_assert_uint_eq(unwind(&config, &fake.guest, &of_frame, NULL, chain, &end), G_N_ELEMENTS(want));
	ck_assert_mem_eq(chain, want, sizeof(want));
	task.pc = layout.fork_return;
	ck_assert(listed_task_frame(&layout, &walk, &task, &frame));
	ck_assert(frame.exact);
	task.pc = USER;
	ck_assert(!listed_task_frame(&layout, &walk, &task, &frame));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arm64");
	TCase *tcase = tcase_create("page tables");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, each_half_has_its_table);
	tcase_add_test(tcase, pages_of_4_kib_and_blocks_of_1_gib);
	tcase_add_test(tcase, pages_of_64_and_of_16_kib);
	tcase_add_test(tcase, addresses_of_52_bits);
	tcase_add_test(tcase, without_translation_addresses_are_physical);
	tcase_add_test(tcase, tables_that_are_not_known_map_nothing);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("tasks");
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, the_task_is_the_one_of_the_next_entry);
	tcase_add_test(tcase, a_process_has_its_own_lower_half);
	tcase_add_test(tcase, the_area_of_the_first_processor);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("chains");
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, records_lead_to_the_end);
	tcase_add_test(tcase, before_and_after_the_record_the_link_register_counts);
	tcase_add_test(tcase, a_leaf_is_known_by_the_call_of_it);
	tcase_add_test(tcase, entries_lead_to_what_was_interrupted);
	tcase_add_test(tcase, call_frame_information_leads_through_user_space);
	tcase_add_test(tcase, records_lead_where_there_is_no_information);
	tcase_add_test(tcase, bad_records_end_the_chain);
	tcase_add_test(tcase, a_task_that_does_not_run_goes_on_where_it_switched);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
