// SPDX-License-Identifier: BSD-2-Clause
/* What the symbols of a guest's kernel take of this host's memory, however many there are and however long. */
#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf_builder.h"
#include "kallsyms_builder.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define DATA UINT64_C(0xffffffff82000000)
#define TEXT_BYTES (4u << 20)
#define STEP 2u /* bytes from one function to the next */
#define LONG_CODE 0xa0u
#define LONG_TOKEN_BYTES 73u
#define LONG_TOKENS 7u
#define LONG_NAME_BYTES (LONG_TOKENS * LONG_TOKEN_BYTES) /* 511: the longest that a kernel has */
#define MIB (UINT64_C(1) << 20)
/* Of what a guest makes one process hold, and all of them. */
#define PROCESS_BYTES_MAX (64 * MIB)
#define ALL_BYTES_MAX (128 * MIB)

/* The names of functions: "x" and so on, or seven times a token. */
struct names {
	uint32_t n;
	unsigned tokens; /* of LONG_TOKEN_BYTES; 0: `letters` */
	unsigned letters;
};

static void names_put(GByteArray *out, const struct names *names)
{
	g_autofree uint32_t *markers = g_new0(uint32_t, names->n / 256 + 1);
	const unsigned codes = 1 + (names->tokens ? names->tokens : names->letters);
	guint begin;

	kallsyms_align(out, 8);
	kallsyms_put(out, names->n, 4);
	kallsyms_align(out, 8);
	begin = out->len;
	for (uint32_t i = 0; i < names->n; i++) {
		if (i % 256 == 0)
			markers[i / 256] = out->len - begin;
		kallsyms_put(out, codes, 1);
		kallsyms_put(out, 'T', 1);
		for (unsigned k = 1; k < codes; k++)
			kallsyms_put(out, names->tokens ? LONG_CODE : 'a' + ((uint64_t)i >> k) % 16, 1);
	}
	kallsyms_align(out, 8);
	g_byte_array_append(out, (const uint8_t *)markers, (names->n + 255) / 256 * (guint)sizeof(*markers));
}

static void tokens_put(GByteArray *out)
{
	uint16_t index[256];
	guint table;

	kallsyms_align(out, 8);
	table = out->len;
	for (unsigned i = 0; i < G_N_ELEMENTS(index); i++) {
		index[i] = (uint16_t)(out->len - table);
		for (unsigned k = 0; i == LONG_CODE && k < LONG_TOKEN_BYTES; k++)
			kallsyms_put(out, 'x', 1);
		if (i > ' ' && i < 0x7f)
			kallsyms_put(out, i, 1);
		kallsyms_put(out, 0, 1);
	}
	kallsyms_align(out, 8);
	g_byte_array_append(out, (const uint8_t *)index, sizeof(index));
}

/* A stripped kernel; its tables are as those from 6.15 on. */
static struct image *kernel_new(const struct names *names)
{
	g_autoptr(GByteArray) tables = g_byte_array_new();
	g_autofree uint8_t *code = g_malloc0(TEXT_BYTES);
	struct elf_builder builder;

	names_put(tables, names);
	tokens_put(tables);
	kallsyms_align(tables, 8);
	for (uint32_t i = 0; i < names->n; i++)
		kallsyms_put(tables, (uint64_t)i * STEP, 4);
	kallsyms_align(tables, 8);
	kallsyms_put(tables, TEXT, 8);
	elf_builder_init(&builder);
	elf_builder_section(&builder, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                   0x1000000, code, TEXT_BYTES, 0});
	elf_builder_section(&builder, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, DATA, 0x2000000,
	                                                   tables->data, tables->len, 0});
	g_autoptr(GBytes) file = g_byte_array_free_to_bytes(elf_builder_finish(&builder));
	g_autoptr(GError) error = NULL;
	struct image *image = image_new(IMAGE_GUEST_MEMORY, file, &error);

	ck_assert_msg(image != NULL, "%s", error ? error->message : "");
	elf_builder_deinit(&builder);
	return image;
}

/* ---- what a process holds ---- */

