// SPDX-License-Identifier: BSD-2-Clause
/* ORC tables of every layout, and the chains they give over stacks made by hand. */
#include <check.h>
#include <linux/perf_event.h>

#include "elf_builder.h"
#include "fake_guest_memory.h"
#include "guest/unwind.h"
#include "linux/orc.h"
#include "linux/os_linux.h"
#include "linux/x86/orc_entry.h"
#include "run_suite.h"

#define TEXT UINT64_C(0xffffffff80000000) /* maps the fake guest's RAM, too */
#define TABLES UINT64_C(0xffffffff80100000)
#define USER UINT64_C(0x400000)
#define USER_IP (USER + 0x1234)

#define HASH_OF_NOTHING "da39a3ee5e6b4b0d3255bfef95601890afd80709"

/* The layouts, by the release of a kernel that has them: some say so in .orc_header, the others' entries tell. */
static const struct layout {
	const char *banner;
	const char *header; /* hexadecimal, or NULL */
	uint8_t regs[11];   /* by enum orc_reg */
	bool types_are_split;
	unsigned end_bit;
} layouts[] = {
	{"Linux version 6.1.0-1-amd64 (x@y)", NULL, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, false, 10},
	{"Linux version 6.3.0-1-amd64 (x@y)", NULL, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, false, 11},
	{"Linux version 6.3.10 (x@y)",
         "db84aed4103b31dd51e017f8f79783ca985c2c51",
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0},
         false,
         11},
	{"Linux version 6.12.0 (x@y)",
         "fe5d32bf581bd63b2ca9a5c65ba5a625eab3fe24",
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0},
         true,
         0},
	{"Linux version 7.1.0 (x@y)",
         "137c36ad7627c4dd55932176bb0ecdbd5041fc82",
         {0, 8, 2, 5, 4, 3, 6, 7, 10, 9, 1},
         true,
         0},
	{"Linux version 5.14.0-570.12.1.el9_6.x86_64 (x@y)", NULL, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, true, 0},
	{"Linux version 6.18.5-0-virt (x@y)", HASH_OF_NOTHING, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, true, 0},
	{"Linux version 7.3.1-0-virt (x@y)", HASH_OF_NOTHING, {0, 8, 2, 5, 4, 3, 6, 7, 10, 9, 1}, true, 0},
};

/* What the code at TEXT + at is, up to the next one. */
static const struct rule {
	uint32_t at;
	struct orc_entry entry;
} rules[] = {
	{0x100, {8, 0, ORC_REG_SP, ORC_REG_UNDEFINED, ORC_CALL}},          /* a leaf without a frame */
	{0x200, {0x20, -0x18, ORC_REG_SP, ORC_REG_PREV_SP, ORC_CALL}},     /* pushes rbp, has locals */
	{0x300, {16, -16, ORC_REG_BP, ORC_REG_PREV_SP, ORC_CALL}},         /* has a frame pointer */
	{0x400, {0, 0, ORC_REG_SP, ORC_REG_UNDEFINED, ORC_REGS}},          /* interrupt entry, registers saved */
	{0x500, {8, 0, ORC_REG_SP, ORC_REG_UNDEFINED, ORC_REGS_PARTIAL}},  /* interrupt entry, error code pushed */
	{0x600, {8, 0, ORC_REG_SP_INDIRECT, ORC_REG_UNDEFINED, ORC_CALL}}, /* on the IRQ stack, the old rsp on top */
	{0x700, {0, 0, ORC_REG_UNDEFINED, ORC_REG_UNDEFINED, ORC_END_OF_STACK}},
	{0x800, {0, 0, ORC_REG_R10, ORC_REG_UNDEFINED, ORC_CALL}},          /* a realigned stack */
	{0x900, {-8, 0, ORC_REG_BP_INDIRECT, ORC_REG_UNDEFINED, ORC_CALL}}, /* the same after its prologue */
	{0xa00, {0, 0, ORC_REG_UNDEFINED, ORC_REG_UNDEFINED, ORC_UNDEFINED}},
	{0xb00, {64, -16, ORC_REG_SP, ORC_REG_PREV_SP, ORC_CALL}}, /* __switch_to_asm */
	{0xc00, {0, 0, ORC_REG_UNDEFINED, ORC_REG_UNDEFINED, ORC_UNDEFINED}},
};

#define RETURN_AT 0x10 /* in each function: behind a CALL */

