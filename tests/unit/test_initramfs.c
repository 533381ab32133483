// SPDX-License-Identifier: BSD-2-Clause
/* What goes into an initramfs with a program, how it is found, and in which order the kernel gets it. */
#include <check.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dynamic_elf.h"
#include "lib/initramfs/initramfs.h"
#include "lib/initramfs/library_cache.h"
#include "lib/initramfs/library_search.h"
#include "run_suite.h"

#define NEWC_HEADER_BYTES 110u
#define NEWC_FIELD_BYTES 8u
enum { NEWC_MODE = 1, NEWC_SIZE = 6, NEWC_NAME_SIZE = 11 };

static struct initramfs *initramfs;
static char *folder; /* on the host */
static GError *error;

static void setup(void)
{
	g_autofree char *made = g_dir_make_tmp("vprof-test-XXXXXX", NULL);

	folder = realpath(made, NULL);
	initramfs = initramfs_new();
}

static void folder_remove(const char *path)
{
	GDir *dir = g_dir_open(path, 0, NULL);
	const char *name;

	while ((name = g_dir_read_name(dir)) != NULL) {
		g_autofree char *child = g_build_filename(path, name, NULL);

		if (!g_file_test(child, G_FILE_TEST_IS_SYMLINK) && g_file_test(child, G_FILE_TEST_IS_DIR))
			folder_remove(child);
		else
			g_unlink(child);
	}
	g_dir_close(dir);
	g_rmdir(path);
}

static void teardown(void)
{
	initramfs_free(initramfs);
	folder_remove(folder);
	free(folder);
	g_clear_error(&error);
}

/* A path in the folder; what is above it is made. */
static const char *in_folder(const char *name)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	g_autofree char *above = g_path_get_dirname(path);

	g_mkdir_with_parents(above, 0755);
	return g_intern_string(path);
}

static const char *make_file(const char *name, const char *text, unsigned mode)
{
	const char *path = in_folder(name);

	ck_assert(g_file_set_contents(path, text, -1, NULL));
	ck_assert_int_eq(chmod(path, mode), 0);
	return path;
}

static const char *make_elf(const char *name, struct dynamic_elf elf)
{
	const char *path = in_folder(name);
	GByteArray *bytes = dynamic_elf_build(&elf);

	ck_assert(g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL));
	ck_assert_int_eq(chmod(path, 0755), 0);
	g_byte_array_unref(bytes);
	return path;
}

#define NEEDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- archives, as the kernel reads them (init/initramfs.c) ---- */

static guint64 newc_field(const char *header, unsigned i)
{
	g_autofree char *digits = g_strndup(header + 6 + (gsize)i * NEWC_FIELD_BYTES, NEWC_FIELD_BYTES);

	return g_ascii_strtoull(digits, NULL, 16);
}

static gsize aligned(guint64 n)
{
	return (gsize)(n + 3) & ~(gsize)3;
}

/* One line for each member, in their order: "d /bin", "f /bin/x CONTENT", "l /lib TARGET", "c /dev/console". */
static char *archive_lines(const char *bytes, gsize n)
{
	GString *lines = g_string_new(NULL);

	for (gsize at = 0; at < n;) {
		const char *header = bytes + at;
		guint64 mode, size, name_size;

		if (*header == '\0') { /* between archives */
			at++;
			continue;
		}
		ck_assert_uint_eq(at % 4, 0);
		if (memcmp(header, "070701", 6) != 0) { /* the base of a test is no archive */
			g_string_append_printf(lines, "base %.4s\n", header);
			at += 4;
			continue;
		}
		mode = newc_field(header, NEWC_MODE);
		size = newc_field(header, NEWC_SIZE);
		name_size = newc_field(header, NEWC_NAME_SIZE);
		if (strcmp(header + NEWC_HEADER_BYTES, "TRAILER!!!") != 0)
			g_string_append_printf(lines, "%c /%s%s%.*s\n",
			                       S_ISDIR(mode)   ? 'd'
			                       : S_ISLNK(mode) ? 'l'
			                       : S_ISCHR(mode) ? 'c'
			                                       : 'f',
			                       header + NEWC_HEADER_BYTES, size != 0 ? " " : "", (int)size,
			                       header + aligned(NEWC_HEADER_BYTES + name_size));
		at += aligned(NEWC_HEADER_BYTES + name_size) + aligned(size);
	}
	return g_string_free(lines, FALSE);
}

