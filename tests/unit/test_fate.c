// SPDX-License-Identifier: BSD-2-Clause
/* What has become of functions that only one side has. */
#include <check.h>

#include "lib/profile/comparison.h"
#include "run_suite.h"

#include <glib.h>

#define REPETITIONS 8u

static struct measurements *base, *now;
static struct comparison *comparison;

static void setup(void)
{
	base = measurements_new("ns", REPETITIONS);
	now = measurements_new("ns", REPETITIONS);
	comparison = NULL;
}

static void teardown(void)
{
	comparison_free(comparison);
	measurements_free(base);
	measurements_free(now);
}

static void add_in(struct measurements *to, const char *name, const char *module, double time)
{
	struct series *series = measurements_add_function(to, name, module, PROFILE_KERNEL);
	struct series *total = measurements_add_metric(to, "total", "ns");

	for (unsigned i = 0; i < REPETITIONS; i++) {
		series->values[i] = time * (1 + i * 1e-6);
		total->values[i] += series->values[i];
	}
}

static void add(struct measurements *to, const char *name, double time)
{
	add_in(to, name, "[kernel]", time);
}

static void compare(void)
{
	comparison = comparison_new(base, now, &(struct comparison_options){.alpha = 0.01});
}

/* "gone: a; inlined: b into c", in the order of the fates. */
static void check_fates(const char *expected)
{
	g_autoptr(GString) text = g_string_new(NULL);
	size_t n_all = 0;

	compare();
	for (enum fate fate = FATE_RENAMED; fate <= FATE_GONE; fate++) {
		size_t n;
		const struct change *changes = comparison_only(comparison, fate, &n);

		n_all += n;
		for (size_t i = 0; i < n; i++) {
			const struct series *other =
				changes[i].fate == FATE_RENAMED ? changes[i].now : changes[i].other;

			ck_assert_int_eq(changes[i].fate, fate);
			g_string_append_printf(text, "%s%s %s%s%s", text->len != 0 ? ", " : "", fate_name(fate),
			                       change_series(&changes[i])->name, other ? " " : "",
			                       other ? other->name : "");
		}
	}
	ck_assert_str_eq(text->str, expected);
	ck_assert_uint_eq(n_all, comparison->n_only);
}

static const struct {
	const char *base, *now;
	double now_time; /* base: 100 */
	bool is_renamed;
} names[] = {
	{"hash_blocks", "__hash_blocks", 100, true},
	{"hash_blocks", "do_hash_blocks_fast", 100, true},
	{"hash_blocks", "hash_block", 100, true},
	{"parse_v1", "parse_v2", 100, true},
	{"alloc_pages", "__alloc_pages_noprof", 100, true}, /* words: a half is enough */
	{"hash_blocks", "hash_blocks_of_all_files", 100, false},
	{"read", "treadle", 100, false}, /* no word of its own */
	{"hash_blocks", "hash_tables", 100, false},
	{"sort", "mix", 100, false},
	{"a", "b", 100, false},
	{"hash_blocks", "__hash_blocks", 199, true},
	{"hash_blocks", "__hash_blocks", 201, false},
	{"hash_blocks", "__hash_blocks", 51, true},
	{"hash_blocks", "__hash_blocks", 49, false},
};

START_TEST(test_names)
{
	g_autofree char *renamed = g_strdup_printf("renamed %s %s", names[_i].base, names[_i].now);
	g_autofree char *apart = g_strdup_printf("new %s, gone %s", names[_i].now, names[_i].base);

	add(base, names[_i].base, 100);
	add(now, names[_i].now, names[_i].now_time);
	check_fates(names[_i].is_renamed ? renamed : apart);
}
END_TEST

START_TEST(test_rename_is_compared)
{
	const struct change *change;
	size_t n;

	add(base, "hash_blocks", 100);
	add(now, "__hash_blocks", 110);
	compare();
	change = comparison_only(comparison, FATE_RENAMED, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert(change->shift.low > 9.9 && change->shift.low <= change->shift.estimate);
	ck_assert(change->shift.high < 10.1 && change->shift.high >= change->shift.estimate);
}
END_TEST

/* The nearest name, whatever the order; what is left is new. */
START_TEST(test_nearest_name)
{
	add(base, "sum_blocks_a", 120);
	add(base, "sum_blocks_b", 100);
	add(now, "sum_blocks_b2", 110);
	check_fates("renamed sum_blocks_b sum_blocks_b2, gone sum_blocks_a");
}
END_TEST

START_TEST(test_modules)
{
	add_in(base, "crc32", "libz", 100);
	add_in(now, "crc32", "[kernel]", 100);
	add_in(base, "inflate", "libz", 50);
	add_in(now, "inflate_fast", "[kernel]", 50);
	check_fates("renamed crc32 crc32, new inflate_fast, gone inflate");
}
END_TEST

/* One that a caller has grown by; give or take a quarter. */
START_TEST(test_inlined)
{
	static const struct {
		double growth;
		const char *fate;
	} growths[] = {
		{100, "inlined helper caller"}, {76, "inlined helper caller"},
		{124, "inlined helper caller"}, {74, "gone helper"},
		{126, "gone helper"},           {-100, "gone helper"},
	};

	add(base, "helper", 100);
	add(base, "caller", 500);
	add(now, "caller", 500 + growths[_i].growth);
	check_fates(growths[_i].fate);
}
END_TEST

START_TEST(test_split)
{
	add(base, "caller", 500);
	add(now, "caller", 420);
	add(now, "tail", 80);
	check_fates("split tail caller");
}
END_TEST

/* Each takes one, and the nearest. */
START_TEST(test_inlined_once)
{
	add(base, "lookup", 100);
	add(base, "compare", 90);
	add(base, "caller", 500);
	add(now, "caller", 592);
	check_fates("inlined compare caller, gone lookup");
}
END_TEST

START_TEST(test_other_module_takes_nothing)
{
	add(base, "helper", 100);
	add_in(base, "caller", "ext4", 500);
	add_in(now, "caller", "ext4", 600);
	check_fates("gone helper");
}
END_TEST

/* Of one repetition nothing stands: that another has grown is not shown. */
START_TEST(test_growth_must_stand)
{
	struct series *caller;

	add(base, "helper", 100);
	add(base, "caller", 500);
	add(now, "caller", 600);
	caller = g_ptr_array_index(now->functions, 0);
	for (unsigned i = 0; i < REPETITIONS / 2; i++)
		caller->values[i] = 400;
	check_fates("gone helper");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fate");
	TCase *tests = tcase_create("fate");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, test_names, 0, (int)G_N_ELEMENTS(names));
	tcase_add_test(tests, test_rename_is_compared);
	tcase_add_test(tests, test_nearest_name);
	tcase_add_test(tests, test_modules);
	tcase_add_loop_test(tests, test_inlined, 0, 6);
	tcase_add_test(tests, test_split);
	tcase_add_test(tests, test_inlined_once);
	tcase_add_test(tests, test_other_module_takes_nothing);
	tcase_add_test(tests, test_growth_must_stand);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
