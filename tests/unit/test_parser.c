// SPDX-License-Identifier: BSD-2-Clause
/* vprof-parse: what it gives back, what it may take, what its children may do, and that its end is an error and no
 * more. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "lib/parser/parser.h"
#include "parse/confine.h"
#include "run_suite.h"

#define ANSWER_BYTES (1u << 20)

/* `n` zeros, packed by gzip `times` times. */
static GBytes *packed_zeros(size_t n, unsigned times)
{
	g_autofree char *zeros = g_malloc0(n);
	size_t bytes = n, room = n + 4096;
	char *out = g_malloc(room);

	memcpy(out, zeros, n);
	for (unsigned i = 0; i < times; i++) {
		struct archive *archive = archive_write_new();
		struct archive_entry *entry = archive_entry_new();
		char *in = out;
		size_t used = 0;

		out = g_malloc(room);
		archive_entry_set_pathname(entry, "zeros");
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_write_add_filter_gzip(archive);
		archive_write_set_format_raw(archive);
		archive_write_set_bytes_in_last_block(archive, 1);
		ck_assert_int_eq(archive_write_open_memory(archive, out, room, &used), ARCHIVE_OK);
		ck_assert_int_eq(archive_write_header(archive, entry), ARCHIVE_OK);
		ck_assert_int_eq(archive_write_data(archive, in, bytes), (la_ssize_t)bytes);
		ck_assert_int_eq(archive_write_close(archive), ARCHIVE_OK);
		archive_entry_free(entry);
		archive_write_free(archive);
		g_free(in);
		bytes = used;
	}
	return g_bytes_new_take(out, bytes);
}

/* An ELF file of this type, as far as its kind and size are asked for. */
static GBytes *elf_file(uint16_t type, size_t n)
{
	uint8_t *bytes = g_malloc(n);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)i;
	memcpy(bytes, &(Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F'}, .e_type = type}, sizeof(Elf64_Ehdr));
	return g_bytes_new_take(bytes, n);
}

struct member {
	const char *name;
	GBytes *bytes;
};

/* Adds a cpio archive with them, packed or not. */
static void archive_append(GByteArray *archives, const struct member *members, size_t n, bool packed)
{
	struct archive *archive = archive_write_new();
	g_autofree char *out = g_malloc(ANSWER_BYTES);
	size_t used = 0;

	if (packed)
		archive_write_add_filter_gzip(archive);
	archive_write_set_format_cpio_newc(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	ck_assert_int_eq(archive_write_open_memory(archive, out, ANSWER_BYTES, &used), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *entry = archive_entry_new();
		size_t bytes;
		const void *data = g_bytes_get_data(members[i].bytes, &bytes);

		archive_entry_set_pathname(entry, members[i].name);
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_entry_set_size(entry, (la_int64_t)bytes);
		ck_assert_int_eq(archive_write_header(archive, entry), ARCHIVE_OK);
		ck_assert_int_eq(archive_write_data(archive, data, bytes), (la_ssize_t)bytes);
		archive_entry_free(entry);
	}
	ck_assert_int_eq(archive_write_close(archive), ARCHIVE_OK);
	archive_write_free(archive);
	g_byte_array_append(archives, (const uint8_t *)out, (guint)used);
}

static int ask(enum vprof_parse_what what, GBytes *input, uint64_t answer_bytes, GError **error)
{
	struct vprof_parse_request request = {.what = what, .answer_bytes = answer_bytes};
	size_t n;
	const void *bytes = g_bytes_get_data(input, &n);
	int sealed = sealed_copy("test", bytes, n), answer;

	ck_assert_int_ge(sealed, 0);
	request.bytes = n;
	ck_assert(parser_add_name(&request, "/bin/sh"));
	answer = parser_ask(&request, sealed, error);
	close(sealed);
	return answer;
}

static void assert_refused(enum vprof_parse_what what, GBytes *input, const char *why)
{
	g_autoptr(GError) error = NULL;

	ck_assert_int_eq(ask(what, input, ANSWER_BYTES, &error), -1);
	ck_assert_msg(g_error_matches(error, PARSER_ERROR, PARSER_ERROR_REFUSED), "%s", error->message);
	ck_assert_msg(strstr(error->message, why), "\"%s\" has no \"%s\"", error->message, why);
}

START_TEST(test_answer_is_sealed)
{
	g_autoptr(GBytes) packed = packed_zeros(100000, 1);
	int answer = ask(VPROF_PARSE_UNPACK, packed, ANSWER_BYTES, NULL);

	ck_assert_int_ge(answer, 0);
	ck_assert(sealed_is(answer));
	ck_assert_int_eq(pwrite(answer, "x", 1, 0), -1);
	ck_assert_int_eq(ftruncate(answer, 0), -1);
	g_autoptr(GBytes) bytes = sealed_map(answer);
	close(answer);
	ck_assert_uint_eq(g_bytes_get_size(bytes), 100000);
}
END_TEST

/* No process is left, and a question starts one. */
START_TEST(test_stop)
{
	g_autoptr(GBytes) packed = packed_zeros(1000, 1);

	for (int i = 0; i < 2; i++) {
		parser_stop();
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
		ck_assert_int_eq(errno, ECHILD);
		int answer = ask(VPROF_PARSE_UNPACK, packed, ANSWER_BYTES, NULL);

		ck_assert_int_ge(answer, 0);
		close(answer);
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), 0);
	}
}
END_TEST

