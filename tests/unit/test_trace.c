// SPDX-License-Identifier: BSD-2-Clause
/* The engine's trace: what goes in comes out, in whole lines, from any offset, with several writers. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "run_suite.h"
#include "stream/trace.h"

static struct trace *trace;

static void setup(void)
{
	trace = trace_new();
	trace_set(trace, TRACE_CONSOLE, true);
}

static void teardown(void)
{
	trace_free(trace);
}

static char *read_from(uint64_t *offset, size_t room)
{
	char *text = g_malloc(room + 1);
	size_t n = trace_read(trace, offset, text, room);

	text[n] = '\0';
	*offset += n;
	return text;
}

START_TEST(lines_have_time_and_vcpu)
{
	uint64_t offset = 0;

	trace_add(trace, 3, "one\x01\x7f\n");
	trace_add(trace, TRACE_NO_VCPU, "zw\xc3\xb6lf");
	g_autofree char *text = read_from(&offset, 1000);
	ck_assert_msg(
		g_regex_match_simple("\\A\\[\\d+\\.\\d{9}\\]:vcpu3: one\\?\\?\n\\[\\d+\\.\\d{9}\\]:vmm: zwölf\n\\z",
	                             text, 0, 0),
		"%s", text);
	ck_assert_uint_eq(offset, trace_head(trace));
}
END_TEST

START_TEST(a_text_of_several_lines_stays_together)
{
	g_autofree char *text = g_strnfill(3072, 'x');
	uint64_t offset = 0;

	memcpy(text, "one\n\n\tthree\x01", 12);
	text[3000] = text[3071] = '\n';
	trace_add(trace, 3, text);
	g_autofree char *read = read_from(&offset, 8000);
	g_auto(GStrv) lines = g_strsplit(read, "\n", -1);
	size_t head = strcspn(lines[0], ":") + strlen(":vcpu3: ");

	ck_assert_uint_eq(g_strv_length(lines), 5);
	ck_assert_str_eq(lines[0] + head, "one");
	ck_assert_str_eq(lines[1] + head, "");
	ck_assert(g_str_has_prefix(lines[2] + head, "\tthree?xxx"));
	ck_assert_uint_eq(strlen(lines[2] + head), 3000 - 5);
	ck_assert_uint_eq(strlen(lines[3] + head), 70);
	ck_assert_str_eq(lines[4], "");
	for (unsigned i = 1; i < 4; i++)
		ck_assert_int_eq(strncmp(lines[i], lines[0], head), 0); /* the same time */
}
END_TEST

START_TEST(kinds_are_switched)
{
	ck_assert(trace_wants(trace, TRACE_CONSOLE));
	ck_assert(!trace_wants(trace, TRACE_EXITS));
	trace_set(trace, TRACE_CONSOLE, false);
	ck_assert(!trace_wants(trace, TRACE_CONSOLE));
}
END_TEST

START_TEST(reads_end_with_a_line)
{
	uint64_t offset = 0;

	trace_add(trace, 0, "first");
	uint64_t second = trace_head(trace);

	trace_add(trace, 0, "second");
	g_autofree char *one = read_from(&offset, (size_t)second + 5);
	ck_assert(g_str_has_suffix(one, "first\n"));
	ck_assert_uint_eq(offset, second);
	/* One that is longer than the room comes in parts. */
	g_autofree char *part = read_from(&offset, 4);
	ck_assert_uint_eq(strlen(part), 4);
}
END_TEST

START_TEST(characters_are_read_whole)
{
	g_autoptr(GString) all = g_string_new(NULL);
	uint64_t offset = 0;

	trace_add(trace, 0, "zw\xc3\xb6lf \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x84\xf0\x9f\x90\x84.");
	while (offset < trace_head(trace)) {
		g_autofree char *part = read_from(&offset, 4 + all->len % 3);

		ck_assert_str_ne(part, "");
		ck_assert(g_utf8_validate(part, -1, NULL));
		g_string_append(all, part);
	}
	ck_assert_ptr_nonnull(strstr(all->str, ":vcpu0: zwölf 日本 🐄🐄.\n"));

	/* A byte that begins no character is one. */
	trace_add(trace, 0, "\xbf\xbf\xbf\xbf\xff");
	while (offset < trace_head(trace)) {
		g_autofree char *part = read_from(&offset, 4);

		ck_assert_str_ne(part, "");
	}
}
END_TEST