static struct fake_guest fake;
static struct guest_regs regs;
static struct unwind_tables *orc;
static struct module_table modules;
static const struct snapshot *snapshot; /* NULL: stacks are read from the guest */

static uint16_t flags_encode(const struct layout *layout, const struct orc_entry *entry)
{
	static const unsigned split[] = {0, 1, 2, 3, 4}, joined[] = {0, 0, 0, 1, 2};
	unsigned flags = layout->regs[entry->sp_reg] | (unsigned)layout->regs[entry->bp_reg] << 4;

	if (layout->types_are_split)
		return (uint16_t)(flags | split[entry->type] << 8);
	return (uint16_t)(flags | joined[entry->type] << 8 |
	                  (entry->type == ORC_END_OF_STACK ? 1u << layout->end_bit : 0));
}

static void entry_encode(const struct layout *layout, uint64_t at, const struct orc_entry *entry, GByteArray *ips,
                         GByteArray *entries)
{
	int32_t distance = (int32_t)(at - (TABLES + ips->len));
	uint16_t flags = flags_encode(layout, entry);

	g_byte_array_append(ips, (const uint8_t *)&distance, sizeof(distance));
	g_byte_array_append(entries, (const uint8_t *)&entry->sp_offset, 2);
	g_byte_array_append(entries, (const uint8_t *)&entry->bp_offset, 2);
	g_byte_array_append(entries, (const uint8_t *)&flags, 2);
}

static void tables_encode(const struct layout *layout, GByteArray *ips, GByteArray *entries)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++)
		entry_encode(layout, TEXT + rules[i].at, &rules[i].entry, ips, entries);
}

static void header_add(struct elf_builder *builder, const char *hex, uint8_t header[20])
{
	if (!hex)
		return;
	for (unsigned i = 0; i < 20; i++)
		header[i] = (uint8_t)(g_ascii_xdigit_value(hex[2 * i]) << 4 | g_ascii_xdigit_value(hex[2 * i + 1]));
	elf_builder_section(builder, (struct elf_section){".orc_header", SHT_PROGBITS, SHF_ALLOC, TABLES + 0x2000,
	                                                  0x302000, header, 20, 0});
}

static struct image *image_make(const char *banner, const char *header_hex, GByteArray *ips, GByteArray *entries)
{
	g_autoptr(GError) error = NULL;
	struct elf_builder builder;
	uint8_t header[20];

	elf_builder_init(&builder);
	builder.entry = 0x200000;
	elf_builder_section(&builder, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                   0x200000, banner, strlen(banner) + 1, 0});
	elf_builder_section(&builder, (struct elf_section){".orc_unwind_ip", SHT_PROGBITS, SHF_ALLOC, TABLES, 0x300000,
	                                                   ips->data, ips->len, 0});
	elf_builder_section(&builder, (struct elf_section){".orc_unwind", SHT_PROGBITS, SHF_ALLOC, TABLES + 0x1000,
	                                                   0x301000, entries->data, entries->len, 0});
	header_add(&builder, header_hex, header);

	GByteArray *file = elf_builder_finish(&builder);
	struct image *image = image_new("made.elf", g_byte_array_free_to_bytes(file), &error);

	ck_assert_msg(image != NULL, "%s", error ? error->message : "");
	elf_builder_deinit(&builder);
	return image;
}

static struct unwind_tables *orc_make(const struct layout *layout, GError **error)
{
	g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();

	tables_encode(layout, ips, entries);
	struct image *image = image_make(layout->banner, layout->header, ips, entries);
	struct unwind_tables *made = orc_load(image, error);

	image_free(image);
	return made;
}

static void setup(void)
{
	fake_guest_init(&fake);
	regs = (struct guest_regs){.cr3 = fake_table_new(&fake), .valid = true};
	fake_map(&fake, regs.cr3, 4, TEXT, 0, 2);
	fake_map(&fake, regs.cr3, 4, USER, 0, 2);
	for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++)
		fake.ram[rules[i].at + RETURN_AT - 5] = 0xe8;
	orc = orc_make(&layouts[0], NULL);
	ck_assert_ptr_nonnull(orc);
	memset(&modules, 0, sizeof(modules));
	snapshot = NULL;
}

static void teardown(void)
{
	orc_free(orc);
}

