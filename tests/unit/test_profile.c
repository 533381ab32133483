// SPDX-License-Identifier: BSD-2-Clause
/* Histograms against sums made by hand, columns, modes and resolvers. */
#include <check.h>
#include <vprof/exit.h>

#include "lib/profile/histogram.h"
#include "recording_resolver.h"
#include "run_suite.h"

static const char *const event_names[] = {"task-clock", "cycles"};

static void add(struct histogram *histogram, uint16_t misc, uint64_t ip, uint32_t cpu, uint64_t period, unsigned event)
{
	histogram_add(histogram, &(struct record_sample){.misc = misc, .ip = ip, .cpu = cpu, .period = period}, event);
}

static struct column_list columns_of(const char *text)
{
	struct column_list list;
	GError *error = NULL;

	ck_assert_msg(column_list_parse(text, &list, &error), "%s", error ? error->message : "");
	return list;
}

START_TEST(addresses_of_a_symbol_are_one_row)
{
	struct histogram *histogram = histogram_new(NULL, 0);
	struct column_list list = columns_of("sym,module");
	size_t n;

	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT + 0x20, 0, 5, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT + 0x3f, 1, 7, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT + 0x100, 0, 20, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT + 0x40, 0, 1, 0); /* behind the symbol */
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);

	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(rows[0].symbol, "in_module");
	ck_assert_str_eq(rows[0].module, "ext4");
	ck_assert_uint_eq(rows[0].period, 20);
	ck_assert_str_eq(rows[1].symbol, "second");
	ck_assert_str_eq(rows[1].module, "[kernel]");
	ck_assert_uint_eq(rows[1].samples, 2);
	ck_assert_uint_eq(rows[1].period, 12);
	ck_assert_str_eq(rows[2].symbol, "[unknown]");
	ck_assert_uint_eq(histogram_samples(histogram), 4);
	ck_assert_uint_eq(histogram_period(histogram), 33);
	g_free(rows);
	histogram_free(histogram);
}
END_TEST

START_TEST(modes_events_and_vcpus_are_told_apart)
{
	struct histogram *histogram = histogram_new(NULL, COLUMN_KEY_CPU);
	struct column_list list = columns_of("mode,event,cpu");
	size_t n;

	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT, 0, 4, 0);
	add(histogram, PERF_RECORD_MISC_USER, TEXT, 0, 3, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT, 0, 2, 1);
	add(histogram, PERF_RECORD_MISC_KERNEL, TEXT, 3, 1, 1);
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);

	ck_assert_uint_eq(n, 4);
	ck_assert_int_eq(rows[1].mode, PROFILE_USER);
	ck_assert_str_eq(rows[2].event, "cycles");
	ck_assert_uint_eq(rows[3].cpu, 3);
	g_free(rows);
	histogram_free(histogram);
}
END_TEST

START_TEST(rows_of_one_size_are_in_the_order_of_the_list)
{
	struct histogram *histogram = histogram_new(NULL, COLUMN_KEY_CPU);
	struct column_list list = columns_of("cpu,ip");
	size_t n;

	add(histogram, PERF_RECORD_MISC_KERNEL, 9, 1, 1, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, 8, 1, 1, 0);
	add(histogram, PERF_RECORD_MISC_KERNEL, 10, 0, 1, 0);
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(rows[0].ip, 10);
	ck_assert_uint_eq(rows[1].ip, 8);
	ck_assert_uint_eq(rows[2].ip, 9);
	g_free(rows);
	histogram_free(histogram);
}
END_TEST

/* More distinct addresses than the table has at first, many times over. */
START_TEST(nothing_is_lost_when_the_table_grows)
{
	enum { ADDRESSES = 100000, TURNS = 3 };
	struct histogram *histogram = histogram_new(NULL, 0);
	struct column_list list = columns_of("ip");
	size_t n, n_addresses;

	for (unsigned turn = 0; turn < TURNS; turn++)
		for (uint64_t i = 0; i < ADDRESSES; i++)
			add(histogram, PERF_RECORD_MISC_KERNEL, TEXT + i * 16, 0, i, 0);
	add(histogram, PERF_RECORD_MISC_HYPERVISOR, vprof_exit_ip(2, 0x3f8), 0, 1, 0);
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);
	struct histogram_hit *addresses = histogram_hits(histogram, &n_addresses);

	ck_assert_uint_eq(n, ADDRESSES + 1);
	ck_assert_uint_eq(n_addresses, ADDRESSES);
	ck_assert_uint_eq(histogram_samples(histogram), ADDRESSES * TURNS + 1);
	for (size_t i = 0; i < ADDRESSES - 1; i++) {
		ck_assert_uint_eq(rows[i].samples, TURNS);
		ck_assert_uint_eq(rows[i].period, (rows[i].ip - TEXT) / 16 * TURNS);
	}
	g_free(addresses);
	g_free(rows);
	histogram_free(histogram);
}
END_TEST