static char *written_on(const char *base)
{
	int fd = initramfs_write(initramfs, base, &error);
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd), *bytes = NULL;
	gsize n;

	ck_assert_msg(fd >= 0, "%s", error ? error->message : "");
	ck_assert(g_file_get_contents(path, &bytes, &n, NULL));
	close(fd);
	return archive_lines(bytes, n);
}

static void assert_has(const char *lines, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void assert_has(const char *lines, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *line = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	ck_assert_msg(strstr(lines, line) != NULL, "\"%s\" is not in:\n%s", line, lines);
}

static void assert_refused(bool added, enum initramfs_error code, const char *words)
{
	ck_assert(!added);
	ck_assert_msg(g_error_matches(error, INITRAMFS_ERROR, (gint)code), "%s", error->message);
	ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
}

/* ---- archives ---- */

START_TEST(files_folders_and_links)
{
	const char *file = make_file("tree/deep/file", "content", 0644);
	g_autofree char *tree = g_build_filename(folder, "tree", NULL), *lines = NULL;

	ck_assert_int_eq(symlink("deep/file", in_folder("tree/link")), 0);
	initramfs_add_folder(initramfs, "/proc");
	ck_assert(initramfs_add(initramfs, tree, "/data", &error));
	ck_assert(initramfs_add(initramfs, file, "/etc/one", &error));
	lines = written_on(NULL);
	ck_assert_str_eq(lines, "d /data\nd /data/deep\nd /etc\nd /proc\nc /dev/console\nl /data/link deep/file\n"
	                        "f /data/deep/file content\nf /etc/one content\n");
}
END_TEST

START_TEST(a_base_comes_between_folders_and_files)
{
	const char *base = make_file("base", "BASE!", 0644); /* five bytes: what follows is aligned again */
	g_autofree char *lines = NULL;

	ck_assert(initramfs_add(initramfs, base, "/etc/one", &error));
	initramfs_add_link(initramfs, "/bin/two", "/etc/one");
	lines = written_on(base);
	ck_assert_str_eq(lines, "d /bin\nd /etc\nbase BASE\nbase !\nc /dev/console\nl /bin/two /etc/one\n"
	                        "f /etc/one BASE!\n");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	assert_refused(initramfs_add(initramfs, "/dev/null", "/x", &error), INITRAMFS_ERROR_FILE, "/dev/null");
	g_clear_error(&error);
	assert_refused(initramfs_add(initramfs, "/no/such/file", "/x", &error), INITRAMFS_ERROR_FILE,
	               "/no/such/file into the initramfs: No such file");
}
END_TEST

/* ---- programs ---- */

START_TEST(libraries_come_along)
{
	const char *linker = make_elf("ld.so", (struct dynamic_elf){0});
	const char *second = make_elf("more/libsecond.so.1", (struct dynamic_elf){.needed = NEEDS("libfirst.so")});
	const char *first = make_elf("lib/libfirst.so", (struct dynamic_elf){
								.needed = NEEDS("libsecond.so.1"),
								.runpath = "$ORIGIN/../more",
							});
	const char *program = make_elf("bin/program", (struct dynamic_elf){
							      .interpreter = linker,
							      .needed = NEEDS("libfirst.so", "ld.so"),
							      .runpath = "/nowhere:${ORIGIN}/../lib",
						      });
	g_autofree char *lines = NULL;

	ck_assert_msg(initramfs_add_program(initramfs, program, &error), "%s", error ? error->message : "");
	lines = written_on(NULL);
	assert_has(lines, "f %s ", program);
	assert_has(lines, "f %s ", linker);
	assert_has(lines, "f %s ", first);
	assert_has(lines, "f %s ", second);
}
END_TEST

START_TEST(a_missing_library_is_named)
{
	make_elf("lib/libfirst.so", (struct dynamic_elf){.needed = NEEDS("libgone.so.7")});
	const char *program = make_elf("bin/program", (struct dynamic_elf){
							      .needed = NEEDS("libfirst.so"),
							      .runpath = "$ORIGIN/../lib",
						      });

	/* The program's RUNPATH is not for what its libraries need, nor is the file itself of another machine. */
	make_elf("lib/libgone.so.7.other", (struct dynamic_elf){0});
	assert_refused(initramfs_add_program(initramfs, program, &error), INITRAMFS_ERROR_LIBRARY,
	               "libfirst.so needs the library libgone.so.7, which is not on this host");
}
END_TEST

START_TEST(a_missing_interpreter_is_named)
{
	const char *program = make_elf("program", (struct dynamic_elf){.interpreter = "/lib/ld-none.so"});

	assert_refused(initramfs_add_program(initramfs, program, &error), INITRAMFS_ERROR_LIBRARY,
	               "needs the dynamic linker /lib/ld-none.so");
}
END_TEST

START_TEST(scripts_bring_their_interpreter)
{
	const char *shell = make_elf("bin/shell", (struct dynamic_elf){0});
	g_autofree char *text = g_strdup_printf("#! %s -e\nexit 0\n", shell), *lines = NULL;
	const char *script = make_file("script", text, 0755);

	ck_assert_msg(initramfs_add_program(initramfs, script, &error), "%s", error ? error->message : "");
	lines = written_on(NULL);
	assert_has(lines, "f %s #! ", script);
	assert_has(lines, "f %s \177ELF", shell);
}
END_TEST

START_TEST(a_script_of_itself_ends)
{
	const char *path = in_folder("script");
	g_autofree char *text = g_strdup_printf("#!%s\n", path);

	make_file("script", text, 0755);
	assert_refused(initramfs_add_program(initramfs, path, &error), INITRAMFS_ERROR_LIBRARY, "is a script for");
}
END_TEST

START_TEST(links_lead_to_their_files)
{
	const char *program = make_elf("real/program", (struct dynamic_elf){0});
	const char *link = in_folder("bin/other");
	g_autofree char *lines = NULL;

	ck_assert_int_eq(symlink("../real/program", link), 0);
	ck_assert(initramfs_add_program(initramfs, link, &error));
	lines = written_on(NULL);
	assert_has(lines, "l %s %s\n", link, program);
	assert_has(lines, "f %s \177ELF", program);
}
END_TEST

START_TEST(what_cannot_run_is_refused)
{
	struct {
		Elf64_Ehdr header;
	} other = {{.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB}, .e_machine = EM_RISCV}};
	const char *path = make_file("text", "echo hello\n", 0755);

	assert_refused(initramfs_add_program(initramfs, path, &error), INITRAMFS_ERROR_FORMAT,
	               "neither an ELF program");
	g_clear_error(&error);
	path = make_file("empty", "", 0755);
	assert_refused(initramfs_add_program(initramfs, path, &error), INITRAMFS_ERROR_FORMAT,
	               "neither an ELF program");
	g_clear_error(&error);
	path = in_folder("riscv");
	ck_assert(g_file_set_contents(path, (const char *)&other, sizeof(other), NULL));
	assert_refused(initramfs_add_program(initramfs, path, &error), INITRAMFS_ERROR_ELF, "not for ");
}
END_TEST