START_TEST(every_layout_gives_the_same_entries)
{
	g_autoptr(GError) error = NULL;
	struct unwind_tables *made = orc_make(&layouts[_i], &error);

	ck_assert_msg(made != NULL, "%s", error ? error->message : "");
	ck_assert_uint_eq(orc_entries(made), G_N_ELEMENTS(rules));
	for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
		const struct orc_entry *want = &rules[i].entry;
		const struct orc_entry *first = orc_find(made, TEXT + rules[i].at);

		ck_assert_int_eq(first->type, want->type);
		if (want->type == ORC_UNDEFINED || want->type == ORC_END_OF_STACK)
			continue;
		ck_assert_int_eq(first->sp_offset, want->sp_offset);
		ck_assert_int_eq(first->bp_offset, want->bp_offset);
		ck_assert_int_eq(first->sp_reg, want->sp_reg);
		ck_assert_int_eq(first->bp_reg, want->bp_reg);
		ck_assert_ptr_eq(orc_find(made, TEXT + rules[i].at + 0xff), first);
	}
	ck_assert_ptr_null(orc_find(made, TEXT + 0xff));
	ck_assert_ptr_null(orc_find(made, TEXT + 0xc01));
	ck_assert_ptr_null(orc_find(made, 0));
	ck_assert_ptr_null(orc_find(made, UINT64_MAX));
	orc_free(made);
}
END_TEST

/* Many entries to a block, none in some, several at one address: each address has the last that starts before it. */
START_TEST(look_ups_agree_with_a_linear_search)
{
	static const uint32_t places[] = {0x10,  0x11,  0x40,  0x40,  0x41,  0x10f, 0x110, 0x111, 0x20f,
	                                  0x210, 0x6ff, 0x700, 0x7ff, 0x80f, 0xb10, 0xc80, 0xc80};
	const size_t n = G_N_ELEMENTS(places);
	g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();

	for (unsigned i = 0; i < n; i++) {
		const struct orc_entry entry = {(int16_t)i, 0, ORC_REG_SP, ORC_REG_UNDEFINED, ORC_CALL};

		entry_encode(&layouts[0], TEXT + places[i], &entry, ips, entries);
	}
	struct image *image = image_make(layouts[0].banner, NULL, ips, entries);
	struct unwind_tables *made = orc_load(image, NULL);

	image_free(image);
	ck_assert_ptr_nonnull(made);
	ck_assert_ptr_null(orc_find(made, TEXT + places[0] - 1));
	ck_assert_ptr_null(orc_find(made, TEXT + places[n - 1] + 1));
	for (uint32_t at = places[0], last = 0; at <= places[n - 1]; at++) {
		while (last + 1 < n && places[last + 1] <= at)
			last++;
		ck_assert_int_eq(orc_find(made, TEXT + at)->sp_offset, (int)last);
	}
	orc_free(made);
}
END_TEST

