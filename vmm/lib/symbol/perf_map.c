// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/perf_map.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/text.h"

#define NAME_BYTES_MAX 1024u
#define BEFORE_MAX 256u /* functions at lower addresses that may reach one */

#define DUMP_MAGIC 0x4a695444u /* "JiTD" as a number of the machine that wrote it */
#define CODE_LOAD 0u
#define CODE_MOVE 1u

struct line {
	struct perf_map_symbol symbol;
	uint32_t number; /* in the file */
};

struct dump_header {
	uint32_t magic, version;
	uint32_t bytes; /* of it; records follow */
};

struct dump_record {
	uint32_t kind;
	uint32_t bytes; /* with these */
	uint64_t timestamp;
};

/* The record's name and the code itself follow. */
struct code_load {
	struct dump_record record;
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};

struct code_move {
	struct dump_record record;
	uint32_t pid, tid;
	uint64_t vma, from, address, size, index;
};

struct perf_map {
	GArray *lines; /* of struct line, by start and number */
	GStringChunk *names;
};

/* Hexadecimal digits, and a blank behind them. */
static bool number_take(const char **at, const char *end, uint64_t *number)
{
	const char *from = *at;

	for (*number = 0; *at < end && g_ascii_isxdigit(**at); (*at)++) {
		if (*number >> 60 != 0)
			return false;
		*number = *number << 4 | (uint64_t)g_ascii_xdigit_value(**at);
	}
	return *at > from && *at < end && *(*at)++ == ' ';
}

/* name: up to `end`. NULL: it is nowhere. */
static const char *function_add(struct perf_map *map, uint64_t start, uint64_t size, const char *name, const char *end)
{
	struct line line = {.symbol = {.start = start, .size = size}, .number = map->lines->len};
	uint64_t last;

	if (size == 0 || __builtin_add_overflow(start, size - 1, &last))
		return NULL;
	g_autofree char *printable = g_strndup(name, MIN((size_t)(end - name), NAME_BYTES_MAX));

	text_make_printable(printable);
	line.symbol.name = g_string_chunk_insert_const(map->names, printable);
	g_array_append_val(map->lines, line);
	return line.symbol.name;
}

static void line_take(struct perf_map *map, const char *at, const char *end)
{
	uint64_t start, size;

	if (number_take(&at, end, &start) && number_take(&at, end, &size) && at < end)
		function_add(map, start, size, at, end);
}

static void lines_take(struct perf_map *map, const char *text, const char *end)
{
	while (text < end && map->lines->len < PERF_MAP_SYMBOLS_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		/* The last one may still be written. */
		if (!newline)
			break;
		line_take(map, text, newline);
		text = newline + 1;
	}
}

/* loaded: names by the index of the code. */
static void load_take(struct perf_map *map, GHashTable *loaded, const char *at, const char *end)
{
	struct code_load load;

	if ((size_t)(end - at) < sizeof(load))
		return;
	memcpy(&load, at, sizeof(load));
	at += sizeof(load);
	const char *name_end = memchr(at, '\0', (size_t)(end - at));
	const char *name = name_end ? function_add(map, load.address, load.size, at, name_end) : NULL;

	if (name)
		g_hash_table_insert(loaded, g_memdup2(&load.index, sizeof(load.index)), (char *)name);
}

static void move_take(struct perf_map *map, GHashTable *loaded, const char *at, const char *end)
{
	struct code_move move;

	if ((size_t)(end - at) < sizeof(move))
		return;
	memcpy(&move, at, sizeof(move));
	const char *name = g_hash_table_lookup(loaded, &move.index);

	if (name)
		function_add(map, move.address, move.size, name, name + strlen(name));
}

/* Up to a record that is not there as a whole, or to what the guest does not have in memory, which is zero. */
static void dump_take(struct perf_map *map, const char *at, const char *end)
{
	g_autoptr(GHashTable) loaded = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	struct dump_header header;
	struct dump_record record;

	memcpy(&header, at, sizeof(header));
	if (header.bytes < sizeof(header) || header.bytes > (size_t)(end - at))
		return;
	for (at += header.bytes; (size_t)(end - at) >= sizeof(record); at += record.bytes) {
		memcpy(&record, at, sizeof(record));
		if (record.bytes < sizeof(record) || record.bytes > (size_t)(end - at) ||
		    map->lines->len >= PERF_MAP_SYMBOLS_MAX)
			return;
		if (record.kind == CODE_LOAD)
			load_take(map, loaded, at, at + record.bytes);
		else if (record.kind == CODE_MOVE)
			move_take(map, loaded, at, at + record.bytes);
	}
}

static bool is_dump(const char *bytes, size_t n)
{
	const uint32_t magic = DUMP_MAGIC;

	return n >= sizeof(struct dump_header) && memcmp(bytes, &magic, sizeof(magic)) == 0;
}

static int lines_compare(const void *a, const void *b)
{
	const struct line *left = a, *right = b;

	if (left->symbol.start != right->symbol.start)
		return left->symbol.start < right->symbol.start ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

struct perf_map *perf_map_new(const char *text, size_t bytes)
{
	struct perf_map *map = g_new0(struct perf_map, 1);

	map->lines = g_array_new(FALSE, FALSE, sizeof(struct line));
	map->names = g_string_chunk_new(4096);
	(is_dump(text, bytes) ? dump_take : lines_take)(map, text, text + bytes);
	g_array_sort(map->lines, lines_compare);
	return map;
}

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	g_array_unref(map->lines);
	g_string_chunk_free(map->names);
	g_free(map);
}

bool perf_map_find(const struct perf_map *map, uint64_t address, struct perf_map_symbol *symbol)
{
	const struct line *lines = (const void *)map->lines->data, *found = NULL;
	size_t low = 0, high = map->lines->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines[middle].symbol.start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < BEFORE_MAX && i < low; i++) {
		const struct line *line = &lines[low - 1 - i];

		if (address - line->symbol.start < line->symbol.size && (!found || line->number > found->number))
			found = line;
	}
	if (found)
		*symbol = found->symbol;
	return found != NULL;
}

size_t perf_map_n_symbols(const struct perf_map *map)
{
	return map->lines->len;
}
