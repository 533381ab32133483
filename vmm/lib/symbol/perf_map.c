// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/perf_map.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/text.h"

#define NAME_BYTES_MAX 1024u
#define BEFORE_MAX 256u /* functions at lower addresses that may reach one */

struct line {
	struct perf_map_symbol symbol;
	uint32_t number; /* in the file */
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

static void line_take(struct perf_map *map, const char *at, const char *end)
{
	struct line line = {.number = map->lines->len};
	uint64_t last;

	if (!number_take(&at, end, &line.symbol.start) || !number_take(&at, end, &line.symbol.size) || at == end ||
	    line.symbol.size == 0 || __builtin_add_overflow(line.symbol.start, line.symbol.size - 1, &last))
		return;
	g_autofree char *name = g_strndup(at, MIN((size_t)(end - at), NAME_BYTES_MAX));

	text_make_printable(name);
	line.symbol.name = g_string_chunk_insert_const(map->names, name);
	g_array_append_val(map->lines, line);
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
	const char *end = text + bytes;

	map->lines = g_array_new(FALSE, FALSE, sizeof(struct line));
	map->names = g_string_chunk_new(4096);
	while (text < end && map->lines->len < PERF_MAP_SYMBOLS_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		/* The last one may still be written. */
		if (!newline)
			break;
		line_take(map, text, newline);
		text = newline + 1;
	}
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
