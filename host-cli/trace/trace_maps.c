// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_maps.h"

#include <inttypes.h>
#include <string.h>

#include "trace/trace_aggregate.h"
#include "ui/text.h"

struct entry {
	char *key; /* as it is printed */
	const uint64_t *words, *value;
};

struct trace_map {
	struct trace_meaning meaning;
	const struct script_map *map;
	size_t key_words, value_words;
	GHashTable *entries; /* GBytes, of the key's words, to uint64_t *: the value's words */
};

/* An address of the process, or of the kernel if that is 0. */
static char *frame_text(const struct trace_meaning *meaning, uint64_t pid, uint64_t ip)
{
	const struct chain_frame frame = {ip, pid == 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER};

	return trace_names_frame(meaning->names, &frame, (uint32_t)pid, UINT64_MAX);
}

char *trace_value_text(const struct trace_meaning *meaning, enum script_type type, const uint64_t *words)
{
	char text[VPROF_PROGRAM_TEXT_BYTES + 1] = {0};
	g_autoptr(GString) stack = NULL;

	switch (type) {
	case SCRIPT_NUMBER:
		return g_strdup_printf("%" PRId64, (int64_t)words[0]);
	case SCRIPT_UNSIGNED:
		return g_strdup_printf("%" PRIu64, words[0]);
	case SCRIPT_TEXT:
		memcpy(text, words, VPROF_PROGRAM_TEXT_BYTES);
		return text_printable(text);
	case SCRIPT_KSYM:
		return trace_names_kernel(meaning->names, words[0]);
	case SCRIPT_USYM:
		return frame_text(meaning, words[0], words[1]);
	case SCRIPT_RWBS:
		return script_rwbs(words[0]);
	case SCRIPT_PROBE:
		return script_probe_shown(meaning->script, words[0]);
	default: /* SCRIPT_STACK */
		break;
	}
	stack = g_string_new("\n");
	for (unsigned i = 1; i < VPROF_PROGRAM_STACK_WORDS && words[i] != 0; i++) {
		g_autofree char *name = frame_text(meaning, words[0], words[i]);

		g_string_append_printf(stack, "    %s\n", name);
	}
	return g_string_free(g_steal_pointer(&stack), FALSE);
}

static size_t words_of_value(const struct script_map *map)
{
#define X(id, name, words) words,
	static const unsigned all[] = {VPROF_MAP_KINDS(X)};
#undef X

	return map->kind == VPROF_MAP_LHIST ? (size_t)((map->high - map->low) / map->range) + 2 : all[map->kind];
}

struct trace_map *trace_map_new(const struct trace_meaning *meaning, size_t number)
{
	struct trace_map *self = g_new0(struct trace_map, 1);

	self->meaning = *meaning;
	self->map = script_map(meaning->script, number);
	for (unsigned i = 0; i < self->map->n_keys; i++)
		self->key_words += script_type_words(self->map->keys[i]);
	self->value_words = words_of_value(self->map);
	self->entries = g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, g_free);
	return self;
}

void trace_map_free(struct trace_map *map)
{
	g_hash_table_unref(map->entries);
	g_free(map);
}

bool trace_map_is_empty(const struct trace_map *map)
{
	return g_hash_table_size(map->entries) == 0;
}

/* What the engine has is not trusted to have as many. */
static void words_read(const json_t *list, uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		words[i] = text ? g_ascii_strtoull(text, NULL, 16) : 0;
	}
}

static void merge(const struct trace_map *map, uint64_t *into, const uint64_t *from)
{
	const int64_t a = (int64_t)into[0], b = (int64_t)from[0];

	switch (map->map->kind) {
	case VPROF_MAP_TEXT:
		break;
	case VPROF_MAP_MIN:
		into[0] = (uint64_t)MIN(a, b);
		break;
	case VPROF_MAP_MAX:
		into[0] = (uint64_t)MAX(a, b);
		break;
	default:
		for (size_t i = 0; i < map->value_words; i++)
			into[i] += from[i];
	}
}

void trace_map_take(struct trace_map *map, const json_t *entries)
{
	const size_t key_bytes = map->key_words * sizeof(uint64_t);
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		uint64_t *key = g_new0(uint64_t, map->key_words + 1), *value = g_new0(uint64_t, map->value_words),
			 *known;

		words_read(json_object_get(entry, "key"), key, map->key_words);
		words_read(json_object_get(entry, "value"), value, map->value_words);
		GBytes *bytes = g_bytes_new_take(key, key_bytes);
		known = g_hash_table_lookup(map->entries, bytes);
		if (!known) {
			g_hash_table_insert(map->entries, bytes, value);
			continue;
		}
		merge(map, known, value);
		g_bytes_unref(bytes);
		g_free(value);
	}
}

