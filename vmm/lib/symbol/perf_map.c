// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/perf_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/parser/table.h"
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
	uint64_t bytes; /* of what vprof-parse said */
	uint64_t left_out;
};

static bool line_decode(struct perf_map *map, const struct vprof_parse_function *row, const char *text,
                        size_t text_bytes)
{
	const struct line *before =
		map->lines->len > 0 ? &g_array_index(map->lines, struct line, map->lines->len - 1) : NULL;
	struct line line = {.symbol = {.start = row->address, .size = row->size}, .number = row->number};

	if (row->size == 0 || row->size - 1 > UINT64_MAX - row->address || row->name >= text_bytes ||
	    (before && before->symbol.start > row->address))
		return false;
	g_autofree char *name = g_strndup(text + row->name, NAME_BYTES_MAX);

	text_make_printable(name);
	line.symbol.name = g_string_chunk_insert(map->names, name);
	g_array_append_val(map->lines, line);
	return true;
}

struct perf_map *perf_map_decode(GBytes *answer)
{
	size_t n, text_bytes, n_left_out;
	const uint64_t *left_out = table_find(answer, VPROF_PARSE_TABLE_COUNTS, sizeof(*left_out), &n_left_out);
	const struct vprof_parse_function *rows = table_find(answer, VPROF_PARSE_TABLE_FUNCTIONS, sizeof(*rows), &n);
	const char *text = table_text(answer, &text_bytes);
	bool sound = rows && n <= PERF_MAP_SYMBOLS_MAX;

	if (!text)
		text_bytes = 0; /* of no function */
	struct perf_map *map = g_new0(struct perf_map, 1);

	map->lines = g_array_new(FALSE, FALSE, sizeof(struct line));
	map->names = g_string_chunk_new(4096);
	map->bytes = g_bytes_get_size(answer);
	map->left_out = left_out && n_left_out == 1 ? *left_out : 0;
	for (size_t i = 0; sound && i < n; i++)
		sound = line_decode(map, &rows[i], text, text_bytes);
	if (sound)
		return map;
	perf_map_free(map);
	return NULL;
}

struct perf_map *perf_map_load(int memory, uint64_t bytes_max, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_MAP, .answer_bytes = bytes_max};
	struct stat status;

	request.bytes = fstat(memory, &status) == 0 ? (uint64_t)status.st_size : 0;
	g_autoptr(GBytes) bytes = parser_ask_mapped(&request, memory, error);
	struct perf_map *map = bytes ? perf_map_decode(bytes) : NULL;

	if (bytes && !map)
		g_set_error(error, PARSER_ERROR, PARSER_ERROR_CRASHED,
		            "cannot be read: what vprof-parse says of it contradicts itself");
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

uint64_t perf_map_left_out(const struct perf_map *map)
{
	return map->left_out;
}

uint64_t perf_map_bytes(const struct perf_map *map)
{
	return map->bytes;
}
