// SPDX-License-Identifier: BSD-2-Clause
/* Static probes of programs: the notes of a file, and the operands that they have. */
#include <check.h>

#include "elf_builder.h"
#include "guest/operand.h"
#include "lib/parser/table.h"
#include "lib/symbol/usdt.h"
#include "run_suite.h"

#define TEXT UINT64_C(0x401000)
#define BASE UINT64_C(0x402000)
#define MOVED UINT64_C(0x10000) /* by prelink(8), since the notes were made */

/* ---- notes ---- */

static GByteArray *notes;

static void setup(void)
{
	notes = g_byte_array_new();
}

static void teardown(void)
{
	g_byte_array_unref(notes);
}

static void add_note(uint64_t address, uint64_t semaphore, const char *texts, uint32_t text_bytes)
{
	const uint64_t addresses[] = {address, BASE - MOVED, semaphore};
	g_autoptr(GByteArray) description = g_byte_array_new();

	g_byte_array_append(description, (const uint8_t *)addresses, sizeof(addresses));
	g_byte_array_append(description, (const uint8_t *)texts, text_bytes);
	elf_builder_note(notes, "stapsdt", 3, description->data, description->len);
}
#define ADD(address, semaphore, texts) add_note(address, semaphore, texts, sizeof(texts))

static struct usdt_notes *load(void)
{
	static const uint8_t code[64] = {0x90}, base[1];
	struct elf_builder builder;

	elf_builder_init(&builder);
	elf_builder_section(&builder, (struct elf_section){.name = ".text",
	                                                   .type = SHT_PROGBITS,
	                                                   .flags = SHF_ALLOC | SHF_EXECINSTR,
	                                                   .gva = TEXT,
	                                                   .gpa = TEXT,
	                                                   .data = code,
	                                                   .n = sizeof(code)});
	elf_builder_section(&builder, (struct elf_section){.name = ".stapsdt.base",
	                                                   .type = SHT_PROGBITS,
	                                                   .flags = SHF_ALLOC,
	                                                   .gva = BASE,
	                                                   .gpa = BASE,
	                                                   .data = base,
	                                                   .n = sizeof(base)});
	if (notes->len > 0)
		elf_builder_section(&builder, (struct elf_section){.name = ".note.stapsdt",
		                                                   .type = SHT_NOTE,
		                                                   .data = notes->data,
		                                                   .n = notes->len});
	g_autoptr(GError) error = NULL;
	g_autoptr(GBytes) file = g_byte_array_free_to_bytes(elf_builder_finish(&builder));
	struct image *image = image_new_program("test", file, &error);
	struct usdt_notes *loaded = image ? usdt_notes_load(image, &error) : NULL;

	ck_assert_msg(loaded != NULL, "%s", error ? error->message : "");
	image_free(image);
	elf_builder_deinit(&builder);
	return loaded;
}

START_TEST(notes_of_a_file)
{
	ADD(TEXT - MOVED, 0, "pool\0take\0-4@%edi 8@-16(%rbp)");
	elf_builder_note(notes, "GNU", 3, "other", 5);
	ADD(TEXT + 8 - MOVED, 0x404000, "pool\0give\0");
	ADD(TEXT + 16 - MOVED, 0, "pool\0take\0");
	struct usdt_notes *all = load();

	ck_assert_uint_eq(all->n, 3);
	ck_assert_str_eq(all->all[0].provider, "pool");
	ck_assert_str_eq(all->all[0].name, "take");
	ck_assert_str_eq(all->all[0].operands, "-4@%edi 8@-16(%rbp)");
	ck_assert_uint_eq(all->all[0].address, TEXT);
	ck_assert(!all->all[0].has_semaphore);
	ck_assert_str_eq(all->all[1].name, "give");
	ck_assert_str_eq(all->all[1].operands, "");
	ck_assert(all->all[1].has_semaphore);
	ck_assert_uint_eq(all->all[2].address, TEXT + 16);
	usdt_notes_free(all);
}
END_TEST

START_TEST(a_file_without_notes)
{
	struct usdt_notes *none = load();

	ck_assert_uint_eq(none->n, 0);
	usdt_notes_free(none);
	usdt_notes_free(NULL);
}
END_TEST

/* Texts without an end, and too few of them; what follows a note that leaves the section cannot be found. */
START_TEST(notes_that_end_too_early)
{
	add_note(TEXT - MOVED, 0, "pool\0take\0-4@%edi", 17);
	add_note(TEXT - MOVED, 0, "pool", 5);
	elf_builder_note(notes, "stapsdt", 3, "short", 5);
	ADD(TEXT - MOVED, 0, "pool\0good\0");
	const guint at = notes->len;
	ADD(TEXT - MOVED, 0, "pool\0long\0");
	((Elf64_Nhdr *)(void *)(notes->data + at))->n_descsz = UINT32_MAX;
	struct usdt_notes *all = load();

	ck_assert_uint_eq(all->n, 1);
	ck_assert_str_eq(all->all[0].name, "good");
	usdt_notes_free(all);
}
END_TEST