void trace_map_each(const struct trace_map *map, void (*each)(void *data, const uint64_t *key, const uint64_t *value),
                    void *data)
{
	GHashTableIter iter;
	gpointer key, value;

	g_hash_table_iter_init(&iter, map->entries);
	while (g_hash_table_iter_next(&iter, &key, &value))
		each(data, g_bytes_get_data(key, NULL), value);
}

/* ---- printing ---- */

static char *key_text(const struct trace_map *map, const uint64_t *words)
{
	GString *text = g_string_new(NULL);

	for (unsigned i = 0; i < map->map->n_keys; i++) {
		g_autofree char *part = trace_value_text(&map->meaning, map->map->keys[i], words);

		g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", part);
		words += script_type_words(map->map->keys[i]);
	}
	return g_string_free(text, FALSE);
}

static int64_t divided(int64_t value, uint64_t div)
{
	return div > 1 ? value / (int64_t)div : value;
}

/* What entries are sorted by. */
static int64_t weight(const struct trace_map *map, const uint64_t *value)
{
	uint64_t sum = 0;

	switch (map->map->kind) {
	case VPROF_MAP_TEXT:
		return 0;
	case VPROF_MAP_AVG:
		return value[0] > 0 ? (int64_t)value[1] / (int64_t)value[0] : 0;
	case VPROF_MAP_HIST:
	case VPROF_MAP_LHIST:
		for (size_t i = 0; i < map->value_words; i++)
			sum += value[i];
		return (int64_t)sum;
	default:
		return (int64_t)value[0];
	}
}

static gint compare_entries(gconstpointer a, gconstpointer b, gpointer data)
{
	const struct entry *first = a, *second = b;
	const int64_t x = weight(data, first->value), y = weight(data, second->value);

	return x != y ? (x > y) - (x < y) : strcmp(first->key, second->key);
}

static void entry_clear(gpointer data)
{
	g_free(((struct entry *)data)->key);
}

/* By value, the largest last. */
static GArray *sorted(const struct trace_map *map, uint64_t top)
{
	GArray *entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	GHashTableIter iter;
	gpointer key, value;

	g_array_set_clear_func(entries, entry_clear);
	g_hash_table_iter_init(&iter, map->entries);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		const struct entry entry = {key_text(map, g_bytes_get_data(key, NULL)), g_bytes_get_data(key, NULL),
		                            value};

		g_array_append_val(entries, entry);
	}
	g_array_sort_with_data(entries, compare_entries, (gpointer)map);
	if (top > 0 && entries->len > top)
		g_array_remove_range(entries, 0, entries->len - (guint)top);
	return entries;
}

/* The label of a range of a lhist. */
static char *range_text(const struct script_map *map, size_t i, size_t n)
{
	const int64_t low = map->low + ((int64_t)i - 1) * map->range;

	if (i == 0)
		return g_strdup_printf("(..., %" PRId64 ")", map->low);
	if (i == n - 1)
		return g_strdup_printf("[%" PRId64 ", ...)", map->high);
	return g_strdup_printf("[%" PRId64 ", %" PRId64 ")", low, MIN(low + map->range, map->high));
}

static char *bucket_text(const struct trace_map *map, size_t i)
{
	if (map->map->kind == VPROF_MAP_LHIST)
		return range_text(map->map, i, map->value_words);
	return trace_histogram_range((unsigned)i);
}

static void print_buckets(const struct trace_map *map, const uint64_t *value, FILE *out)
{
	size_t first = 0, last = map->value_words - 1;
	uint64_t most = 1;

	while (first < last && value[first] == 0)
		first++;
	while (last > first && value[last] == 0)
		last--;
	for (size_t i = first; i <= last; i++)
		most = MAX(most, value[i]);
	for (size_t i = first; i <= last; i++) {
		g_autofree char *range = bucket_text(map, i);

		trace_histogram_print_row(range, value[i], most, out);
	}
}

