// SPDX-License-Identifier: BSD-2-Clause
/* Which processes have vCPUs, by a made /proc. */
#include <check.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "lib/process/kvm_process.h"
#include "run_suite.h"

static char *proc;

static void setup(void)
{
	proc = g_dir_make_tmp("vprof-proc-XXXXXX", NULL);
	ck_assert_ptr_nonnull(proc);
}

static void remove_all(const char *path)
{
	g_autoptr(GDir) folder = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
	const char *name;

	while (folder && (name = g_dir_read_name(folder))) {
		g_autofree char *below = g_build_filename(path, name, NULL);

		remove_all(below);
	}
	g_remove(path);
}

static void teardown(void)
{
	remove_all(proc);
	g_free(proc);
}

/* A table of descriptors: PROC/`folder`/fd/0 and so on lead to `targets`. */
static void make_files(const char *folder, const char *const *targets)
{
	g_autofree char *files = g_build_filename(proc, folder, "fd", NULL);

	ck_assert_int_eq(g_mkdir_with_parents(files, 0700), 0);
	for (unsigned i = 0; targets[i]; i++) {
		g_autofree char *path = g_strdup_printf("%s/%u", files, i);

		ck_assert_int_eq(symlink(targets[i], path), 0);
	}
}

#define FILES(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(a_file_that_is_held_twice_is_one_vcpu)
{
	struct kvm_process found;

	make_files("12", FILES("/dev/kvm", "anon_inode:kvm-vm", "anon_inode:kvm-vcpu:5", "anon_inode:kvm-vcpu:0",
	                       "anon_inode:kvm-vcpu:5", "anon_inode:kvm-vcpu-stats:0", "socket:[7]"));
	ck_assert_int_eq(kvm_process_read(proc, 12, &found), KVM_PROCESS_VMM);
	ck_assert_int_eq(found.pid, 12);
	ck_assert_uint_eq(found.n_vms, 1);
	ck_assert_uint_eq(found.n_vcpus, 2);
	ck_assert_uint_eq(found.vcpu_ids[0], 0);
	ck_assert_uint_eq(found.vcpu_ids[1], 5);
}
END_TEST

/* Files on disk have paths; a machine without vCPUs runs nothing. */
START_TEST(names_that_only_look_alike_are_none)
{
	struct kvm_process found;

	make_files("12", FILES("/tmp/anon_inode:kvm-vcpu:0", "anon_inode:kvm-vcpu:", "anon_inode:kvm-vcpu:0x1",
	                       "anon_inode:kvm-vcpu:-1", "anon_inode:kvm-vcpu:99999999999", "anon_inode:kvm-vm"));
	ck_assert_int_eq(kvm_process_read(proc, 12, &found), KVM_PROCESS_NONE);
	ck_assert_int_eq(kvm_process_read(proc, 13, &found), KVM_PROCESS_GONE);
}
END_TEST

START_TEST(files_are_found_when_the_first_thread_has_ended)
{
	struct kvm_process found;

	make_files("12", (const char *const[]){NULL});
	make_files("12/task/12", (const char *const[]){NULL});
	make_files("12/task/14", FILES("anon_inode:kvm-vcpu:3"));
	ck_assert_int_eq(kvm_process_read(proc, 12, &found), KVM_PROCESS_VMM);
	ck_assert_uint_eq(found.n_vms, 0);
	ck_assert_uint_eq(found.vcpu_ids[0], 3);
}
END_TEST

START_TEST(more_vcpus_than_the_array_has_are_counted)
{
	const char *targets[100];
	struct kvm_process found;

	for (unsigned i = 0; i < G_N_ELEMENTS(targets) - 1; i++)
		targets[i] = g_strdup_printf("anon_inode:kvm-vcpu:%u", 98 - i);
	targets[G_N_ELEMENTS(targets) - 1] = NULL;
	make_files("12", targets);
	ck_assert_int_eq(kvm_process_read(proc, 12, &found), KVM_PROCESS_VMM);
	ck_assert_uint_eq(found.n_vcpus, 99);
	for (unsigned i = 0; i < KVM_PROCESS_VCPUS_MAX; i++)
		ck_assert_uint_eq(found.vcpu_ids[i], i);
	for (unsigned i = 0; i < G_N_ELEMENTS(targets) - 1; i++)
		g_free((char *)targets[i]);
}
END_TEST

START_TEST(processes_are_listed_in_order)
{
	g_autofree char *closed = g_build_filename(proc, "300", NULL);
	unsigned denied;

	make_files("200", FILES("anon_inode:kvm-vm", "anon_inode:kvm-vcpu:0"));
	make_files("12", FILES("anon_inode:kvm-vm", "anon_inode:kvm-vcpu:0"));
	make_files("100", FILES("/dev/null"));
	make_files("self", FILES("anon_inode:kvm-vcpu:0"));
	ck_assert_int_eq(g_mkdir(closed, 0700), 0); /* its folder fd cannot be opened */
	g_autoptr(GArray) list = kvm_process_list(proc, &denied);

	ck_assert_uint_eq(list->len, 2);
	ck_assert_int_eq(g_array_index(list, struct kvm_process, 0).pid, 12);
	ck_assert_int_eq(g_array_index(list, struct kvm_process, 1).pid, 200);
	ck_assert_uint_eq(denied, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kvm_process");
	TCase *cases = tcase_create("made /proc");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, a_file_that_is_held_twice_is_one_vcpu);
	tcase_add_test(cases, names_that_only_look_alike_are_none);
	tcase_add_test(cases, files_are_found_when_the_first_thread_has_ended);
	tcase_add_test(cases, more_vcpus_than_the_array_has_are_counted);
	tcase_add_test(cases, processes_are_listed_in_order);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