/* Every byte of a program may be any other: that is refused or taken, and nothing else happens. */
START_TEST(damaged_programs_do_no_harm)
{
	const struct dynamic_elf elf = {
		.needed = NEEDS("libx.so"), .rpath = "/r", .runpath = "/s", .interpreter = "/i"};
	GByteArray *bytes = dynamic_elf_build(&elf);
	struct elf_links links;

	for (guint i = 0; i < bytes->len; i++) {
		const guint8 kept = bytes->data[i];

		bytes->data[i] = (guint8)~kept;
		for (guint n = bytes->len; n > bytes->len - 2; n--) {
			guint8 *copy = g_memdup2(bytes->data, n);

			if (elf_links_read(&links, "it", copy, n, NULL))
				elf_links_clear(&links);
			g_free(copy);
		}
		bytes->data[i] = kept;
	}
	ck_assert(elf_links_read(&links, "it", bytes->data, bytes->len, &error));
	ck_assert_str_eq(links.interpreter, "/i");
	ck_assert_str_eq(links.rpath, "/r");
	ck_assert_str_eq(links.runpath, "/s");
	ck_assert_uint_eq(links.needed->len, 1);
	elf_links_clear(&links);
	g_byte_array_unref(bytes);
}
END_TEST

/* ---- where ld.so looks ---- */