static GBytes *answer_to(enum vprof_parse_what what, GBytes *input)
{
	g_autoptr(GError) error = NULL;
	int answer = ask(what, input, ANSWER_BYTES, &error);

	ck_assert_msg(answer >= 0, "%s", error ? error->message : "");
	GBytes *bytes = sealed_map(answer);

	close(answer);
	return bytes;
}

/* All programs of an initramfs at once: the same is found in them as in it, but for what is no program. */
START_TEST(test_programs)
{
	g_autoptr(GBytes) old = elf_file(ET_EXEC, 99), program = elf_file(ET_DYN, 300001),
			  module = elf_file(ET_REL, 5000);
	g_autoptr(GBytes) script = g_bytes_new_static("#!/bin/sh\n", 10);
	const struct member early[] = {{"bin/sh", old}},
			    later[] = {{"a.ko", module}, {"./bin/sh", program}, {"b", script}};
	const struct member last[] = {{"bin/sh", script}};
	g_autoptr(GByteArray) archives = g_byte_array_new();

	archive_append(archives, early, G_N_ELEMENTS(early), false);
	archive_append(archives, later, G_N_ELEMENTS(later), true);
	for (int i = 0; i < 2; i++) {
		g_autoptr(GBytes) input = g_bytes_new(archives->data, archives->len);
		g_autoptr(GBytes) programs = answer_to(VPROF_PARSE_PROGRAMS, input);
		g_autoptr(GBytes) whole = answer_to(VPROF_PARSE_MEMBER, input);

		ck_assert_uint_lt(g_bytes_get_size(programs), 99 + 300001 + 2000);
		if (i == 0) {
			g_autoptr(GBytes) found = answer_to(VPROF_PARSE_MEMBER, programs);

			ck_assert(g_bytes_equal(whole, program) && g_bytes_equal(found, program));
			archive_append(archives, last, G_N_ELEMENTS(last), false);
			continue;
		}
		ck_assert(g_bytes_equal(whole, script));
		int none = ask(VPROF_PARSE_MEMBER, programs, ANSWER_BYTES, NULL);
		struct stat status;

		ck_assert(none >= 0 && fstat(none, &status) == 0);
		ck_assert_int_eq(status.st_size, 0);
		close(none);
	}
	g_byte_array_set_size(archives, archives->len / 2);
	g_autoptr(GBytes) cut = g_bytes_new(archives->data, archives->len);

	assert_refused(VPROF_PARSE_PROGRAMS, cut, "truncated");
}
END_TEST

