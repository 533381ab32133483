// SPDX-License-Identifier: BSD-2-Clause
/* A table of symbols on its way out of vprof-parse (include/vprof/parse.h). */
#include <string.h>

#include "lib/parser/table.h"
#include "lib/record/text.h"
#include "lib/symbol/image_priv.h"
#include "lib/symbol/symtab_priv.h"

_Static_assert(sizeof(struct symtab_range) == sizeof(struct vprof_parse_range) &&
                       offsetof(struct symtab_range, symbol) == offsetof(struct vprof_parse_range, symbol),
               "ranges are given as they are");

/* ---- there ---- */

/* Rows that have no names yet; where they begin in the answer. */
static guint rows_reserve(GByteArray *answer, enum vprof_parse_table_kind kind, size_t n)
{
	const guint table = table_begin(answer, kind, sizeof(struct vprof_parse_symbol)), rows = answer->len;

	g_byte_array_set_size(answer, rows + (guint)(n * sizeof(struct vprof_parse_symbol)));
	table_end(answer, table);
	return rows;
}

/*
 * Fills in `rows`, and appends their names to the text that begins at `text`: a copy of all names beside the answer
 * would take as much memory again. *room: by how many bytes names to be shown may be longer, in all.
 */
static void rows_fill(GByteArray *answer, guint rows, guint text, const struct symbol *symbols, size_t n,
                      symtab_name_fn shown, uint64_t *room)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = shown ? shown(symbols[i].name) : symbols[i].name;
		const size_t bytes = strlen(name), own = strlen(symbols[i].name);

		if (bytes > own && bytes - own > *room)
			name = symbols[i].name;
		else if (bytes > own)
			*room -= bytes - own;
		const struct vprof_parse_symbol row = {symbols[i].address, symbols[i].size,
		                                       table_text_add(answer, name) - text, (uint8_t)symbols[i].type};

		memcpy(answer->data + rows + i * sizeof(row), &row, sizeof(row));
	}
}

static uint64_t room_of(const struct symtab *symtab, uint64_t bytes_max)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < symtab->n_symbols; i++)
		bytes += symtab_symbol_bytes(symtab->symbols[i].size, symtab->symbols[i].name);
	for (guint i = 0; i < symtab->nameless->len; i++)
		bytes += symtab_symbol_bytes(0, g_array_index(symtab->nameless, struct symbol, i).name);
	return bytes_max - MIN(bytes_max, bytes + SYMTAB_HEADS_BYTES);
}

GByteArray *symtab_encode(const struct symtab *symtab, symtab_name_fn shown, uint64_t bytes_max)
{
	GByteArray *answer = g_byte_array_new();
	uint64_t room = shown ? room_of(symtab, bytes_max) : 0;
	const guint symbols = rows_reserve(answer, VPROF_PARSE_TABLE_SYMBOLS, symtab->n_symbols);
	const guint sections = rows_reserve(answer, VPROF_PARSE_TABLE_SECTIONS, symtab->nameless->len);

	table_add(answer, VPROF_PARSE_TABLE_RANGES, sizeof(struct vprof_parse_range), symtab->ranges->data,
	          symtab->ranges->len);
	table_add(answer, VPROF_PARSE_TABLE_COUNTS, sizeof(symtab->left_out), &symtab->left_out, 1);
	const guint table = table_begin(answer, VPROF_PARSE_TABLE_TEXT, 1), text = answer->len;

	table_text_add(answer, symtab->source);
	rows_fill(answer, symbols, text, symtab->symbols, symtab->n_symbols, shown, &room);
	rows_fill(answer, sections, text, (const struct symbol *)symtab->nameless->data, symtab->nameless->len, NULL,
	          &room);
	table_end(answer, table);
	return answer;
}

/* ---- here ---- */

/* Names may share bytes, but not begin inside of another one: that would cut characters. */
static bool symbol_decode(const struct vprof_parse_symbol *row, const char *text, size_t text_bytes, uint64_t slide,
                          struct symbol *symbol)
{
	*symbol = (struct symbol){address_slid(row->address, slide), row->size, text + row->name, (char)row->type};
	return row->size > 0 && row->name > 0 && row->name < text_bytes && text[row->name - 1] == '\0' &&
	       row->type < 0x80 && g_ascii_isgraph((char)row->type);
}