static void expect(const uint64_t *words, unsigned n, enum unwind_end why)
{
	const struct unwind_config config = {.system = &linux_unwinding,
	                                     .tables = orc,
	                                     .modules = &modules,
	                                     .depth = UNWIND_DEPTH_DEFAULT,
	                                     .user = true};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert_uint_eq(unwind(&config, &fake.guest, &regs, snapshot, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

#define MODULE UINT64_C(0xffffffffc0000000)
#define MODULE_TABLES UINT64_C(0x6000) /* in the fake guest's RAM */

/* Two functions at MODULE + 0x100 and 0x200, by rules 0 and 2: a leaf, and one with a frame pointer. */
static void module_make(void)
{
	static const unsigned of[] = {0, 2};

	modules.n = modules.n_ranges = 1;
	modules.ranges[0] = (struct module_range){.start = MODULE, .bytes = 0x300};
	modules.modules[0] =
		(struct module){.unwind_at = {TEXT + MODULE_TABLES, TEXT + MODULE_TABLES + 0x100}, .unwind_n = 2};
	for (unsigned i = 0; i < G_N_ELEMENTS(of); i++) {
		const struct orc_entry *entry = &rules[of[i]].entry;
		int32_t distance = (int32_t)(MODULE + 0x100 * (i + 1) - (TEXT + MODULE_TABLES + 4 * i));
		uint16_t flags = flags_encode(&layouts[0], entry);
		uint8_t *at = fake.ram + MODULE_TABLES + 0x100 + (size_t)i * ORC_ENTRY_BYTES;

		memcpy(fake.ram + MODULE_TABLES + (size_t)4 * i, &distance, sizeof(distance));
		memcpy(at, &entry->sp_offset, 2);
		memcpy(at + 2, &entry->bp_offset, 2);
		memcpy(at + 4, &flags, 2);
	}
}

/* A leaf of the module, called by a function of the module, called by the kernel. */
START_TEST(chains_go_through_modules)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, MODULE + 0x110, MODULE + 0x210, TEXT + 0x710};

	module_make();
	regs.rip = MODULE + 0x110;
	regs.rsp = TEXT + 0x2000;
	regs.rbp = TEXT + 0x2100;
	fake_write(&fake, 0x2000, MODULE + 0x210);
	fake_write(&fake, 0x2100, 0xbeef);
	fake_write(&fake, 0x2108, TEXT + 0x710);
	expect(want, 4, UNWIND_END_OF_STACK);

	/* The guest has gone on: the stack is in the snapshot alone, and the module's table is where it was. */
	struct snapshot stack = {0};
	uint8_t bytes[0x200];

	memcpy(bytes, fake.ram + 0x2000, sizeof(bytes));
	memset(fake.ram + 0x2000, 0, sizeof(bytes));
	ck_assert(snapshot_add(&stack, (gva_t){TEXT + 0x2000}, bytes, sizeof(bytes)));
	snapshot = &stack;
	expect(want, 4, UNWIND_END_OF_STACK);
}
END_TEST

/* Generated code: by its frame pointer, if that leads to code that is known. */
START_TEST(code_without_entries_may_have_frame_pointers)
{
	static const uint64_t generated = UINT64_C(0xffffffffc1000000);
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, generated, TEXT + 0x310, TEXT + 0x710};

	regs.rip = generated;
	regs.rsp = TEXT + 0x2000;
	regs.rbp = TEXT + 0x2100;
	fake_write(&fake, 0x2100, TEXT + 0x2200);
	fake_write(&fake, 0x2108, TEXT + 0x310);
	fake_write(&fake, 0x2200, 0xbeef);
	fake_write(&fake, 0x2208, TEXT + 0x710);
	expect(want, 4, UNWIND_END_OF_STACK);
	fake_write(&fake, 0x2108, generated + 8);
	expect(want, 2, UNWIND_NO_ENTRY);
	regs.rbp = 0xdead;
	expect(want, 2, UNWIND_NO_ENTRY);
}
END_TEST

START_TEST(code_that_a_modules_table_does_not_cover_ends_a_chain)
{
	static const uint64_t addresses[] = {MODULE, MODULE + 0xff, MODULE + 0x300, MODULE - 1};
	struct module_table *table = &modules;

	module_make();
	for (unsigned i = 0; i < G_N_ELEMENTS(addresses); i++) {
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, addresses[i]};

		regs.rip = addresses[i];
		expect(want, 2, UNWIND_NO_ENTRY);
	}
	/* A table that is said to be where nothing is, or to be of any size. */
	const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, MODULE + 0x110};

	regs.rip = MODULE + 0x110;
	table->modules[0].unwind_n = 1u << 22;
	expect(want, 2, UNWIND_NO_ENTRY);
	table->modules[0].unwind_n = 2;
	table->modules[0].unwind_at[0] = 0xffffff0000000000;
	expect(want, 2, UNWIND_NO_ENTRY);
	table->modules[0].unwind_at[0] = 0x1000;
	expect(want, 2, UNWIND_NO_ENTRY);
}
END_TEST

START_TEST(calls_by_stack_and_frame_pointer)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x210, TEXT + 0x310,
	                                TEXT + 0x710};

	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	regs.rbp = 0xdead;
	fake_write(&fake, 0x2000, TEXT + 0x210);         /* the leaf's return address */
	fake_write(&fake, 0x2020, TEXT + 0x310);         /* 0x200: 0x20 bytes up ... */
	fake_write(&fake, 0x2028 - 0x18, TEXT + 0x2100); /* ... and its caller's rbp */
	fake_write(&fake, 0x2100, 0xbeef);
	fake_write(&fake, 0x2108, TEXT + 0x710);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

START_TEST(a_call_at_the_end_of_a_function_belongs_to_it)
{
	/* The return address is 0x300, the first byte of the next function. */
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x300, TEXT + 0x710};

	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake.ram[0x300 - 5] = 0xe8;
	fake_write(&fake, 0x2000, TEXT + 0x300);
	fake_write(&fake, 0x2020, TEXT + 0x710);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

