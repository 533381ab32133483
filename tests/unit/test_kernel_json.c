// SPDX-License-Identifier: BSD-2-Clause
/* What a kernel's image says of what a profile can know: one that has nothing, one with symbols, and no kernel. */
#include <check.h>
#include <unistd.h>

#include "control/host_json.h"
#include "elf_builder.h"
#include "fake_systems.h"
#include "linux/needs.h"
#include "run_suite.h"

static char *path;

static void setup(void)
{
	int fd = g_file_open_tmp("vprof-kernel-XXXXXX", &path, NULL);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
	g_free(path);
}

static void kernel_write(const char *banner, const char *symbol)
{
	static const uint8_t code[64];
	struct elf_builder elf;
	uint16_t text;

	elf_builder_init(&elf);
	elf.entry = 0x200000;
	text = elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                      0xffffffff81000000, 0x200000, code, sizeof(code), 0});
	elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, 0xffffffff81100000, 0x300000,
	                                               banner, strlen(banner) + 1, 0});
	if (symbol)
		elf_builder_symbol(&elf, symbol, 0xffffffff81000000, 64, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text);
	GByteArray *file = elf_builder_finish(&elf);

	ck_assert(g_file_set_contents(path, (const char *)file->data, file->len, NULL));
	g_byte_array_unref(file);
	elf_builder_deinit(&elf);
}

/* "NAME: by HOW" or "NAME: WHY" of each part, without the file's name. New string. */
static char *parts_text(const json_t *kernel)
{
	GString *text = g_string_new(NULL);
	const json_t *part;
	size_t i;

	json_array_foreach(json_object_get(kernel, "parts"), i, part) {
		bool known = json_is_true(json_object_get(part, "known"));

		g_string_append_printf(text, "%s: %s%s\n", json_string_value(json_object_get(part, "name")),
		                       known ? "by " : "",
		                       json_string_value(json_object_get(part, known ? "how" : "why")));
	}
	g_string_replace(text, path, "K", 0);
	return g_string_free(text, FALSE);
}

static void assert_kernel(bool is_linux, const char *release, const char *expected)
{
	g_autoptr(GError) error = NULL;
	json_t *kernel = control_kernel(fake_systems, path, &error);
	g_autofree char *text = parts_text(kernel);

	ck_assert_msg(kernel != NULL, "%s", error ? error->message : "");
	ck_assert_int_eq(json_is_true(json_object_get(kernel, "linux")), is_linux);
	ck_assert_str_eq(json_is_string(json_object_get(kernel, "release"))
	                         ? json_string_value(json_object_get(kernel, "release"))
	                         : "none",
	                 release);
	ck_assert_str_eq(text, expected);
	json_decref(kernel);
}

#define NO_ORC "call chains: K has no ORC tables; by frame pointers, if it has them\n"

/* "NAME: WHY" of each capability of Linux, all for the same reason. New string. */
static char *needs_text(const char *why)
{
	GString *text = g_string_new(NULL);

	for (const struct os_need *need = linux_needs; need->name; need++)
		g_string_append_printf(text, "%s: %s", need->name, why);
	return g_string_free(text, FALSE);
}

START_TEST(a_stripped_kernel)
{
	const char *why =
		"K has no symbols of its code, neither .symtab nor kallsyms; give an image that is not stripped, or build Linux with CONFIG_KALLSYMS\n";
	g_autofree char *needs = needs_text(why);
	g_autofree char *expected = g_strdup_printf("symbols: %s" NO_ORC "%sagent: %s", why, needs, why);

	kernel_write("Linux version 6.1.0-1-amd64 (x@y)", NULL);
	assert_kernel(true, "6.1.0-1-amd64", expected);
}
END_TEST

START_TEST(a_kernel_without_types)
{
	const char *why = "K has neither BTF nor debug information; build Linux with CONFIG_DEBUG_INFO_BTF\n";
	g_autofree char *needs = needs_text(why);
	g_autofree char *expected = g_strdup_printf(
		"symbols: by symtab\n" NO_ORC "%s"
		"agent: the kernel has drivers for 0 serial ports and not for virtio_console; --exec requires two, or --modules with that driver\n",
		needs);

	kernel_write("Linux version 6.1.0-1-amd64 (x@y)", "start_kernel");
	assert_kernel(true, "6.1.0-1-amd64", expected);
}
END_TEST

START_TEST(what_is_not_linux)
{
	kernel_write("Unikernel", "main");
	g_autoptr(GError) error = NULL;
	json_t *kernel = control_kernel(fake_systems, path, &error);

	ck_assert(json_is_false(json_object_get(kernel, "linux")));
	ck_assert_ptr_null(json_object_get(kernel, "release"));
	json_decref(kernel);
	ck_assert(g_file_set_contents(path, "no kernel", -1, NULL));
	ck_assert_ptr_null(control_kernel(fake_systems, path, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "it is neither an ELF file nor a bzImage"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel_json");
	TCase *tests = tcase_create("kernel_json");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_stripped_kernel);
	tcase_add_test(tests, a_kernel_without_types);
	tcase_add_test(tests, what_is_not_linux);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
