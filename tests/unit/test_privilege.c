// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/process/privilege.h"
#include "run_suite.h"

#define OWN_ID 0x76000001u
#define HOST_REFUSES 77
static char *here; /* a file that every user may read */

/* 0, or where it went wrong: what a user's engine that looks at another VMM gives up. */
static int look_from_within(pid_t outside)
{
	g_autofree char *stat_path = g_strdup_printf("/proc/%d/stat", (int)outside);
	g_autofree char *memory = g_strdup_printf("/proc/%d/mem", (int)outside);
	g_autofree char *their_file = g_strdup_printf("/proc/%d/root%s", (int)outside, here);
	g_autofree char *by_root = g_strdup_printf("/proc/self/root%s", here), *above = g_strdup_printf("/..%s", here);

	if (access(here, R_OK) != 0 || access(memory, R_OK) != 0 || access(their_file, R_OK) != 0)
		return 2;
	if (!privilege_user_namespace(PRIVILEGE_ROOT_KERNEL) || !privilege_root_kernel())
		return HOST_REFUSES;
	if (!privilege_drop(0, NULL, NULL))
		return 3;
	if (access("/proc/self/stat", R_OK) != 0 || access(stat_path, R_OK) != 0 || access("/sys", R_OK) != 0)
		return 4;
	if (access(here, F_OK) == 0 || access(by_root, F_OK) == 0 || access(above, F_OK) == 0)
		return 5;
	if (open(memory, O_RDONLY) >= 0 || open(their_file, O_RDONLY) >= 0)
		return 6;
	return mkdir("/new", 0700) != 0 && errno == EROFS ? 0 : 7;
}

START_TEST(a_user_namespace_sees_no_file_and_no_other_process)
{
	g_autofree char *folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	int status;

	here = g_build_filename(folder, "file", NULL);
	ck_assert(g_file_set_contents(here, "", 0, NULL) && chmod(folder, 0755) == 0 && chmod(here, 0644) == 0);
	pid_t outside = fork(); /* a process of the same user */

	if (outside == 0) {
		if (geteuid() == 0 && (setresgid(OWN_ID, OWN_ID, OWN_ID) != 0 ||
		                       setresuid(OWN_ID, OWN_ID, OWN_ID) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
			_exit(1);
		pid_t inside = fork();

		if (inside == 0)
			_exit(look_from_within(getppid()));
		_exit(waitpid(inside, &status, 0) == inside && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	ck_assert_int_eq(waitpid(outside, &status, 0), outside);
	ck_assert(unlink(here) == 0 && rmdir(folder) == 0);
	g_free(here);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == HOST_REFUSES)
		fprintf(stderr, "this host has no user namespaces for users\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("privilege");
	TCase *tests = tcase_create("privilege");
	tcase_add_test(tests, a_user_namespace_sees_no_file_and_no_other_process);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