/* As a new task returns to ret_from_fork. */
START_TEST(a_function_that_is_not_behind_a_call_has_not_begun)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, (uint64_t)PERF_CONTEXT_KERNEL,
	                                TEXT + 0x700};

	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, TEXT + 0x700);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

static void user_registers_write(uint64_t at)
{
	fake_write(&fake, at + 16 * 8, USER_IP);
	fake_write(&fake, at + 17 * 8, 0x33);
}

/*
 * In the function that error_entry ends with (sync_regs), and back in the code that called it. User space has 0 for a
 * frame pointer and no frames.
 */
START_TEST(behind_error_entry_all_registers_are_saved)
{
	const uint64_t inside[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x510,
	                           (uint64_t)PERF_CONTEXT_USER, USER_IP};
	const uint64_t back[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x510, (uint64_t)PERF_CONTEXT_USER, USER_IP};

	memcpy(fake.ram + 0x510, "\x48\x89\xc4", 3); /* MOV %rax,%rsp */
	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, TEXT + 0x510);
	user_registers_write(0x2008);
	expect(inside, G_N_ELEMENTS(inside), UNWIND_BAD_FRAME);
	regs.rip = TEXT + 0x510;
	regs.rsp = TEXT + 0x2008;
	expect(back, G_N_ELEMENTS(back), UNWIND_BAD_FRAME);
	fake.ram[0x512] = 0xc3; /* MOV %rax,%rbx */
	expect(back, 2, UNWIND_BAD_FRAME);
	fake.ram[0x512] = 0xc4;

	/* At the begin of error_entry, there is only what the processor has pushed, behind an error code. */
	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	memcpy(fake.ram + 0x50c, "\xfc\xfb\xff\xff", 4); /* CALL TEXT + 0x10c */
	fake_write(&fake, 0x2010, USER_IP);
	fake_write(&fake, 0x2018, 0x33);
	user_registers_write(0x2400);
	expect(inside, G_N_ELEMENTS(inside), UNWIND_BAD_FRAME);
}
END_TEST

/* .altinstr_aux: TESTB by RIP and by SIB, JNE, JMP; each of the three may be next. The JMP alone tells where the JNE
 * goes. */
static const struct feature_test {
	uint8_t code[19];
	unsigned at[3];
} feature_tests[] = {
	{{0xf6, 5, 1, 2, 3, 4, 0x40, 0x0f, 0x85, 0xf3, 0xf6, 0xff, 0xff, 0xe9, 0xee, 0xf6, 0xff, 0xff}, {0, 7, 13}},
	{{0xf6, 4, 0x25, 1, 2, 3, 4, 0x40, 0x0f, 0x85, 0xf2, 0xf6, 0xff, 0xff, 0xe9, 0xed, 0xf6, 0xff, 0xff},
         {0, 8, 14}},
};

START_TEST(tests_of_features_belong_to_the_function_that_they_go_back_to)
{
	const struct feature_test *test = &feature_tests[_i];

	memcpy(fake.ram + 0xa00, test->code, sizeof(test->code));
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, TEXT + 0x710);
	for (unsigned i = 0; i < G_N_ELEMENTS(test->at); i++) {
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0xa00 + test->at[i], TEXT + 0x710};

		regs.rip = want[1];
		expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
		fake.ram[0xa00 + test->at[1]] ^= 1; /* neither JNE nor JMP */
		fake.ram[0xa00 + test->at[2]] ^= 1;
		expect(want, 2, UNWIND_NO_ENTRY);
		fake.ram[0xa00 + test->at[1]] ^= 1;
		fake.ram[0xa00 + test->at[2]] ^= 1;
	}
	/* To where no function is. */
	memset(fake.ram + 0xa00 + test->at[2] + 1, 0, 4);
	const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0xa00 + test->at[2]};

	regs.rip = want[1];
	expect(want, 2, UNWIND_NO_ENTRY);
}
END_TEST

/* Before, between and behind the calls that fill the return stack buffer, and where none of them is near. */
START_TEST(calls_that_fill_the_return_stack_buffer)
{
	static const uint8_t filling[] = {0x49, 0xc7, 0xc4, 0x10, 0, 0, 0, 0xe8, 1,    0,   0,
	                                  0,    0xcc, 0xe8, 1,    0, 0, 0, 0xcc, 0x48, 0x83};
	static const struct {
		uint64_t at;
		unsigned pushed;
	} places[] = {{7, 0}, {13, 1}, {19, 2}, {0, 1}, {23, 1}};

	memcpy(fake.ram + 0xb00, filling, sizeof(filling));
	for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0xb00 + places[i].at, TEXT + 0x710};
		uint64_t caller = 0x2000 + 48 + 8 * (uint64_t)places[i].pushed;

		regs.rip = want[1];
		regs.rsp = TEXT + 0x2000;
		fake_write(&fake, caller, TEXT + 0x710);
		expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
		fake_write(&fake, caller, 0);
		expect(want, 2, UNWIND_BAD_FRAME);
	}
}
END_TEST

