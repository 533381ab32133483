// SPDX-License-Identifier: BSD-2-Clause
/* Where output goes, and where it does not: links, devices, folders, disks that are full, and ends at any moment. */
#include "lib/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "recording_file.h"
#include "run_suite.h"

#define OTHER_USER 65534
#define MADE_TIMES 300 /* a recording, while another process reads it */
#define KILLED_TIMES 20

static char *folder, *path, *old;

static char *in_folder(const char *name)
{
	return g_build_filename(folder, name, NULL);
}

static void folder_make(void)
{
	folder = g_dir_make_tmp("vprof-output-XXXXXX", NULL);
	path = in_folder("out");
	old = in_folder("out.old");
}

static void folder_drop(void)
{
	GDir *names = g_dir_open(folder, 0, NULL);

	for (const char *name; (name = g_dir_read_name(names));) {
		g_autofree char *file = in_folder(name);

		g_remove(file);
	}
	g_dir_close(names);
	g_rmdir(folder);
	g_free(folder);
	g_free(path);
	g_free(old);
}

static unsigned files(void)
{
	GDir *names = g_dir_open(folder, 0, NULL);
	unsigned n = 0;

	while (g_dir_read_name(names))
		n++;
	g_dir_close(names);
	return n;
}

static void expect_text(const char *file, const char *text)
{
	g_autofree char *found = NULL;

	ck_assert_msg(g_file_get_contents(file, &found, NULL, NULL), "%s is missing", file);
	ck_assert_str_eq(found, text);
}

static void expect_link(const char *link, const char *target)
{
	g_autofree char *found = g_file_read_link(link, NULL);

	ck_assert_pstr_eq(found, target);
}

static void put_new(struct output *output)
{
	ck_assert_int_eq(write(output->fd, "new", 3), 3);
}

static void write_new(const char *to, bool keep)
{
	struct output output;
	g_autoptr(GError) error = NULL;

	ck_assert_msg(output_create(&output, to, 0, 0600, &error), "%s", error ? error->message : "");
	put_new(&output);
	ck_assert(output_publish(&output, keep, &error));
	output_clear(&output);
}

/* Neither way of opening takes it; `words` are in the message. */
static void refused(const char *to, const char *words)
{
	struct output output;
	g_autoptr(GError) error = NULL, in_place = NULL;

	ck_assert(!output_create(&output, to, O_NONBLOCK, 0600, &error));
	ck_assert_int_eq(error->domain, G_FILE_ERROR);
	ck_assert_msg(strstr(error->message, words) && strstr(error->message, to), "%s", error->message);
	ck_assert_int_eq(output_open(to, O_APPEND | O_NONBLOCK, 0600, &in_place), -1);
	ck_assert_int_eq(in_place->domain, G_FILE_ERROR);
}

START_TEST(a_new_file_comes_when_it_is_published)
{
	struct output output;
	struct stat status;

	umask(022);
	ck_assert(output_create(&output, path, 0, 0666, NULL));
	put_new(&output);
	ck_assert(!g_file_test(path, G_FILE_TEST_EXISTS));
	ck_assert(output_publish(&output, true, NULL));
	expect_text(path, "new");
	output_clear(&output);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_int_eq(status.st_mode & 07777, 0644);
	ck_assert_uint_eq(files(), 1);
}
END_TEST

START_TEST(what_is_not_published_leaves_nothing)
{
	struct output output;

	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	ck_assert(output_create(&output, path, 0, 0600, NULL));
	put_new(&output);
	output_clear(&output);
	expect_text(path, "old");
	ck_assert_uint_eq(files(), 1);
}
END_TEST

START_TEST(an_old_file_is_replaced_or_kept)
{
	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	write_new(path, true);
	expect_text(path, "new");
	expect_text(old, "old");
	ck_assert(g_file_set_contents(path, "other", -1, NULL));
	write_new(path, false);
	expect_text(path, "new");
	expect_text(old, "old");
}
END_TEST

START_TEST(a_name_may_be_as_long_as_names_can_be)
{
	g_autofree char *name = g_strnfill(255, 'x'), *file = in_folder(name);

	write_new(file, false);
	expect_text(file, "new");
}
END_TEST

START_TEST(own_links_are_followed)
{
	g_autofree char *first = in_folder("first"), *second = in_folder("second");
	int fd;

	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	ck_assert_int_eq(symlink("out", first), 0);
	ck_assert_int_eq(symlink(first, second), 0);
	write_new(second, true);
	expect_text(path, "new");
	expect_text(old, "old");
	expect_link(first, "out");
	expect_link(second, first);

	fd = output_open(second, O_APPEND, 0600, NULL);
	ck_assert_int_eq(write(fd, "er", 2), 2);
	close(fd);
	expect_text(path, "newer");
	close(output_open(second, O_TRUNC, 0600, NULL));
	expect_text(path, "");
}
END_TEST