/* Archives one behind the other, each packed or not: the last one that has the file counts, whatever is before it. */
START_TEST(test_archives)
{
	g_autoptr(GBytes) first = elf_file(ET_EXEC, 70000), second = elf_file(ET_DYN, 99), other = elf_file(ET_DYN, 64);
	const struct member early[] = {{"bin/sh", first}, {"a", other}}, later[] = {{"bin/sh", second}, {"b", other}};
	const uint8_t zeros[512] = {0};
	const bool packed = _i & 1, packed_too = _i & 2, apart = _i & 4;
	g_autoptr(GByteArray) archives = g_byte_array_new();

	archive_append(archives, early, G_N_ELEMENTS(early), packed);
	if (apart)
		g_byte_array_append(archives, zeros, sizeof(zeros));
	archive_append(archives, later, G_N_ELEMENTS(later), packed_too);
	archive_append(archives, &later[1], 1, true);
	g_autoptr(GBytes) input = g_bytes_new(archives->data, archives->len);
	g_autoptr(GBytes) found = answer_to(VPROF_PARSE_MEMBER, input);
	g_autoptr(GBytes) programs = answer_to(VPROF_PARSE_PROGRAMS, input);
	g_autoptr(GBytes) again = answer_to(VPROF_PARSE_MEMBER, programs);

	ck_assert(g_bytes_equal(found, second));
	ck_assert(g_bytes_equal(again, second));
}
END_TEST

/* A thousand to one, what is packed twice, and what is no archive. The next question is answered. */
START_TEST(test_refusals)
{
	g_autoptr(GBytes) bomb = packed_zeros(ANSWER_BYTES + 1, 1), twice = packed_zeros(1000, 2);
	g_autoptr(GBytes) once = packed_zeros(1000, 1), text = g_bytes_new_static("neither", 7);

	assert_refused(VPROF_PARSE_UNPACK, bomb, "more than 1048576 bytes");
	assert_refused(VPROF_PARSE_UNPACK, twice, "packed more than once");
	assert_refused(VPROF_PARSE_MEMBER, text, "Unrecognized archive format");
	assert_refused(VPROF_PARSE_SYMBOLS, text, "neither an ELF file nor a bzImage (7 bytes");
	assert_refused(VPROF_PARSE_FRAMES, text, "neither an ELF file nor a bzImage (7 bytes");
	int answer = ask(VPROF_PARSE_UNPACK, once, ANSWER_BYTES, NULL);

	ck_assert_int_ge(answer, 0);
	close(answer);
}
END_TEST