/* Until Linux has mapped itself, its callers are at physical addresses. */
START_TEST(callers_at_physical_addresses)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x210, TEXT + 0x710};

	fake.guest.start = (struct image_start){.gpa = 0x1000000, .gva = TEXT, .bytes = 0x1000};
	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, 0x1000210);
	fake_write(&fake, 0x2028 - 8, 0x1000710);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

/* struct pt_regs: rbp is word 4, ip word 16, cs 17, sp 19. */
START_TEST(through_an_interrupt_out_of_user_space)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x410,
	                                (uint64_t)PERF_CONTEXT_USER,   USER_IP,      USER_IP + 1};

	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, TEXT + 0x410);
	fake_write(&fake, 0x2008 + 4 * 8, TEXT + 0x3000); /* user space's rbp, readable here for simplicity */
	fake_write(&fake, 0x2008 + 16 * 8, USER_IP);
	fake_write(&fake, 0x2008 + 17 * 8, 0x33);
	fake_write(&fake, 0x3000, 0);
	fake_write(&fake, 0x3008, USER_IP + 1);
	expect(want, G_N_ELEMENTS(want), UNWIND_BAD_FRAME); /* by a frame pointer of 0, in code that has none */

	/* Without user space, the kernel's part is whole. */
	const struct unwind_config kernel_only = {
		.system = &linux_unwinding, .tables = orc, .depth = UNWIND_DEPTH_DEFAULT};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert_uint_eq(unwind(&kernel_only, &fake.guest, &regs, NULL, chain, &end), 3);
	ck_assert_int_eq(end, UNWIND_END_OF_STACK);
}
END_TEST

START_TEST(an_interrupted_instruction_is_looked_up_as_it_is)
{
	/* Interrupted at 0x200, the first byte of a function: its own entry counts, not that of the code before it. */
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x510, (uint64_t)PERF_CONTEXT_KERNEL,
	                                TEXT + 0x200, TEXT + 0x710};

	regs.rip = TEXT + 0x510;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2008, TEXT + 0x200); /* the hardware's frame behind an error code */
	fake_write(&fake, 0x2010, 0x10);
	fake_write(&fake, 0x2020, TEXT + 0x2200);
	fake_write(&fake, 0x2218, TEXT + 0x710);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

START_TEST(stack_switches_and_realigned_stacks)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x610, TEXT + 0x910, TEXT + 0x710};

	regs.rip = TEXT + 0x610;
	regs.rsp = TEXT + 0x2000;
	regs.rbp = TEXT + 0x2400;
	fake_write(&fake, 0x2000, TEXT + 0x2500); /* the stack before the switch */
	fake_write(&fake, 0x2500, TEXT + 0x910);
	fake_write(&fake, 0x2400 - 8, TEXT + 0x2600);
	fake_write(&fake, 0x2600 - 8, TEXT + 0x710);
	expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
}
END_TEST

START_TEST(a_rule_on_a_scratch_register_needs_an_interrupted_frame)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x810, TEXT + 0x810};

	regs.rip = TEXT + 0x810;
	regs.rsp = TEXT + 0x2000;
	regs.r10 = TEXT + 0x2300;
	fake_write(&fake, 0x2300 - 8, TEXT + 0x810);
	expect(want, G_N_ELEMENTS(want), UNWIND_BAD_FRAME);
}
END_TEST

START_TEST(ends_are_told_apart)
{
	static const uint64_t undefined[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0xa00};
	static const uint64_t outside[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x50};
	static const uint64_t unmapped[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110};
	static const uint64_t no_address[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x210};

	regs.rip = undefined[1];
	expect(undefined, 2, UNWIND_NO_ENTRY);
	regs.rip = outside[1];
	expect(outside, 2, UNWIND_NO_ENTRY);
	regs.rip = unmapped[1];
	regs.rsp = 0x10000000;
	expect(unmapped, 2, UNWIND_UNREADABLE);
	regs.rip = no_address[1];
	regs.rsp = TEXT + 0x6000;
	expect(no_address, 2, UNWIND_BAD_FRAME);
}
END_TEST