START_TEST(dangling_links_are_refused)
{
	g_autofree char *link = in_folder("link");

	ck_assert_int_eq(symlink(path, link), 0);
	refused(link, "which does not exist");
	ck_assert(!g_file_test(path, G_FILE_TEST_EXISTS));
	expect_link(link, path);
	ck_assert_uint_eq(files(), 1);
}
END_TEST

START_TEST(links_in_a_circle_are_refused)
{
	ck_assert_int_eq(symlink("out.old", path), 0);
	ck_assert_int_eq(symlink("out", old), 0);
	refused(path, g_strerror(ELOOP));
}
END_TEST

/* In a folder as /tmp; whatever fs.protected_symlinks is. */
static void others_link_is_refused(uid_t owner, uid_t caller)
{
	g_autofree char *link = in_folder("link"), *device = in_folder("device");

	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(chmod(folder, 01777), 0);
	ck_assert_int_eq(symlink(path, link), 0);
	ck_assert_int_eq(symlink("/dev/null", device), 0);
	ck_assert_int_eq(lchown(link, owner, (gid_t)-1), 0);
	ck_assert_int_eq(lchown(device, owner, (gid_t)-1), 0);
	ck_assert_int_eq(seteuid(caller), 0);
	refused(link, "is a symbolic link of user");
	refused(device, "is a symbolic link of user");
	ck_assert_int_eq(seteuid(0), 0);
	expect_text(path, "old");
	expect_link(link, path);
}

START_TEST(links_of_others_are_refused_to_root)
{
	others_link_is_refused(OTHER_USER, 0);
}
END_TEST

START_TEST(links_of_others_are_refused_to_users)
{
	others_link_is_refused(0, OTHER_USER);
}
END_TEST

START_TEST(a_folder_that_takes_no_file_is_named)
{
	struct output output;
	g_autoptr(GError) error = NULL;
	bool created;

	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	ck_assert_int_eq(chmod(folder, 0555), 0);
	ck_assert(geteuid() != 0 || seteuid(OTHER_USER) == 0);
	created = output_create(&output, path, 0, 0600, &error);
	ck_assert(getuid() != 0 || seteuid(0) == 0);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert(!created);
	g_autofree char *expected = g_strdup_printf(
		"cannot write %s: Permission denied: no new file in the folder %s; name a file in another one", path,
		folder);

	ck_assert_str_eq(error->message, expected);
	expect_text(path, "old");
}
END_TEST

START_TEST(folders_are_refused)
{
	refused(folder, g_strerror(EISDIR));
	refused("/nonexistent/out", g_strerror(ENOENT));
}
END_TEST

START_TEST(devices_and_pipes_stay)
{
	struct stat status;
	struct output output;
	char text[4] = "";
	int reader;

	write_new("/dev/null", true);
	ck_assert_int_eq(stat("/dev/null", &status), 0);
	ck_assert(S_ISCHR(status.st_mode));

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert(!output_create(&output, path, O_NONBLOCK, 0600, NULL)); /* without a reader */
	reader = open(path, O_RDONLY | O_NONBLOCK);
	write_new(path, true);
	ck_assert_int_eq(read(reader, text, sizeof(text)), 3);
	ck_assert_str_eq(text, "new");
	close(reader);
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISFIFO(status.st_mode));
	ck_assert_uint_eq(files(), 1);
}
END_TEST

/* As /dev/stdout is, which is root's link; its file is neither replaced nor moved. */
START_TEST(own_descriptors_are_written)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0600);
	g_autofree char *descriptor = g_strdup_printf("/proc/self/fd/%d", fd);
	char text[8] = "";

	ck_assert_int_eq(write(fd, "before", 6), 6);
	write_new(descriptor, true);
	ck_assert_int_eq(pread(fd, text, sizeof(text), 0), 3);
	ck_assert_str_eq(text, "new");
	ck_assert_uint_eq(files(), 1);

	ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	write_new("/dev/stdout", true);
	ck_assert(g_file_test("/dev/stdout", G_FILE_TEST_IS_SYMLINK));
	expect_text(path, "new");
	ck_assert_uint_eq(files(), 1);
}
END_TEST

/* ---- recordings ---- */

