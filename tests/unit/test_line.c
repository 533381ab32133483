// SPDX-License-Identifier: BSD-2-Clause
/* Lines of numbers and texts, against printf(3). */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "ui/line.h"

static void assert_line(struct line *line, const char *expected)
{
	ck_assert_uint_eq(line->n, strlen(expected));
	ck_assert_mem_eq(line->text, expected, line->n);
	line->n = 0;
}

START_TEST(numbers_are_as_printf_prints_them)
{
	static const uint64_t values[] = {0,
	                                  1,
	                                  9,
	                                  10,
	                                  15,
	                                  16,
	                                  99,
	                                  255,
	                                  999999999,
	                                  1000000000,
	                                  UINT32_MAX,
	                                  INT64_MAX,
	                                  UINT64_C(0x8000000000000000),
	                                  UINT64_MAX};
	struct line line = {0};
	char expected[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		for (int digits = 1; digits <= 20; digits++) {
			line_number(&line, values[i], (unsigned)digits);
			snprintf(expected, sizeof(expected), "%0*" PRIu64, digits, values[i]);
			assert_line(&line, expected);
			line_hex(&line, values[i], (unsigned)digits);
			snprintf(expected, sizeof(expected), "%0*" PRIx64, digits, values[i]);
			assert_line(&line, expected);
		}
		line_signed(&line, (int64_t)values[i]);
		snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)values[i]);
		assert_line(&line, expected);
	}
	line_deinit(&line);
}
END_TEST

START_TEST(a_line_grows_and_is_used_again)
{
	struct line line = {0};
	char *written = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&written, &n);

	for (int i = 0; i < 2; i++) {
		for (int words = 0; words < 1000; words++)
			line_text(&line, "word ");
		const size_t start = line.n;

		line_text(&line, "user");
		line_pad(&line, start, 6);
		line_end(&line, to);
	}
	line_flush(&line, to);
	fclose(to);
	ck_assert_uint_eq(n, 2 * (5000 + 6 + 1));
	ck_assert_str_eq(written + n - 12, "word user  \n");
	line_deinit(&line);
	free(written);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("line");
	TCase *tests = tcase_create("line");

	tcase_add_test(tests, numbers_are_as_printf_prints_them);
	tcase_add_test(tests, a_line_grows_and_is_used_again);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