/* As in Debian's 6.1 and 6.12: the code of a retpoline up to its RET, and where its MOV is. */
static const struct retpoline {
	uint64_t at; /* in code that ends a chain: by rule 0x700 or 0xa00 */
	uint8_t mov;
	uint8_t code[17];
	enum unwind_end cut;
} retpolines[] = {
	{0x720,
         12,
         {0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x89, 0x04, 0x24, 0xe9},
         UNWIND_END_OF_STACK},
	{0xa00, 6, {0xe8, 1, 0, 0, 0, 0xcc, 0x4c, 0x89, 0x3c, 0x24, 0xe9}, UNWIND_NO_ENTRY},
};

/* At the CALL (mov false) or the MOV of a retpoline, called by the function at 0x300. */
static void retpoline_make(const struct retpoline *retpoline, bool mov)
{
	memcpy(fake.ram + retpoline->at, retpoline->code, sizeof(retpoline->code));
	regs.rip = TEXT + retpoline->at + (mov ? retpoline->mov : 0);
	regs.rsp = TEXT + 0x2000 - (mov ? 8 : 0);
	regs.rbp = TEXT + 0x2100;
	fake_write(&fake, 0x1ff8, TEXT + retpoline->at + 5);
	fake_write(&fake, 0x2000, TEXT + 0x310);
	fake_write(&fake, 0x2100, 0xbeef);
	fake_write(&fake, 0x2108, TEXT + 0x710);
}

START_TEST(through_retpolines)
{
	for (unsigned mov = 0; mov < 2; mov++) {
		retpoline_make(&retpolines[_i], mov);
		const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, regs.rip, TEXT + 0x310, TEXT + 0x710};

		expect(want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
	}
}
END_TEST

/* With a RET, and with the CALL of a return thunk before INT3 and UD2; behind a CALL, the address is a caller's. */
START_TEST(the_return_of_a_retpoline_goes_to_a_function)
{
	static const uint8_t returns[][7] = {{0xc3}, {0xe8, 0, 0, 0, 0, 0xcc}, {0xe8, 0, 0, 0, 0, 0x0f, 0x0b}};
	const uint64_t function[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, (uint64_t)PERF_CONTEXT_KERNEL,
	                             TEXT + 0x158, TEXT + 0x710};
	const uint64_t caller[] = {(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x110, TEXT + 0x158, TEXT + 0x710};

	regs.rip = TEXT + 0x110;
	regs.rsp = TEXT + 0x2000;
	fake_write(&fake, 0x2000, TEXT + 0x158);
	fake_write(&fake, 0x2008, TEXT + 0x710);
	expect(caller, G_N_ELEMENTS(caller), UNWIND_END_OF_STACK);
	memcpy(fake.ram + 0x110, returns[_i], sizeof(returns[_i]));
	expect(function, G_N_ELEMENTS(function), UNWIND_END_OF_STACK);
	fake.ram[0x158 - 5] = 0xe8;
	expect(caller, G_N_ELEMENTS(caller), UNWIND_END_OF_STACK);
	memcpy(fake.ram + 0x158 - 5, "\0\0\0\xff\xd0", 5); /* CALL *%rax */
	expect(caller, G_N_ELEMENTS(caller), UNWIND_END_OF_STACK);
}
END_TEST

static void expect_cut(enum unwind_end cut)
{
	const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, regs.rip};

	regs.rbp = 0xdead;
	expect(want, G_N_ELEMENTS(want), cut);
}

START_TEST(what_is_no_retpoline_ends_a_chain)
{
	const struct retpoline *retpoline = &retpolines[_i];

	retpoline_make(retpoline, false);
	fake.ram[retpoline->at + 1]++; /* a CALL of something else */
	expect_cut(retpoline->cut);
	retpoline_make(retpoline, false);
	fake.ram[retpoline->at + 2] = 1;
	expect_cut(retpoline->cut);
	retpoline_make(retpoline, false);
	fake_write(&fake, 0x2000, TEXT + 0x50); /* a caller that no entry covers */
	expect_cut(retpoline->cut);
	retpoline_make(retpoline, true);
	fake_write(&fake, 0x1ff8, TEXT + retpoline->at + retpoline->mov); /* no CALL of a retpoline pushed that */
	expect_cut(retpoline->cut);
	retpoline_make(retpoline, true);
	fake_write(&fake, 0x1ff8, TEXT + retpoline->at + retpoline->mov - 8);
	expect_cut(retpoline->cut);
	retpoline_make(retpoline, true);
	fake.ram[retpoline->at + retpoline->mov + 3] = 0x25; /* a MOV to elsewhere */
	expect_cut(retpoline->cut);
}
END_TEST