START_TEST(a_full_disk_leaves_the_old_recording)
{
	g_autoptr(GError) error = NULL;
	struct recording_writer *writer;

	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){HEADER_BYTES / 2, RLIM_INFINITY}), 0);
	writer = writer_open(path, &error);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
	ck_assert_ptr_null(writer);
	ck_assert_ptr_nonnull(strstr(error->message, path));
	expect_text(path, "old");
	ck_assert_uint_eq(files(), 1);
}
END_TEST

START_TEST(a_link_gets_no_recording_unless_it_is_followed)
{
	g_autofree char *link = in_folder("link");
	g_autoptr(GError) error = NULL;

	ck_assert_int_eq(symlink(path, link), 0);
	ck_assert_ptr_null(writer_open(link, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	ck_assert(g_file_set_contents(path, "old", -1, NULL));
	recording_writer_free(writer_open(link, NULL));
	expect_text(old, "old");
	expect_link(link, path);
	recording_free(recording_open(path, NULL));
}
END_TEST

static void recordings_make(void)
{
	for (unsigned i = 0; i < MADE_TIMES; i++) {
		struct recording_writer *writer = writer_open(path, NULL);

		write_records(writer);
		recording_writer_free(writer);
	}
	_exit(EXIT_SUCCESS);
}

/* Returns 0 until the process has ended. */
static pid_t ended(pid_t process, int options)
{
	int status;
	const pid_t found = waitpid(process, &status, options);

	ck_assert(found <= 0 || WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_SUCCESS);
	return found;
}

START_TEST(what_has_the_name_is_a_recording)
{
	const pid_t process = fork();
	unsigned seen = 0;

	if (process == 0)
		recordings_make();
	while (ended(process, WNOHANG) == 0) {
		g_autoptr(GError) error = NULL;
		struct recording *recording = recording_open(path, &error);

		/* It is absent for a moment, after the last one was renamed. */
		ck_assert_msg(recording || strstr(error->message, g_strerror(ENOENT)), "%s",
		              error ? error->message : "");
		seen += recording != NULL;
		if (recording)
			recording_free(recording);
	}
	ck_assert_uint_gt(seen, 0);
}
END_TEST

START_TEST(a_killed_writer_leaves_a_recording)
{
	for (unsigned i = 0; i < KILLED_TIMES; i++) {
		const int watch = inotify_init1(IN_CLOEXEC);
		char event[sizeof(struct inotify_event) + NAME_MAX + 1];
		struct recording *recording;
		pid_t process;

		ck_assert_int_ge(inotify_add_watch(watch, folder, IN_MOVED_TO), 0);
		process = fork();
		if (process == 0) {
			struct recording_writer *writer = writer_open(path, NULL);

			for (;;)
				write_records(writer);
		}
		ck_assert_int_gt(read(watch, event, sizeof(event)), 0);
		kill(process, SIGKILL);
		ck_assert_int_eq(ended(process, 0), process);
		close(watch);
		recording = recording_open(path, NULL);
		ck_assert_ptr_nonnull(recording);
		ck_assert(recording_cut_off(recording));
		ck_assert_str_eq(recording_event(recording, 1)->name, "timer:u");
		recording_free(recording);
		g_unlink(path);
		ck_assert_uint_eq(files(), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("output");
	TCase *cases = tcase_create("output");

	tcase_add_checked_fixture(cases, folder_make, folder_drop);
	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, a_new_file_comes_when_it_is_published);
	tcase_add_test(cases, what_is_not_published_leaves_nothing);
	tcase_add_test(cases, an_old_file_is_replaced_or_kept);
	tcase_add_test(cases, a_name_may_be_as_long_as_names_can_be);
	tcase_add_test(cases, own_links_are_followed);
	tcase_add_test(cases, dangling_links_are_refused);
	tcase_add_test(cases, links_in_a_circle_are_refused);
	if (geteuid() == 0) {
		tcase_add_test(cases, links_of_others_are_refused_to_root);
		tcase_add_test(cases, links_of_others_are_refused_to_users);
	} else {
		puts("links of others are made by root only: not tested");
	}
	tcase_add_test(cases, a_folder_that_takes_no_file_is_named);
	tcase_add_test(cases, folders_are_refused);
	tcase_add_test(cases, devices_and_pipes_stay);
	tcase_add_test(cases, own_descriptors_are_written);
	tcase_add_test(cases, a_full_disk_leaves_the_old_recording);
	tcase_add_test(cases, a_link_gets_no_recording_unless_it_is_followed);
	tcase_add_test(cases, what_has_the_name_is_a_recording);
	tcase_add_test(cases, a_killed_writer_leaves_a_recording);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
