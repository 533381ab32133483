// SPDX-License-Identifier: BSD-2-Clause
/* CPU time and exits of a process, by a made /proc and a made debugfs. */
#include <check.h>
#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

#include "lib/process/process_load.h"
#include "run_suite.h"

#define STAT_TAIL " S 1 2 3 4 5 6 7 8 9 10 300 50 1 2 20 0 3 0 777 8888 99"

static char *folder;

static void write_file(const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	g_autofree char *above = g_path_get_dirname(path);

	ck_assert_int_eq(g_mkdir_with_parents(above, 0700), 0);
	ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static void setup(void)
{
	folder = g_dir_make_tmp("vprof-load-XXXXXX", NULL);
	ck_assert_ptr_nonnull(folder);
}

static void teardown(void)
{
	static const char *const names[] = {"12/task/12/comm",
	                                    "12/task/12",
	                                    "12/task/14/comm",
	                                    "12/task/14",
	                                    "12/task",
	                                    "12/stat",
	                                    "12",
	                                    "kvm/12-8/exits",
	                                    "kvm/12-8",
	                                    "kvm/14-9/exits",
	                                    "kvm/14-9",
	                                    "kvm/123-8/exits",
	                                    "kvm/123-8",
	                                    "kvm/halt_exits",
	                                    "kvm"};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *path = g_build_filename(folder, names[i], NULL);

		g_remove(path);
	}
	ck_assert_int_eq(g_rmdir(folder), 0);
	g_free(folder);
}

static struct process_load read_load(void)
{
	g_autofree char *kvm = g_build_filename(folder, "kvm", NULL);

	return process_load_read(folder, kvm, 12);
}

START_TEST(a_name_with_brackets_shifts_no_field)
{
	write_file("12/stat", "12 (a) S 9 (b)" STAT_TAIL);
	struct process_load load = read_load();

	ck_assert_uint_eq(load.cpu_ticks, 350);
	ck_assert_uint_eq(load.start_ticks, 777);
	ck_assert(!load.exits_known);
}
END_TEST

START_TEST(machines_of_a_process_are_added_up)
{
	write_file("12/stat", "12 (vmm)" STAT_TAIL);
	write_file("12/task/12/comm", "vmm\n");
	write_file("12/task/14/comm", "maker\n");
	write_file("kvm/12-8/exits", "1000\n");
	write_file("kvm/14-9/exits", "234\n"); /* made by another of its threads */
	write_file("kvm/123-8/exits", "5\n");
	write_file("kvm/halt_exits", "9\n");
	struct process_load load = read_load();

	ck_assert(load.exits_known);
	ck_assert_uint_eq(load.exits, 1234);
}
END_TEST

START_TEST(what_is_cut_short_is_no_process)
{
	ck_assert_uint_eq(read_load().start_ticks, 0);
	write_file("12/stat", "12 (vmm) S 1 2");
	ck_assert_uint_eq(read_load().start_ticks, 0);
	write_file("12/stat", "");
	ck_assert_uint_eq(read_load().start_ticks, 0);
}
END_TEST

START_TEST(rates_are_of_one_process)
{
	const struct process_load from = {.start_ticks = 7, .cpu_ticks = 100, .exits = 50, .exits_known = true};
	struct process_load to = {.start_ticks = 7, .cpu_ticks = 400, .exits = 250, .exits_known = true};
	struct process_rate rate = process_load_rate(&from, &to, 2, 100);

	ck_assert(fabs(rate.cpus - 1.5) < 1e-9);
	ck_assert(fabs(rate.exits_s - 100) < 1e-9);
	to.exits = 10; /* one of its machines has ended */
	ck_assert(process_load_rate(&from, &to, 2, 100).exits_s < 0);
	to.start_ticks = 8; /* another process of that id */
	ck_assert(process_load_rate(&from, &to, 2, 100).cpus < 0);
	ck_assert(process_load_rate(&from, &from, 0, 100).cpus < 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process_load");
	TCase *cases = tcase_create("made folders");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, a_name_with_brackets_shifts_no_field);
	tcase_add_test(cases, machines_of_a_process_are_added_up);
	tcase_add_test(cases, what_is_cut_short_is_no_process);
	tcase_add_test(cases, rates_are_of_one_process);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