/* Changes the tables of a right image and expects `code` from orc_load. */
static void expect_refused(void (*change)(GByteArray *ips, GByteArray *entries), const char *header, int code)
{
	g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();
	g_autoptr(GError) error = NULL;

	tables_encode(&layouts[0], ips, entries);
	if (change)
		change(ips, entries);
	struct image *image = image_make(layouts[0].banner, header, ips, entries);

	ck_assert_ptr_null(orc_load(image, &error));
	ck_assert_msg(g_error_matches(error, UNWIND_ERROR, code), "%s", error->message);
	image_free(image);
}

static void swap_first_two(GByteArray *ips, GByteArray *entries)
{
	int32_t *distances = (int32_t *)(void *)ips->data;

	(void)entries;
	distances[0] += 0x180;
}

static void drop_an_entry(GByteArray *ips, GByteArray *entries)
{
	(void)ips;
	g_byte_array_set_size(entries, entries->len - 6);
}

/* Every function would begin without a return address. */
static void move_all(GByteArray *ips, GByteArray *entries)
{
	(void)ips;
	for (guint i = 0; i < entries->len; i += 6)
		entries->data[i] += 8;
}

static void cut_an_address(GByteArray *ips, GByteArray *entries)
{
	(void)entries;
	g_byte_array_set_size(ips, ips->len - 1);
}

START_TEST(tables_that_contradict_themselves_are_refused)
{
	expect_refused(swap_first_two, NULL, UNWIND_ERROR_CORRUPT);
	expect_refused(drop_an_entry, NULL, UNWIND_ERROR_CORRUPT);
	expect_refused(cut_an_address, NULL, UNWIND_ERROR_CORRUPT);
	expect_refused(move_all, NULL, UNWIND_ERROR_VERSION);
	expect_refused(move_all, HASH_OF_NOTHING, UNWIND_ERROR_VERSION);
	expect_refused(NULL, "0000000000000000000000000000000000000000", UNWIND_ERROR_VERSION);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ORC");
	TCase *tcase = tcase_create("ORC");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_layout_gives_the_same_entries, 0, G_N_ELEMENTS(layouts));
	tcase_add_test(tcase, look_ups_agree_with_a_linear_search);
	tcase_add_test(tcase, chains_go_through_modules);
	tcase_add_test(tcase, code_without_entries_may_have_frame_pointers);
	tcase_add_test(tcase, code_that_a_modules_table_does_not_cover_ends_a_chain);
	tcase_add_test(tcase, calls_by_stack_and_frame_pointer);
	tcase_add_test(tcase, a_call_at_the_end_of_a_function_belongs_to_it);
	tcase_add_test(tcase, a_function_that_is_not_behind_a_call_has_not_begun);
	tcase_add_test(tcase, behind_error_entry_all_registers_are_saved);
	tcase_add_loop_test(tcase, tests_of_features_belong_to_the_function_that_they_go_back_to, 0,
	                    G_N_ELEMENTS(feature_tests));
	tcase_add_test(tcase, calls_that_fill_the_return_stack_buffer);
	tcase_add_test(tcase, callers_at_physical_addresses);
	tcase_add_test(tcase, through_an_interrupt_out_of_user_space);
	tcase_add_test(tcase, an_interrupted_instruction_is_looked_up_as_it_is);
	tcase_add_test(tcase, stack_switches_and_realigned_stacks);
	tcase_add_test(tcase, a_rule_on_a_scratch_register_needs_an_interrupted_frame);
	tcase_add_test(tcase, ends_are_told_apart);
	tcase_add_loop_test(tcase, through_retpolines, 0, G_N_ELEMENTS(retpolines));
	tcase_add_loop_test(tcase, the_return_of_a_retpoline_goes_to_a_function, 0, 3);
	tcase_add_loop_test(tcase, what_is_no_retpoline_ends_a_chain, 0, G_N_ELEMENTS(retpolines));
	tcase_add_test(tcase, tables_that_contradict_themselves_are_refused);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