START_TEST(long_lines_are_cut)
{
	g_autofree char *text = g_strnfill(2 * TRACE_TEXT_BYTES_MAX, 'x');
	uint64_t offset = 0;

	trace_add(trace, 63, text);
	g_autofree char *line = read_from(&offset, 4 * TRACE_TEXT_BYTES_MAX);
	ck_assert_uint_eq(strlen(strchr(line, 'x')), TRACE_TEXT_BYTES_MAX + 1);
}
END_TEST

START_TEST(the_newest_displace_the_oldest)
{
	uint64_t offset = 0, lines = 0;

	for (unsigned i = 0; i < 20000; i++) {
		char text[16];

		g_snprintf(text, sizeof(text), "n%06u", i);
		trace_add(trace, 0, text);
	}
	ck_assert_uint_gt(trace_head(trace), 2 * TRACE_BYTES);
	g_autofree char *all = read_from(&offset, TRACE_BYTES);
	ck_assert_int_eq(all[0], '[');
	ck_assert_uint_eq(offset, trace_head(trace));
	for (const char *at = all; (at = strchr(at, '\n')); at++)
		lines++;
	g_autofree char *oldest = g_strdup_printf("n%06u", (unsigned)(20000 - lines));
	ck_assert_msg(strstr(all, oldest) == strchr(all, 'n'), "%.40s is not %s", all, oldest);
}
END_TEST

#define WRITERS 3
#define EACH 20000

static void *writer(void *data)
{
	for (unsigned i = 0; i < EACH; i++)
		trace_add(trace, (uint32_t)(uintptr_t)data, "line of a writer");
	return NULL;
}

/* No writer waits, and each line is whole. */
/* Of a reader that is slow (0), has stopped (1), or begins again where another one died (2). */
START_TEST(lines_are_read_or_missed)
{
	static const unsigned lines = 40000; /* more than the trace keeps */
	uint64_t offset = 0, published = 0, read = 0, missed = 0;

	for (unsigned i = 0; i < lines; i++) {
		trace_add(trace, 0, "a line that is to be read");
		if (_i == 1 || i % 100 != 0)
			continue;
		g_autofree char *text = read_from(&offset, 1000);

		read += strlen(text);
		missed += offset - strlen(text) - published;
		published = offset;
		if (_i == 2)
			g_free(read_from(&offset, 1000)); /* dies before it says so */
		offset = published;
	}
	while (offset < trace_head(trace)) {
		g_autofree char *text = read_from(&offset, 16384);

		read += strlen(text);
		missed += offset - strlen(text) - published;
		published = offset;
	}
	ck_assert_uint_eq(read + missed, trace_head(trace));
	ck_assert_uint_gt(missed, 0);
	ck_assert_uint_eq(trace_dropped(trace), 0);
}
END_TEST

START_TEST(writers_do_not_mix)
{
	pthread_t threads[WRITERS];
	uint64_t offset = 0;

	for (uintptr_t i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, writer, (void *)i), 0);
	for (unsigned i = 0; i < 200; i++)
		g_free(read_from(&offset, 4096));
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	offset = 0;
	g_autofree char *all = read_from(&offset, TRACE_BYTES);
	g_auto(GStrv) lines = g_strsplit(g_strchomp(all), "\n", -1);
	for (char **line = lines; *line; line++)
		ck_assert_msg(
			g_regex_match_simple("\\A\\[\\d+\\.\\d{9}\\]:vcpu[0-2]: line of a writer\\z", *line, 0, 0),
			"%s", *line);
	ck_assert_uint_le(trace_dropped(trace), WRITERS * EACH);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("trace");
	TCase *tc = tcase_create("trace");

	tcase_set_timeout(tc, 40);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, lines_have_time_and_vcpu);
	tcase_add_test(tc, a_text_of_several_lines_stays_together);
	tcase_add_test(tc, kinds_are_switched);
	tcase_add_test(tc, reads_end_with_a_line);
	tcase_add_test(tc, characters_are_read_whole);
	tcase_add_test(tc, long_lines_are_cut);
	tcase_add_test(tc, the_newest_displace_the_oldest);
	tcase_add_loop_test(tc, lines_are_read_or_missed, 0, 3);
	tcase_add_test(tc, writers_do_not_mix);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