/* What libarchive starts programs for, by all that it supports: none is started, whatever $PATH says. */
START_TEST(test_other_programs)
{
	static const struct {
		const char *program, *head;
		size_t n;
	} packed[] = {
		{"lrzip", "LRZI\0\6\0\0", 8},
		{"lzop", "\x89LZO\0\r\n\x1a\n", 9},
		{"grzip", "GRZipII\0\2\4:)", 12},
	};
	g_autofree char *folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	g_autofree char *mark = g_build_filename(folder, "executed", NULL);
	g_autofree char *script = g_strdup_printf("#!/bin/sh\n: >%s\n", mark);

	ck_assert(g_setenv("PATH", folder, TRUE)); /* before vprof-parse is started */
	ck_assert_int_eq(chmod(folder, 0755), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(packed); i++) {
		g_autofree char *program = g_build_filename(folder, packed[i].program, NULL);
		uint8_t bytes[512] = {0};

		ck_assert(g_file_set_contents(program, script, -1, NULL));
		ck_assert_int_eq(chmod(program, 0755), 0);
		memcpy(bytes, packed[i].head, packed[i].n);
		g_autoptr(GBytes) input = g_bytes_new(bytes, sizeof(bytes));

		assert_refused(VPROF_PARSE_MEMBER, input, "Unrecognized archive format");
		/* Bytes of no packing that it knows are taken as they are. */
		int answer = ask(VPROF_PARSE_UNPACK, input, ANSWER_BYTES, NULL);

		ck_assert_int_ge(answer, 0);
		g_autoptr(GBytes) same = sealed_map(answer);
		close(answer);
		ck_assert(g_bytes_equal(same, input));
		ck_assert_int_eq(access(mark, F_OK), -1);
		ck_assert_int_eq(unlink(program), 0);
	}
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* Input that may still change is not parsed by a process that trusts it not to. */
START_TEST(test_sealed_memory)
{
	int open_memory = sealed_new("test");

	ck_assert(!sealed_is(open_memory));
	ck_assert(sealed_finish(open_memory));
	ck_assert(sealed_is(open_memory));
	close(open_memory);
}
END_TEST

/* ---- what a child may do ---- */

/* Its wait status, after `fn` in a confined child. */
static int confined(int (*fn)(void))
{
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(confine_child(0, 4096) ? fn() : 100);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

static int open_file(void)
{
	return open("/dev/null", O_RDONLY) < 0 && errno == EPERM ? 0 : 1;
}

static int much_memory(void)
{
#if defined(VPROF_SANITIZED)
	return 0; /* there is no such limit: a sanitizer's shadow memory has terabytes */
#else
	void *at = mmap(NULL, 2 * VPROF_PARSE_MEMORY_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? 0 : 1;
#endif
}

static int make_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int make_process(void)
{
	return (int)fork();
}

static int signal_parent(void)
{
	return kill(getppid(), 0);
}

static int memory; /* made before the child */

/* Up to the limit it is cut short, behind it comes the signal. */
static int write_much(void)
{
	static const char bytes[4097];

	return write(memory, bytes, sizeof(bytes)) == 4096 ? (int)write(memory, bytes, 1) : 1;
}

START_TEST(test_child)
{
	static int (*const killed[])(void) = {make_socket, make_process, signal_parent};

	ck_assert_int_eq(confined(open_file), 0);
	ck_assert_int_eq(confined(much_memory), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(killed); i++) {
		int status = confined(killed[i]);

		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%zu: 0x%x", i, (unsigned)status);
	}
	memory = sealed_new("test");
	int status = confined(write_much);

	close(memory);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ, "0x%x", (unsigned)status);
}
END_TEST

/* ---- the server ---- */

static int server_rights(void)
{
	if (!confine_server())
		return 4;
	if (geteuid() == 0 || getuid() == 0)
		return 1;
	if (open("/etc/passwd", O_RDONLY) >= 0)
		return 2;
	if (open("/x", O_WRONLY | O_CREAT, 0600) >= 0)
		return 3;
	return 0;
}

START_TEST(test_server)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		return; /* what a user may do depends on the host */
	child = fork();
	if (child == 0)
		_exit(server_rights());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* The last test: there is no other parser for this process. */
START_TEST(test_end_of_server)
{
	g_autoptr(GBytes) packed = packed_zeros(1000, 1);
	g_autoptr(GError) error = NULL;
	g_autofree char *children = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
	g_autofree char *text = NULL;
	int answer = ask(VPROF_PARSE_UNPACK, packed, ANSWER_BYTES, NULL);

	ck_assert_int_ge(answer, 0);
	close(answer);
	if (!g_file_get_contents(children, &text, NULL, NULL))
		return; /* a kernel without CONFIG_PROC_CHILDREN */
	ck_assert_int_eq(kill(atoi(text), SIGKILL), 0);
	ck_assert_int_eq(ask(VPROF_PARSE_UNPACK, packed, ANSWER_BYTES, &error), -1);
	ck_assert(g_error_matches(error, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE));
	g_autofree char *reason = g_strdup(error->message);

	g_clear_error(&error);
	ck_assert_int_eq(ask(VPROF_PARSE_UNPACK, packed, ANSWER_BYTES, &error), -1);
	ck_assert(g_error_matches(error, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE));
	ck_assert_str_eq(error->message, reason);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("parser");
	TCase *tcase = tcase_create("parser");

	tcase_add_test(tcase, test_answer_is_sealed);
	tcase_add_test(tcase, test_stop);
	tcase_add_test(tcase, test_programs);
	tcase_add_loop_test(tcase, test_archives, 0, 8);
	tcase_add_test(tcase, test_refusals);
	tcase_add_test(tcase, test_other_programs);
	tcase_add_test(tcase, test_sealed_memory);
	tcase_add_test(tcase, test_child);
	tcase_add_test(tcase, test_server);
	tcase_add_test(tcase, test_end_of_server);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
