// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_aggregate.h"

#include <inttypes.h>
#include <string.h>

#define BAR_COLUMNS 50u

struct trace_counts {
	const char *fields;
	GHashTable *counts; /* key to uint64_t * */
};

struct trace_counts *trace_counts_new(const char *fields)
{
	struct trace_counts *counts = g_new(struct trace_counts, 1);

	*counts = (struct trace_counts){.fields = fields,
	                                .counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
	return counts;
}

void trace_counts_free(struct trace_counts *counts)
{
	if (!counts)
		return;
	g_hash_table_unref(counts->counts);
	g_free(counts);
}

void trace_counts_add(struct trace_counts *counts, const char *key, uint64_t n)
{
	uint64_t *count = g_hash_table_lookup(counts->counts, key);

	if (!count) {
		count = g_new0(uint64_t, 1);
		g_hash_table_insert(counts->counts, g_strdup(key), count);
	}
	*count += n;
}

struct row {
	const char *key;
	uint64_t count;
};

static gint compare_rows(gconstpointer a, gconstpointer b)
{
	const struct row *first = a, *second = b;

	if (first->count != second->count)
		return first->count < second->count ? 1 : -1;
	return strcmp(first->key, second->key);
}

static GArray *sorted_rows(const struct trace_counts *counts)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct row));
	GHashTableIter iter;
	gpointer key, count;

	g_hash_table_iter_init(&iter, counts->counts);
	while (g_hash_table_iter_next(&iter, &key, &count)) {
		struct row row = {key, *(const uint64_t *)count};

		g_array_append_val(rows, row);
	}
	g_array_sort(rows, compare_rows);
	return rows;
}

void trace_counts_print(const struct trace_counts *counts, FILE *out)
{
	g_autoptr(GArray) rows = sorted_rows(counts);

	fprintf(out, "%10s  %s\n", "COUNT", counts->fields);
	for (guint i = 0; i < rows->len; i++) {
		const struct row *row = &g_array_index(rows, struct row, i);

		fprintf(out, "%10" PRIu64 "  %s\n", row->count, row->key);
	}
}

json_t *trace_counts_json(const struct trace_counts *counts)
{
	g_autoptr(GArray) rows = sorted_rows(counts);
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct row *row = &g_array_index(rows, struct row, i);

		json_array_append_new(list, json_pack("{s:s, s:I}", "key", row->key, "count", (json_int_t)row->count));
	}
	return json_pack("{s:s, s:o}", "fields", counts->fields, "rows", list);
}

/* ---- histograms ---- */

void trace_histogram_add(struct trace_histogram *histogram, const uint64_t *buckets)
{
	for (unsigned i = 0; i < VPROF_MAP_POWERS; i++)
		histogram->buckets[i] += buckets[i];
}

/* The buckets between the first and the last that are not empty; false when all are. */
static bool used_buckets(const struct trace_histogram *histogram, unsigned *first, unsigned *last)
{
	*first = 0;
	*last = VPROF_MAP_POWERS - 1;
	while (*first < VPROF_MAP_POWERS && histogram->buckets[*first] == 0)
		(*first)++;
	while (*last > *first && histogram->buckets[*last] == 0)
		(*last)--;
	return *first < VPROF_MAP_POWERS;
}

static uint64_t bucket_low(unsigned bucket)
{
	return bucket < 2 ? 0 : UINT64_C(1) << (bucket - 2);
}

/* "512", "4K", "1G": exact, as it is a power of two. */
static void format_power(uint64_t value, char *text, size_t bytes)
{
	static const char units[] = "\0KMGTPE";
	unsigned unit = 0;

	for (; value >= 1024 && value % 1024 == 0; value /= 1024)
		unit++;
	g_snprintf(text, bytes, "%" PRIu64 "%.1s", value, &units[unit]);
}

char *trace_histogram_range(unsigned bucket)
{
	char low[16], high[16];

	if (bucket == 0)
		return g_strdup("(..., 0)");
	format_power(bucket_low(bucket), low, sizeof(low));
	if (bucket < 3)
		return g_strdup_printf("[%s]", low);
	if (bucket == VPROF_MAP_POWERS - 1)
		return g_strdup_printf("[%s, ...)", low);
	format_power(bucket_low(bucket + 1), high, sizeof(high));
	return g_strdup_printf("[%s, %s)", low, high);
}

void trace_histogram_print_row(const char *range, uint64_t count, uint64_t most, FILE *out)
{
	static const char bar[BAR_COLUMNS + 1] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
	const unsigned columns = (unsigned)((double)count / (double)most * BAR_COLUMNS);

	fprintf(out, "%-16s %10" PRIu64 " |%-*.*s|\n", range, count, (int)BAR_COLUMNS, (int)columns, bar);
}

void trace_histogram_print(const struct trace_histogram *histogram, FILE *out)
{
	unsigned first, last;
	uint64_t most = 1;

	fprintf(out, "%s\n", histogram->field);
	if (!used_buckets(histogram, &first, &last))
		return;
	for (unsigned i = first; i <= last; i++)
		most = MAX(most, histogram->buckets[i]);
	for (unsigned i = first; i <= last; i++) {
		g_autofree char *range = trace_histogram_range(i);

		trace_histogram_print_row(range, histogram->buckets[i], most, out);
	}
}

json_t *trace_histogram_json(const struct trace_histogram *histogram)
{
	json_t *list = json_array();
	unsigned first, last;

	if (used_buckets(histogram, &first, &last)) {
		for (unsigned i = first; i <= last; i++) {
			char low[24];

			g_snprintf(low, sizeof(low), "%s0x%" PRIx64, i == 0 ? "-" : "",
			           i == 0 ? UINT64_C(1) << 63 : bucket_low(i));
			json_array_append_new(
				list, json_pack("{s:s, s:I}", "from", low, "count", (json_int_t)histogram->buckets[i]));
		}
	}
	return json_pack("{s:s, s:o}", "field", histogram->field, "buckets", list);
}