static bool symbols_decode(const struct vprof_parse_symbol *rows, size_t n, const char *text, size_t text_bytes,
                           uint64_t slide, struct symbol *symbols)
{
	for (size_t i = 0; i < n; i++)
		if (!symbol_decode(&rows[i], text, text_bytes, slide, &symbols[i]) ||
		    (i > 0 && symbols[i].address < symbols[i - 1].address))
			return false;
	return true;
}

static bool ranges_decode(const struct vprof_parse_range *rows, size_t n, size_t n_symbols, uint64_t slide,
                          struct symtab_range *ranges)
{
	for (size_t i = 0; i < n; i++) {
		ranges[i] = (struct symtab_range){address_slid(rows[i].start, slide), rows[i].symbol};
		if ((ranges[i].symbol >= n_symbols && ranges[i].symbol != SYMTAB_NO_SYMBOL) ||
		    (i > 0 && ranges[i].start <= ranges[i - 1].start))
			return false;
	}
	return true;
}

/* One block, so that names keep their distances. What may be shown of a name is no longer than the name. */
static const char *text_copy(GStringChunk *names, const char *text, size_t n)
{
	char *copy = g_string_chunk_insert_len(names, text, (gssize)n);

	for (size_t at = 0, bytes; at < n; at += bytes) {
		bytes = strlen(copy + at) + 1;
		text_make_printable(copy + at);
	}
	return copy;
}

/* NULL and *n 0, or the rows. */
static const void *rows_of(GBytes *answer, enum vprof_parse_table_kind kind, size_t row_bytes, size_t *n)
{
	const void *rows = table_find(answer, kind, row_bytes, n);

	if (!rows || *n > G_MAXINT)
		*n = 0;
	return rows;
}

struct symtab *symtab_decode(GBytes *answer, uint64_t slide)
{
	size_t text_bytes, n, n_sections, n_ranges, n_left_out;
	const char *text = table_text(answer, &text_bytes);
	const void *symbols = rows_of(answer, VPROF_PARSE_TABLE_SYMBOLS, sizeof(struct vprof_parse_symbol), &n);
	const void *sections =
		rows_of(answer, VPROF_PARSE_TABLE_SECTIONS, sizeof(struct vprof_parse_symbol), &n_sections);
	const void *ranges = rows_of(answer, VPROF_PARSE_TABLE_RANGES, sizeof(struct vprof_parse_range), &n_ranges);
	const uint64_t *left_out = rows_of(answer, VPROF_PARSE_TABLE_COUNTS, sizeof(*left_out), &n_left_out);
	const bool is_cut = left_out && n_left_out == 1 && *left_out > 0;

	if (!text || (!is_cut && (n == 0 || n_ranges == 0)))
		return NULL;
	struct symtab *symtab = g_new0(struct symtab, 1);

	symtab->left_out = is_cut ? *left_out : 0;
	symtab->names_bytes = text_bytes;
	symtab->names = g_string_chunk_new(text_bytes + 1);
	symtab->source = text_copy(symtab->names, text, text_bytes);
	symtab->symbols = g_new(struct symbol, n);
	symtab->n_symbols = n;
	symtab->ranges = g_array_sized_new(FALSE, FALSE, sizeof(struct symtab_range), (guint)n_ranges);
	g_array_set_size(symtab->ranges, (guint)n_ranges);
	symtab->nameless = g_array_sized_new(FALSE, FALSE, sizeof(struct symbol), (guint)n_sections);
	g_array_set_size(symtab->nameless, (guint)n_sections);
	if (ranges_decode(ranges, n_ranges, n, slide, (struct symtab_range *)symtab->ranges->data) &&
	    symbols_decode(symbols, n, symtab->source, text_bytes, slide, symtab->symbols) &&
	    symbols_decode(sections, n_sections, symtab->source, text_bytes, slide,
	                   (struct symbol *)symtab->nameless->data))
		return symtab;
	symtab_free(symtab);
	return NULL;
}