static char *single_text(const struct trace_map *map, const uint64_t *value, uint64_t div)
{
	const int64_t number = weight(map, value);

	switch (map->map->kind) {
	case VPROF_MAP_TEXT:
		return trace_value_text(&map->meaning, SCRIPT_TEXT, value);
	case VPROF_MAP_STATS:
		return g_strdup_printf("count %" PRIu64 ", average %" PRId64 ", total %" PRId64, value[0],
		                       value[0] > 0 ? divided((int64_t)value[1] / (int64_t)value[0], div) : 0,
		                       divided((int64_t)value[1], div));
	case VPROF_MAP_NUMBER:
		if (div <= 1)
			return trace_value_text(&map->meaning, map->map->value, value);
		G_GNUC_FALLTHROUGH;
	default:
		return g_strdup_printf("%" PRId64, divided(number, div));
	}
}

static bool has_buckets(const struct trace_map *map)
{
	return map->map->kind == VPROF_MAP_HIST || map->map->kind == VPROF_MAP_LHIST;
}

void trace_map_print(const struct trace_map *map, uint64_t top, uint64_t div, FILE *out)
{
	g_autoptr(GArray) entries = sorted(map, top);

	for (guint i = 0; i < entries->len; i++) {
		const struct entry *entry = &g_array_index(entries, struct entry, i);
		const bool has_key = map->map->n_keys > 0;
		g_autofree char *text = has_buckets(map) ? NULL : single_text(map, entry->value, div);

		fprintf(out, "%s%s%s%s: %s\n", map->map->name, has_key ? "[" : "", entry->key, has_key ? "]" : "",
		        text ? text : "");
		if (!text)
			print_buckets(map, entry->value, out);
	}
}

/* ---- JSON ---- */

static json_t *part_json(const struct trace_map *map, enum script_type type, const uint64_t *words)
{
	g_autofree char *text = NULL;
	json_t *list;

	if (type == SCRIPT_NUMBER || type == SCRIPT_UNSIGNED)
		return json_integer((json_int_t)words[0]);
	text = trace_value_text(&map->meaning, type, words);
	if (type != SCRIPT_STACK)
		return text_json(text);
	g_auto(GStrv) frames = g_strsplit(g_strstrip(text), "\n    ", -1);
	list = json_array();
	for (char **frame = frames; *frame; frame++)
		json_array_append_new(list, text_json(*frame));
	return list;
}

static json_t *buckets_json(const struct trace_map *map, const uint64_t *value)
{
	json_t *list = json_array();

	for (size_t i = 0; i < map->value_words; i++) {
		g_autofree char *range = bucket_text(map, i);

		if (value[i] != 0)
			json_array_append_new(list,
			                      json_pack("{s:s, s:I}", "range", range, "count", (json_int_t)value[i]));
	}
	return list;
}

static json_t *value_json(const struct trace_map *map, const uint64_t *value, uint64_t div)
{
	if (has_buckets(map))
		return buckets_json(map, value);
	if (map->map->kind == VPROF_MAP_TEXT)
		return part_json(map, SCRIPT_TEXT, value);
	if (map->map->kind == VPROF_MAP_NUMBER && div <= 1)
		return part_json(map, map->map->value, value);
	if (map->map->kind != VPROF_MAP_STATS)
		return json_integer(divided(weight(map, value), div));
	return json_pack("{s:I, s:I, s:I}", "count", (json_int_t)value[0], "average",
	                 value[0] > 0 ? divided((int64_t)value[1] / (int64_t)value[0], div) : 0, "total",
	                 divided((int64_t)value[1], div));
}

static json_t *key_json(const struct trace_map *map, const uint64_t *words)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < map->map->n_keys; i++) {
		json_array_append_new(list, part_json(map, map->map->keys[i], words));
		words += script_type_words(map->map->keys[i]);
	}
	return list;
}

json_t *trace_map_json(const struct trace_map *map, uint64_t top, uint64_t div)
{
	g_autoptr(GArray) entries = sorted(map, top);
	json_t *list = json_array();

	for (guint i = 0; i < entries->len; i++) {
		const struct entry *entry = &g_array_index(entries, struct entry, i);

		json_array_append_new(list, json_pack("{s:o, s:o}", "key", key_json(map, entry->words), "value",
		                                      value_json(map, entry->value, div)));
	}
	return json_pack("{s:s, s:s, s:o}", "map", map->map->name, "kind", script_map_kinds[map->map->kind], "entries",
	                 list);
}