START_TEST(folders_have_ld_so_s_order)
{
	const char *from_rpath = make_elf("rpath/libx.so", (struct dynamic_elf){0});
	const char *from_more = make_elf("more/libx.so", (struct dynamic_elf){0});
	const char *from_runpath = make_elf("runpath/libx.so", (struct dynamic_elf){0});
	g_autofree char *more = g_path_get_dirname(from_more), *rpath = g_path_get_dirname(from_rpath),
			*runpath = g_path_get_dirname(from_runpath);
	struct library_search *search = library_search_new(more, "/no/cache");
	struct library_user program = {.path = (char *)"/bin/program", .links = {.rpath = rpath}};
	struct library_user library = {.path = (char *)"/lib/library", .parent = &program};

	/* DT_RPATH first, also for what its libraries need; */
	g_autofree char *found = library_search_find(search, &library, "libx.so");
	ck_assert_str_eq(found, from_rpath);
	/* DT_RUNPATH takes it out of force, but comes behind LD_LIBRARY_PATH; */
	program.links.runpath = runpath;
	g_autofree char *second = library_search_find(search, &program, "libx.so");
	ck_assert_str_eq(second, from_more);
	library_search_free(search);
	search = library_search_new(NULL, "/no/cache");
	g_autofree char *third = library_search_find(search, &program, "libx.so");
	ck_assert_str_eq(third, from_runpath);
	/* and is not for what libraries need. */
	ck_assert_ptr_null(library_search_find(search, &library, "libx.so"));
	/* A name with a slash is a path. */
	g_autofree char *fourth = library_search_find(search, &library, from_more);
	ck_assert_str_eq(fourth, from_more);
	library_search_free(search);
}
END_TEST

START_TEST(this_hosts_cache_is_understood)
{
	g_autofree char *bytes = NULL;
	gsize n;
	const char *path;

	ck_assert(g_file_get_contents(LIBRARY_CACHE_PATH, &bytes, &n, NULL));
	path = library_cache_find((const guint8 *)bytes, n, "libc.so.6");
	ck_assert_ptr_nonnull(path);
	ck_assert(g_file_test(path, G_FILE_TEST_EXISTS));
	ck_assert_ptr_null(library_cache_find((const guint8 *)bytes, n, "libnone.so"));
	/* Cut off anywhere: found or not, within what is there. */
	for (gsize cut = 0; cut < n; cut += 1 + n / 997) {
		guint8 *copy = g_memdup2(bytes, cut);

		library_cache_find(copy, cut, "libc.so.6");
		g_free(copy);
	}
}
END_TEST

/* This one, which is dynamically linked. */
START_TEST(a_program_of_this_host)
{
	g_autofree char *path = g_file_read_link("/proc/self/exe", NULL), *lines = NULL;

	ck_assert_msg(initramfs_add_program(initramfs, path, &error), "%s", error ? error->message : "");
	lines = written_on(NULL);
	assert_has(lines, "f %s ", path);
	assert_has(lines, "/ld-linux-");
	assert_has(lines, "/libc.so.6 \177ELF");
	assert_has(lines, "f " LIBRARY_CACHE_PATH " ");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		files_folders_and_links,         a_base_comes_between_folders_and_files,
		what_is_no_file_is_refused,      libraries_come_along,
		a_missing_library_is_named,      a_missing_interpreter_is_named,
		scripts_bring_their_interpreter, a_script_of_itself_ends,
		links_lead_to_their_files,       what_cannot_run_is_refused,
		damaged_programs_do_no_harm,     folders_have_ld_so_s_order,
		this_hosts_cache_is_understood,  a_program_of_this_host,
	};
	Suite *suite = suite_create("initramfs");
	TCase *test = tcase_create("initramfs");

	tcase_add_checked_fixture(test, setup, teardown);
	for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
		tcase_add_test(test, tests[i]);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
