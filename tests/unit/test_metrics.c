// SPDX-License-Identifier: BSD-2-Clause
/* Metrics among a workload's output: as they may be written, in pieces, and what only looks like them. */
#include <check.h>
#include <glib.h>
#include <string.h>

#include "lib/agent/metrics.h"
#include "run_suite.h"

static struct metrics *metrics;

static void setup(void)
{
	metrics = metrics_new();
}

static void teardown(void)
{
	metrics_free(metrics);
}

static void put(const char *text)
{
	metrics_put(metrics, 0, (const uint8_t *)text, strlen(text));
}

static void assert_metric(size_t i, const char *name, double value, const char *unit)
{
	ck_assert_uint_lt(i, metrics_count(metrics));
	ck_assert_str_eq(metrics_get(metrics, i)->name, name);
	ck_assert_double_eq(metrics_get(metrics, i)->value, value);
	ck_assert_str_eq(metrics_get(metrics, i)->unit, unit);
}

START_TEST(among_other_output)
{
	put("starting\nvprof: metric requests=1200 1/s\n  vprof: metric indented=1 x\nvprof: metric p99.9=0.25 ms\r\n"
	    "vprof: metrics are great\nvprof: metric plain=1e3\n");
	ck_assert_uint_eq(metrics_count(metrics), 3);
	assert_metric(0, "requests", 1200, "1/s");
	assert_metric(1, "p99.9", 0.25, "ms");
	assert_metric(2, "plain", 1000, "");
	ck_assert_ptr_null(metrics_problem(metrics));
}
END_TEST

START_TEST(byte_by_byte)
{
	static const char text[] = "vprof: metric a=1 x\nnoise\nvprof: metric b=2 y";

	for (size_t i = 0; i < strlen(text); i++)
		metrics_put(metrics, 1, (const uint8_t *)text + i, 1);
	ck_assert_uint_eq(metrics_count(metrics), 1);
	metrics_end(metrics);
	ck_assert_uint_eq(metrics_count(metrics), 2);
	assert_metric(0, "a", 1, "x");
	assert_metric(1, "b", 2, "y");
}
END_TEST

/* A line of one stream does not go on in the other. */
START_TEST(two_streams)
{
	metrics_put(metrics, 0, (const uint8_t *)"vprof: metric a=", 16);
	metrics_put(metrics, 1, (const uint8_t *)"vprof: metric b=2\n", 18);
	metrics_put(metrics, 0, (const uint8_t *)"1\n", 2);
	assert_metric(0, "b", 2, "");
	assert_metric(1, "a", 1, "");
}
END_TEST

START_TEST(the_last_value_counts)
{
	put("vprof: metric a=1 x\nvprof: metric b=2 x\nvprof: metric a=3 y\n");
	ck_assert_uint_eq(metrics_count(metrics), 2);
	assert_metric(0, "a", 3, "y");
}
END_TEST

static const struct {
	const char *line, *problem;
} refused[] = {
	{"vprof: metric \n", "NAME=VALUE"},
	{"vprof: metric a\n", "NAME=VALUE"},
	{"vprof: metric =1\n", "NAME=VALUE"},
	{"vprof: metric a b=1\n", "NAME=VALUE"},
	{"vprof: metric \033[31m=1\n", "NAME=VALUE"},
	{"vprof: metric n012345678901234567890123456789012345678901234567890123456789012=1\n", "of up to 63"},
	{"vprof: metric a=\n", "not a decimal"},
	{"vprof: metric a=-1\n", "not a decimal"},
	{"vprof: metric a=nan\n", "not a decimal"},
	{"vprof: metric a=0x10\n", "not a decimal"},
	{"vprof: metric a=1e999\n", "not a decimal"},
	{"vprof: metric a=.\n", "not a decimal"},
	{"vprof: metric a=1ms\n", "not a decimal"},
	{"vprof: metric a=1 two words\n", "unit"},
	{"vprof: metric a=1 0123456789012345\n", "unit"},
	{"vprof: metric a=1 \303\244\n", "unit"},
};

START_TEST(no_metric)
{
	put(refused[_i].line);
	ck_assert_uint_eq(metrics_count(metrics), 0);
	ck_assert_ptr_nonnull(metrics_problem(metrics));
	ck_assert_ptr_nonnull(strstr(metrics_problem(metrics), refused[_i].problem));
}
END_TEST

START_TEST(too_long)
{
	g_autofree char *fill = g_strnfill(200, '0');
	g_autofree char *line = g_strconcat("vprof: metric a=1", fill, "\nvprof: metric b=1\n", NULL);

	put(line);
	ck_assert_uint_eq(metrics_count(metrics), 1);
	assert_metric(0, "b", 1, "");
	ck_assert_str_eq(metrics_problem(metrics), "the line is longer than 200 bytes");
}
END_TEST

START_TEST(too_many)
{
	for (unsigned i = 0; i <= METRICS_MAX; i++) {
		g_autofree char *line = g_strdup_printf("vprof: metric m%u=%u\n", i, i);

		ck_assert_ptr_null(metrics_problem(metrics));
		put(line);
	}
	ck_assert_uint_eq(metrics_count(metrics), METRICS_MAX);
	assert_metric(METRICS_MAX - 1, "m63", 63, "");
	ck_assert_ptr_nonnull(metrics_problem(metrics));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tests = tcase_create("metrics");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, among_other_output);
	tcase_add_test(tests, byte_by_byte);
	tcase_add_test(tests, two_streams);
	tcase_add_test(tests, the_last_value_counts);
	tcase_add_loop_test(tests, no_metric, 0, G_N_ELEMENTS(refused));
	tcase_add_test(tests, too_long);
	tcase_add_test(tests, too_many);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