START_TEST(an_answer_that_contradicts_itself)
{
	static const char text[] = "pool";
	const struct vprof_parse_note sound = {.address = TEXT}, outside = {.operands = sizeof(text)};

	for (unsigned i = 0; i < 3; i++) {
		GByteArray *tables = g_byte_array_new();

		if (i < 2)
			table_add(tables, VPROF_PARSE_TABLE_TEXT, 1, text, sizeof(text));
		table_add(tables, VPROF_PARSE_TABLE_NOTES, sizeof(sound), i == 1 ? &outside : &sound, 1);
		g_autoptr(GBytes) answer = g_byte_array_free_to_bytes(tables);
		struct usdt_notes *decoded = usdt_notes_decode(answer);

		ck_assert((decoded != NULL) == (i == 0));
		usdt_notes_free(decoded);
	}
}
END_TEST

/* ---- operands ---- */

#define STACK UINT64_C(0x7ffe00001000)

/* Of the only operand; false: it cannot be read. */
static bool read_operand(const char *text, uint64_t *value)
{
	static const uint8_t bytes[] = {0x11, 0x22, 0x33, 0x84, 0x55, 0x66, 0x77, 0x88};
	const struct guest_gprs gprs = {.processor = GUEST_X86_64,
	                                .rax = 0x1122334455667788,
	                                .rdi = 0xfffffffb,
	                                .rcx = 3,
	                                .r9 = 2,
	                                .rbp = STACK + 16,
	                                .r15 = UINT64_MAX};
	struct snapshot snapshot = {0};
	struct page_walk walk = {.snapshot = &snapshot};
	struct guest_operand operands[GUEST_OPERANDS_MAX];

	ck_assert(snapshot_add(&snapshot, (gva_t){STACK}, bytes, sizeof(bytes)));
	ck_assert_uint_eq(guest_operands_parse(GUEST_X86_64, text, operands), 1);
	return guest_operand_read(&operands[0], &walk, &gprs, value);
}

START_TEST(operands_have_values)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{"4@$5", 5},
		{"-4@$-5", (uint64_t)-5},
		{"2@$0x12345", 0x2345},
		{"-4@%edi", (uint64_t)-5},
		{"4@%edi", 0xfffffffb},
		{"8@%rax", 0x1122334455667788},
		{"1@%al", 0x88},
		{"-1@%al", (uint64_t)-0x78},
		{"1@%ah", 0x77},
		{"-8@%r15", UINT64_MAX},
		{"2@%r15w", 0xffff},
		{"%rcx", 3},
		{"8@-16(%rbp)", 0x8877665584332211},
		{"-4@-0x10(%rbp)", 0xffffffff84332211},
		{"2@-16(%rbp,%r9,2)", 0x6655},
		{"1@-16(%rbp,%rcx)", 0x84},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		uint64_t value = 0;

		ck_assert_msg(read_operand(cases[i].text, &value), "%s", cases[i].text);
		ck_assert_msg(value == cases[i].value, "%s: 0x%" G_GINT64_MODIFIER "x", cases[i].text, value);
	}
}
END_TEST

START_TEST(others_are_not_known)
{
	static const char *const texts[] = {
		"8f@%xmm0",  "-4@counter(%rip)",
		"8@8(%rip)", "3@%rax",
		"16@%rax",   "8@",
		"@",         "8@$",
		"8@%",       "8@%eip",
		"8@(",       "8@()",
		"8@-8(%rbp", "8@(%rbp,%rax,3)",
		"8@rax",     "--8@%rax",
		"8@(%rbp)",  "8@%rax%rax",
		"8@(,,8)",   "8@$5$5",
		"8@(%rbp,)", "8@%verylongname",
		"8@x19",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		uint64_t value = 77;

		ck_assert_msg(!read_operand(texts[i], &value), "%s", texts[i]);
		ck_assert_uint_eq(value, 77);
	}
}
END_TEST

START_TEST(operands_are_counted)
{
	struct guest_operand operands[GUEST_OPERANDS_MAX];

	ck_assert_uint_eq(guest_operands_parse(GUEST_X86_64, "", operands), 0);
	ck_assert_uint_eq(guest_operands_parse(GUEST_X86_64, "  8@%rax\t4@$5 ", operands), 2);
	ck_assert_uint_eq(guest_operands_parse(GUEST_X86_64, "1 2 3 4 5 6 7 8 9 a b c d e", operands),
	                  GUEST_OPERANDS_MAX);
	ck_assert_uint_eq(guest_operands_parse(GUEST_ARM64, "8@x0", operands), 1);
	ck_assert_int_eq(operands[0].kind, GUEST_OPERAND_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("usdt");
	TCase *tc_notes = tcase_create("notes"), *tc_operands = tcase_create("operands");

	tcase_add_checked_fixture(tc_notes, setup, teardown);
	tcase_add_test(tc_notes, notes_of_a_file);
	tcase_add_test(tc_notes, a_file_without_notes);
	tcase_add_test(tc_notes, notes_that_end_too_early);
	tcase_add_test(tc_notes, an_answer_that_contradicts_itself);
	suite_add_tcase(suite, tc_notes);
	tcase_add_test(tc_operands, operands_have_values);
	tcase_add_test(tc_operands, others_are_not_known);
	tcase_add_test(tc_operands, operands_are_counted);
	suite_add_tcase(suite, tc_operands);
	return run_suite(suite);
}