START_TEST(an_empty_histogram_has_no_rows)
{
	struct histogram *histogram = histogram_new(NULL, 0);
	struct column_list list = columns_of("sym");
	size_t n, n_addresses;

	g_free(histogram_rows(histogram, &list, resolver, event_names, &n));
	g_free(histogram_hits(histogram, &n_addresses));
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(n_addresses, 0);
	histogram_free(histogram);
}
END_TEST

START_TEST(an_exit_is_named_after_its_reason)
{
	struct place place;

	resolver_find(resolver, PROFILE_HYPERVISOR, vprof_exit_ip(2, 0x3f8), NULL, &place);
	ck_assert_str_eq(place.symbol, "exit:io:0x3f8");
	ck_assert_str_eq(place.module, "[vmm]");
	ck_assert(place.known);
	resolver_find(resolver, PROFILE_USER, 0x1234, NULL, &place);
	ck_assert_str_eq(place.symbol, "[unknown]");
	ck_assert_str_eq(place.module, "[user]");
	ck_assert(!place.known);
	resolver_find(resolver, PROFILE_KERNEL, TEXT + 0x25, NULL, &place);
	ck_assert_str_eq(place.symbol, "second");
	ck_assert_uint_eq(place.offset, 5);
}
END_TEST

START_TEST(real_mode_is_said_of_its_addresses_only)
{
	struct place place;

	resolver_find(resolver, PROFILE_KERNEL, VPROF_REAL_MODE | 0xfffffff0, NULL, &place);
	ck_assert_str_eq(place.symbol, "real mode");
	ck_assert_str_eq(place.module, "[real mode]");
	ck_assert_uint_eq(place.offset, 0xfffffff0);
	ck_assert(place.known);
	resolver_find(resolver, PROFILE_KERNEL, 0xfffffff0, NULL, &place);
	ck_assert_str_eq(place.symbol, "[unknown]");
	resolver_find(resolver, PROFILE_USER, VPROF_REAL_MODE, NULL, &place);
	ck_assert_str_eq(place.symbol, "[unknown]");
}
END_TEST

START_TEST(modes_of_every_cpumode)
{
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_KERNEL), PROFILE_KERNEL);
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_GUEST_KERNEL), PROFILE_KERNEL);
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP), PROFILE_USER);
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_GUEST_USER), PROFILE_USER);
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_HYPERVISOR), PROFILE_HYPERVISOR);
	ck_assert_int_eq(profile_mode_of(PERF_RECORD_MISC_CPUMODE_UNKNOWN), PROFILE_OTHER);
}
END_TEST

/* Room for a record with a text of some 40 characters. */
typedef uint64_t record_buffer[16];

static void take(struct names *names, const uint64_t *record, size_t bytes)
{
	ck_assert_uint_ne(bytes, 0);
	names_take(names, (const struct perf_event_header *)record, bytes, VPROF_SAMPLE_TYPE);
}

static void take_comm(struct names *names, uint32_t tid, uint64_t time_ns, const char *comm)
{
	const struct record_comm said = {.pid = 1, .tid = tid, .comm = {comm}};
	const struct record_id id = {.time_ns = time_ns};

	record_buffer record;

	take(names, record, record_comm_encode(&said, &id, record, sizeof(record)));
}

static void take_cgroup(struct names *names, uint64_t cgroup, uint64_t time_ns, const char *path)
{
	const struct record_cgroup said = {cgroup, {path}};
	const struct record_id id = {.time_ns = time_ns};

	record_buffer record;

	take(names, record, record_cgroup_encode(&said, &id, record, sizeof(record)));
}

static void take_mapping(struct names *names, uint32_t pid, uint64_t start, uint64_t time_ns, const char *file)
{
	const struct record_mmap said = {.mode = PERF_RECORD_MISC_USER,
	                                 .pid = pid,
	                                 .tid = pid,
	                                 .start = start,
	                                 .bytes = 0x1000,
	                                 .file_name = {file}};
	const struct record_id id = {.time_ns = time_ns};

	record_buffer record;

	take(names, record, record_mmap_encode(&said, &id, record, sizeof(record)));
}

