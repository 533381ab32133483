// SPDX-License-Identifier: BSD-2-Clause
/* Names for the host's own code, out of a proc file system made for it. */
#include <check.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/symbol/host_symbols.h"
#include "run_suite.h"

#define PROCESS 4711
#define TEXT UINT64_C(0xffffffff81000000)
#define MODULE UINT64_C(0xffffffffc0a00000)

static char *proc;
static struct host_symbols *symbols;

static void put(const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(proc, name, NULL);

	ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static const char *const kallsyms = "0000000000000000 A fixed_percpu_data\n"
				    "ffffffff81000000 T _stext\n"
				    "ffffffff81000000 T _text\n"
				    "ffffffff81000100 T do_syscall_64\n"
				    "ffffffff81000200 t native_read_msr\n"
				    "ffffffff81000280 d not_code\n"
				    "ffffffff81000300 T _etext\n"
				    "a line of another kind\n"
				    "ffffffffc0a00010 t kvm_vcpu_ioctl\t[kvm]\n"
				    "ffffffffc0b00000 t bpf_prog_1\t[bpf]\n";

static void setup(void)
{
	g_autofree char *folder = NULL;

	proc = g_dir_make_tmp("vprof-test-XXXXXX", NULL);
	folder = g_strdup_printf("%s/%d/root", proc, PROCESS);
	ck_assert_int_eq(g_mkdir_with_parents(folder, 0700), 0);
	put("kallsyms", kallsyms);
	put("modules",
	    "kvm 8192 1 kvm_intel, Live 0xffffffffc0a00000\nirqbypass 4096 1 kvm, Live 0xffffffffc0c00000\n");
	put("4711/maps", "55550000-55551000 r--p 00000000 fe:01 12 /qemu\n"
	                 "55551000-55553000 r-xp 00001000 fe:01 12 /qemu\n"
	                 "7ff00000-7ff01000 r-xp 00000000 00:00 0 [vdso]\n"
	                 "7ff02000-7ff03000 rwxp 00000000 00:00 0 \n"
	                 "rubbish\n");
}

static void teardown(void)
{
	static const char *const names[] = {"kallsyms", "modules", "4711/maps", "4711/root", "4711", "."};

	host_symbols_free(symbols);
	symbols = NULL;
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *path = g_build_filename(proc, names[i], NULL);

		g_remove(path);
	}
	g_rmdir(proc);
	g_free(proc);
}

static void load(void)
{
	symbols = host_symbols_new(proc, PROCESS, false);
}

static void assert_found(uint64_t at, uint64_t address, const char *name, const char *module)
{
	struct host_symbol found;

	ck_assert_msg(host_symbols_find(symbols, at, &found), "0x%" G_GINT64_MODIFIER "x", at);
	ck_assert_str_eq(found.name, name);
	ck_assert_str_eq(found.module, module);
	ck_assert_uint_eq(found.address, address);
	ck_assert_uint_gt(found.size, at - address);
}

static void assert_nothing(uint64_t at)
{
	struct host_symbol found;

	ck_assert_msg(!host_symbols_find(symbols, at, &found), "0x%" G_GINT64_MODIFIER "x", at);
}

START_TEST(kernel_and_modules)
{
	load();
	ck_assert_ptr_null(host_symbols_kernel_why(symbols));
	assert_found(TEXT + 0x1ff, TEXT + 0x100, "do_syscall_64", "[host]");
	assert_found(TEXT + 0x290, TEXT + 0x200, "native_read_msr", "[host]");
	assert_found(MODULE + 0x1f00, MODULE + 0x10, "kvm_vcpu_ioctl", "[kvm]");
	assert_nothing(TEXT + 0x300);      /* behind _etext */
	assert_nothing(MODULE + 0x2000);   /* behind the module */
	assert_nothing(MODULE + 0x100000); /* a program that was made while the kernel ran */
}
END_TEST

START_TEST(a_kernel_without_modules)
{
	g_autofree char *path = g_build_filename(proc, "modules", NULL);

	g_remove(path);
	load();
	assert_found(TEXT + 0x100, TEXT + 0x100, "do_syscall_64", "[host]");
	assert_nothing(MODULE + 0x10);
}
END_TEST

START_TEST(hidden_addresses_are_said)
{
	put("kallsyms", "0000000000000000 T _stext\n0000000000000000 T do_syscall_64\n0000000000000000 T _etext\n");
	load();
	ck_assert_ptr_nonnull(strstr(host_symbols_kernel_why(symbols), "hides its addresses (kernel.kptr_restrict"));
	assert_nothing(TEXT + 0x100);
	assert_found(0x55551020, 0x55551020, "qemu+0x1020", "/qemu");
}
END_TEST

START_TEST(files_of_the_process)
{
	load();
	ck_assert_ptr_null(host_symbols_process_why(symbols));
	assert_found(0x55551020, 0x55551020, "qemu+0x1020", "/qemu"); /* there is no such file */
	assert_found(0x7ff00010, 0x7ff00010, "[vdso]+0x10", "[vdso]");
	assert_nothing(0x55550010); /* no code */
	assert_nothing(0x7ff02010); /* of no file */
}
END_TEST

START_TEST(a_process_that_is_gone)
{
	g_autofree char *path = g_build_filename(proc, "4711/maps", NULL);

	g_remove(path);
	load();
	ck_assert_ptr_nonnull(strstr(host_symbols_process_why(symbols), "what process 4711 has mapped"));
	assert_nothing(0x55551020);
}
END_TEST

/* This program, with names, by the real thing; the process may be gone when its file is read. */
START_TEST(functions_of_a_program)
{
	struct host_symbol found;

	symbols = host_symbols_new("/proc", getpid(), false);
	ck_assert(host_symbols_find(symbols, (uint64_t)(uintptr_t)run_suite, &found));
	ck_assert_str_eq(found.name, "run_suite");
	ck_assert_uint_eq(found.address, (uint64_t)(uintptr_t)run_suite);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_symbols");
	TCase *tc = tcase_create("host_symbols");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, kernel_and_modules);
	tcase_add_test(tc, a_kernel_without_modules);
	tcase_add_test(tc, hidden_addresses_are_said);
	tcase_add_test(tc, files_of_the_process);
	tcase_add_test(tc, a_process_that_is_gone);
	tcase_add_test(tc, functions_of_a_program);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