static uint64_t status_bytes(const char *name)
{
	g_autofree char *text = NULL;
	const char *line;

	ck_assert(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
	line = strstr(text, name);
	return line ? g_ascii_strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* The most memory that a process needs for it, besides what it has before. */
static uint64_t peak_of(void (*work)(const struct image *image), const struct image *image)
{
	uint64_t peak = 0;
	int ends[2], status;

	ck_assert_int_eq(pipe(ends), 0);
	const pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		FILE *reset = fopen("/proc/self/clear_refs", "we");

		if (!reset || fputs("5", reset) < 0 || fclose(reset) != 0)
			_exit(EXIT_FAILURE);
		const uint64_t before = status_bytes("VmRSS:");

		work(image);
		peak = status_bytes("VmHWM:") - before;
		_exit(write(ends[1], &peak, sizeof(peak)) == sizeof(peak) ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &peak, sizeof(peak)), sizeof(peak));
	close(ends[0]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	return peak;
}

/* As vprof-parse does. */
static void parse(const struct image *image)
{
	struct symtab *symtab = symtab_parse(image, SYMTAB_KERNEL_BYTES_MAX, NULL);
	GByteArray *answer = symtab_encode(symtab, NULL, SYMTAB_KERNEL_BYTES_MAX);

	if (answer->len > SYMTAB_KERNEL_BYTES_MAX)
		_exit(EXIT_FAILURE);
}

/* As an engine does, and then the client. */
static void load(const struct image *image)
{
	struct symtab *symtab = symtab_load(image, NULL);

	symtab_index_names(symtab);
}

static void load_and_pack(const struct image *image)
{
	struct symtab *symtab = symtab_load(image, NULL);

	symtab_keep_code(symtab);
}

static void bytes_check(const struct image *image)
{
#if !defined(VPROF_SANITIZED) /* they take memory of their own */
	const uint64_t parsed = peak_of(parse, image), loaded = peak_of(load, image);
	const uint64_t packed = peak_of(load_and_pack, image);
	const struct mallinfo2 before = mallinfo2();
	struct symtab *symtab = symtab_load(image, NULL);
	const struct mallinfo2 after = mallinfo2();
	const uint64_t held = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;

	/* An engine and a client have a table, or the engine its answer, while vprof-parse makes it. */
	fprintf(stderr, "MiB: vprof-parse %.1f, loading %.1f, packing %.1f, held %.1f\n", (double)parsed / MIB,
	        (double)loaded / MIB, (double)packed / MIB, (double)held / MIB);
	ck_assert_uint_le(parsed, PROCESS_BYTES_MAX);
	/* Its engine has the answer, too. */
	ck_assert_uint_le(loaded + SYMTAB_KERNEL_BYTES_MAX, PROCESS_BYTES_MAX);
	ck_assert_uint_le(packed, PROCESS_BYTES_MAX);
	ck_assert_uint_le(symtab_bytes(symtab), held);
	ck_assert_uint_le(parsed + SYMTAB_KERNEL_BYTES_MAX + held, ALL_BYTES_MAX);
	ck_assert_uint_le(loaded + 2 * held, ALL_BYTES_MAX);
	symtab_free(symtab);
#else
	(void)image, (void)peak_of, (void)parse, (void)load, (void)load_and_pack;
#endif
}

/* ---- the tests ---- */

/* The first `kept` of them, and no name for what was left out. */
static void cut_check(const struct names *names, uint64_t kept_min)
{
	struct image *image = kernel_new(names);
	g_autoptr(GError) error = NULL;

	image_set_of_guest(image);
	struct symtab *symtab = symtab_load(image, &error);

	ck_assert_msg(symtab != NULL, "%s", error ? error->message : "");
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n), *last = &symbols[n - 1];
	g_autofree char *text = symtab_left_out_text(symtab);
	g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT " symbols", names->n - (uint64_t)n);

	ck_assert_uint_ge(n, kept_min);
	ck_assert_uint_eq(n + symtab_left_out(symtab), names->n);
	ck_assert_uint_eq(last->address, TEXT + (n - 1) * STEP);
	ck_assert_uint_eq(last->size, STEP);
	ck_assert_ptr_eq(symtab_find(symtab, last->address + STEP - 1), last);
	ck_assert_ptr_null(symtab_find(symtab, last->address + STEP));
	ck_assert_ptr_null(symtab_find(symtab, TEXT + (uint64_t)(names->n - 1) * STEP));
	ck_assert_uint_eq(strlen(symbols[0].name), names->tokens ? names->tokens * LONG_TOKEN_BYTES : names->letters);
	ck_assert_ptr_nonnull(strstr(text, number));
	symtab_free(symtab);
	bytes_check(image);
	image_free(image);
}

START_TEST(long_names)
{
	cut_check(&(struct names){.n = 300000, .tokens = LONG_TOKENS}, 30000);
}
END_TEST

START_TEST(many_symbols)
{
	cut_check(&(struct names){.n = 2000000, .letters = 1}, 400000);
}
END_TEST

/* As a distribution's, with names that are as long as theirs. */
START_TEST(a_kernel_fits)
{
	const struct names names = {.n = 250000, .letters = 32};
	struct image *image = kernel_new(&names);

	image_set_of_guest(image);
	struct symtab *symtab = symtab_load(image, NULL);
	size_t n;

	symtab_symbols(symtab, &n);
	ck_assert_uint_eq(n, names.n);
	ck_assert_uint_eq(symtab_left_out(symtab), 0);
	ck_assert_ptr_null(symtab_left_out_text(symtab));
	symtab_free(symtab);
	bytes_check(image);
	image_free(image);
}
END_TEST

/* It is the user who says what is read. */
START_TEST(a_named_file_has_no_such_limit)
{
	const struct names names = {.n = 50000, .tokens = LONG_TOKENS};
	struct image *image = kernel_new(&names);
	struct symtab *symtab = symtab_load(image, NULL);
	size_t n;

	symtab_symbols(symtab, &n);
	ck_assert_uint_eq(n, names.n);
	symtab_free(symtab);
	image_set_of_guest(image);
	symtab = symtab_load(image, NULL);
	symtab_symbols(symtab, &n);
	ck_assert_uint_lt(n, names.n);
	symtab_free(symtab);
	image_free(image);
}
END_TEST

/* Another program may give more than it may. */
START_TEST(a_large_answer_is_refused)
{
	const struct names names = {.n = 50000, .tokens = LONG_TOKENS};
	struct image *image = kernel_new(&names);
	g_autoptr(GError) error = NULL;

	symtab_free(symtab_load_keeping(image, NULL));
	image_set_of_guest(image);
	ck_assert_ptr_null(symtab_load(image, &error));
	ck_assert(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT));
	image_free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guest_symbols");
	TCase *tests = tcase_create("guest_symbols");

	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, long_names);
	tcase_add_test(tests, many_symbols);
	tcase_add_test(tests, a_kernel_fits);
	tcase_add_test(tests, a_named_file_has_no_such_limit);
	tcase_add_test(tests, a_large_answer_is_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