START_TEST(comms_go_by_thread_and_time)
{
	static const struct {
		uint32_t tid;
		uint64_t time_ns;
		const char *comm;
	} cases[] = {{7, 99, ":7"},  {7, 100, "early"},        {7, 299, "early"},   {7, 300, "latest"},
	             {9, 500, ":9"}, {8, UINT64_MAX, "other"}, {0, 500, "swapper"}, {UINT32_MAX, 500, ":-1"}};
	struct names *names = names_new();

	take_comm(names, 7, 300, "late");
	take_comm(names, 7, 100, "early");
	take_comm(names, 8, 100, "other");
	take_comm(names, 7, 300, "latest");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_str_eq(names_comm(names, cases[i].tid, cases[i].time_ns), cases[i].comm);
	names_take_comm(names, 0, 0, untrusted("guest"));
	ck_assert_str_eq(names_comm(names, 0, 500), "guest");
	names_free(names);
}
END_TEST

static struct record_sample in_cgroup(uint64_t cgroup, uint64_t time_ns)
{
	return (struct record_sample){
		.ip = 0x1000, .time_ns = time_ns, .period = 1, .has_cgroup = true, .cgroup = cgroup};
}

START_TEST(paths_go_by_cgroup_and_time)
{
	static const struct {
		uint64_t cgroup, time_ns;
		const char *path;
	} cases[] = {{7, 99, "[unknown]"}, {7, 100, "/a"},        {7, 299, "/a"},       {7, 300, "/a/b"},
	             {1, 5, "/"},          {9, 500, "[unknown]"}, {0, 500, "[unknown]"}};
	struct names *names = names_new();
	struct record_sample none = in_cgroup(7, 200);

	take_cgroup(names, 7, 300, "/a/b");
	take_cgroup(names, 7, 100, "/a");
	take_cgroup(names, 1, 0, "/");
	take_cgroup(names, 0, 0, "/nothing");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct record_sample sample = in_cgroup(cases[i].cgroup, cases[i].time_ns);

		ck_assert_str_eq(names_cgroup(names, &sample), cases[i].path);
	}
	none.has_cgroup = false;
	ck_assert_str_eq(names_cgroup(names, &none), "[unknown]");
	names_free(names);
}
END_TEST

/* A thread and a cgroup of one number, and a mapping: one record does not stand for another. */
START_TEST(names_of_all_kinds_are_taken)
{
	const struct record_sample sample = in_cgroup(7, 10);
	struct names *names = names_new();

	record_buffer record;
	const struct mapping *mapping;

	take_comm(names, 7, 5, "sh");
	take_cgroup(names, 7, 5, "/a");
	take_mapping(names, 1, 0x400000, 5, "/bin/sh");
	take(names, record,
	     record_lost_encode(&(struct record_lost){.lost = 3}, &(struct record_id){.time_ns = 6}, record,
	                        sizeof(record)));
	ck_assert_str_eq(names_comm(names, 7, 10), "sh");
	ck_assert_str_eq(names_cgroup(names, &sample), "/a");
	mapping = names_mapping(names, PROFILE_USER, 1, 0x400010, 10);
	ck_assert_ptr_nonnull(mapping);
	ck_assert_str_eq(mapping->file->name, "/bin/sh");
	ck_assert_ptr_null(names_mapping(names, PROFILE_USER, 1, 0x400010, 4));
	names_free(names);
}
END_TEST

/* In a recording without times, all records count from the start. */
START_TEST(a_record_without_time_counts_from_the_start)
{
	const struct record_comm said = {.tid = 7, .comm = {"sh"}};
	const struct record_id id = {.time_ns = 100};
	struct names *names = names_new();

	record_buffer record;
	size_t bytes = record_comm_encode(&said, &id, record, sizeof(record));

	names_take(names, (const struct perf_event_header *)record, bytes, PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	ck_assert_str_eq(names_comm(names, 7, 0), "sh");
	names_free(names);
}
END_TEST

START_TEST(tasks_are_told_apart_when_asked)
{
	struct names *names = names_new();
	struct column_list list = columns_of("comm,pid,tid");
	struct histogram *histogram = histogram_new(names, column_list_keys(&list));
	size_t n;

	take_comm(names, 5, 0, "sh");
	take_comm(names, 5, 50, "ls");
	take_comm(names, 6, 0, "sh");
	for (unsigned i = 0; i < 10; i++)
		histogram_add(histogram,
		              &(struct record_sample){.ip = TEXT,
		                                      .misc = PERF_RECORD_MISC_KERNEL,
		                                      .pid = 5,
		                                      .tid = i < 3 ? 6 : 5,
		                                      .time_ns = i * 10,
		                                      .period = 1},
		              0);
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);

	ck_assert_uint_eq(n, 3);
	ck_assert_str_eq(rows[0].comm, "ls");
	ck_assert_uint_eq(rows[0].samples, 5);
	ck_assert_uint_eq(rows[1].tid, 6);
	ck_assert_uint_eq(rows[1].samples, 3);
	ck_assert_str_eq(rows[2].comm, "sh");
	ck_assert_uint_eq(rows[2].tid, 5);
	ck_assert_uint_eq(rows[2].samples, 2);
	g_free(rows);
	list = columns_of("comm");
	rows = histogram_rows(histogram, &list, resolver, event_names, &n);
	ck_assert_uint_eq(n, 2);
	g_free(rows);
	histogram_free(histogram);
	names_free(names);
}
END_TEST

START_TEST(cgroups_are_told_apart_when_asked)
{
	struct names *names = names_new();
	struct column_list list = columns_of("cgroup");
	struct histogram *histogram = histogram_new(names, column_list_keys(&list));
	size_t n;

	take_cgroup(names, 7, 0, "/a");
	take_cgroup(names, 8, 0, "/a");
	take_cgroup(names, 9, 0, "/b");
	for (uint64_t i = 0; i < 12; i++) {
		const struct record_sample sample = in_cgroup(7 + i % 3, i);

		histogram_add(histogram, &sample, 0);
	}
	struct profile_row *rows = histogram_rows(histogram, &list, resolver, event_names, &n);

	ck_assert_uint_eq(n, 2); /* of one path, however many cgroups had it */
	ck_assert_str_eq(rows[0].cgroup, "/a");
	ck_assert_uint_eq(rows[0].samples, 8);
	ck_assert_str_eq(rows[1].cgroup, "/b");
	ck_assert_uint_eq(rows[1].samples, 4);
	g_free(rows);
	histogram_free(histogram);
	names_free(names);
}
END_TEST

START_TEST(columns_are_parsed_or_refused)
{
	static const struct {
		const char *text;
		enum column_error code;
	} refused[] = {
		{"", COLUMN_ERROR_UNKNOWN},         {"symbols", COLUMN_ERROR_UNKNOWN}, {"sym,", COLUMN_ERROR_UNKNOWN},
		{"sym,,cpu", COLUMN_ERROR_UNKNOWN}, {"cpu,cpu", COLUMN_ERROR_TWICE},
	};
	struct column_list list = columns_of("ip,mode");

	ck_assert_uint_eq(list.n, 2);
	ck_assert_str_eq(list.column[0]->name, "ip");
	ck_assert(column_list_has(&list, "mode"));
	ck_assert(!column_list_has(&list, "sym"));
	for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
		GError *error = NULL;

		ck_assert(!column_list_parse(refused[i].text, &list, &error));
		ck_assert(g_error_matches(error, COLUMN_ERROR, (int)refused[i].code));
		ck_assert_uint_eq(list.n, 2);
		g_error_free(error);
	}
}
END_TEST

START_TEST(every_column_is_listed_and_taken)
{
	g_auto(GStrv) names = g_strsplit(COLUMN_NAMES, ", ", -1);
	g_autofree char *all = g_strjoinv(",", names);

	ck_assert_uint_eq(g_strv_length(names), n_columns);
	for (size_t i = 0; i < n_columns; i++)
		ck_assert_str_eq(names[i], columns[i].name);
	ck_assert_uint_eq(columns_of(all).n, n_columns);
}
END_TEST

START_TEST(a_column_has_a_text_or_a_number)
{
	for (size_t i = 0; i < n_columns; i++)
		ck_assert((!columns[i].text) != (!columns[i].number));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile");
	TCase *tests = tcase_create("profile");

	tcase_add_checked_fixture(tests, resolver_setup, resolver_teardown);
	tcase_add_test(tests, addresses_of_a_symbol_are_one_row);
	tcase_add_test(tests, modes_events_and_vcpus_are_told_apart);
	tcase_add_test(tests, rows_of_one_size_are_in_the_order_of_the_list);
	tcase_add_test(tests, nothing_is_lost_when_the_table_grows);
	tcase_add_test(tests, an_empty_histogram_has_no_rows);
	tcase_add_test(tests, an_exit_is_named_after_its_reason);
	tcase_add_test(tests, real_mode_is_said_of_its_addresses_only);
	tcase_add_test(tests, modes_of_every_cpumode);
	tcase_add_test(tests, comms_go_by_thread_and_time);
	tcase_add_test(tests, tasks_are_told_apart_when_asked);
	tcase_add_test(tests, cgroups_are_told_apart_when_asked);
	tcase_add_test(tests, paths_go_by_cgroup_and_time);
	tcase_add_test(tests, names_of_all_kinds_are_taken);
	tcase_add_test(tests, a_record_without_time_counts_from_the_start);
	tcase_add_test(tests, columns_are_parsed_or_refused);
	tcase_add_test(tests, every_column_is_listed_and_taken);
	tcase_add_test(tests, a_column_has_a_text_or_a_number);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
