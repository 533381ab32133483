// SPDX-License-Identifier: BSD-2-Clause
/* Source lines of a range of addresses, by the DWARF line tables of an ELF file (libdw). */
#include <string.h>

#include "lib/parser/table.h"
#include "parse/dwarf_file.h"
#include "parse/parse.h"

#define RANGE_BYTES_MAX (UINT64_C(1) << 20) /* of a function */
#define TEXT_BYTES_MAX (1u << 20)
/* Where nothing is known, functions may begin again at such addresses; and how often that is tried. */
#define STEP_BYTES 16u
#define STEPS_MAX 64u
#define GAPS_MAX 4096u /* between units */

struct listing {
	Dwarf *dwarf;
	Dwarf_Die unit; /* the one that was found last */
	bool has_unit;
	GArray *lines; /* of struct vprof_parse_line */
	GByteArray *text;
	GHashTable *names; /* name -> where it is in the text, + 1 */
	uint64_t end;
};

/* By the units themselves where .debug_aranges, which compilers may leave out, does not have it. */
static bool unit_find(struct listing *listing, Dwarf_Addr address)
{
	Dwarf_CU *unit = NULL;

	if (listing->has_unit && dwarf_haspc(&listing->unit, address) == 1)
		return true;
	listing->has_unit = dwarf_addrdie(listing->dwarf, address, &listing->unit) != NULL;
	while (!listing->has_unit &&
	       dwarf_get_units(listing->dwarf, unit, &unit, NULL, NULL, &listing->unit, NULL) == 0)
		listing->has_unit = dwarf_haspc(&listing->unit, address) == 1;
	return listing->has_unit;
}

/* Where the text has a name; UINT32_MAX when there is no room for it. */
static uint32_t name_add(struct listing *listing, const char *name)
{
	guint known = GPOINTER_TO_UINT(g_hash_table_lookup(listing->names, name));

	if (known > 0)
		return known - 1;
	if (strlen(name) + 1 > TEXT_BYTES_MAX - listing->text->len)
		return UINT32_MAX;
	const uint32_t at = table_text_add(listing->text, name);

	g_hash_table_insert(listing->names, g_strdup(name), GUINT_TO_POINTER(at + 1));
	return at;
}

static void line_add(struct listing *listing, uint64_t address, Dwarf_Line *found)
{
	const struct vprof_parse_line *last =
		listing->lines->len > 0
			? &g_array_index(listing->lines, struct vprof_parse_line, listing->lines->len - 1)
			: NULL;
	struct vprof_parse_line line = {.address = address};
	const char *name = found ? dwarf_linesrc(found, NULL, NULL) : NULL;
	int number = 0;

	if (name && dwarf_lineno(found, &number) == 0 && number > 0 &&
	    (line.file = name_add(listing, name)) != UINT32_MAX)
		line.line = (uint32_t)number;
	if (line.line == 0)
		line.file = 0;
	if (last ? last->file != line.file || last->line != line.line : line.line != 0)
		g_array_append_val(listing->lines, line);
}

/* The address behind `address` where the unit's line table has another entry; UINT64_MAX at its end. */
static uint64_t next_entry(Dwarf_Die *unit, uint64_t address)
{
	Dwarf_Lines *lines;
	size_t n, low = 0, high;
	Dwarf_Addr at = 0;

	if (dwarf_getsrclines(unit, &lines, &n) != 0)
		return UINT64_MAX;
	high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &at) == 0 && at <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && dwarf_lineaddr(dwarf_onesrcline(lines, low), &at) == 0 && at > address ? at : UINT64_MAX;
}

/* Where code of any unit begins next, behind an address that none has; UINT64_MAX: nowhere. */
static uint64_t next_unit(struct listing *listing, uint64_t address)
{
	Dwarf_Addr next = UINT64_MAX, base, begin, end;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (dwarf_get_units(listing->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
		for (ptrdiff_t range = 0; (range = dwarf_ranges(&die, range, &base, &begin, &end)) > 0;)
			if (begin > address && begin < next)
				next = begin;
	return next;
}

static void range_walk(struct listing *listing, uint64_t start)
{
	unsigned steps = 0, gaps = 0;

	for (uint64_t at = start; at < listing->end && steps < STEPS_MAX && gaps < GAPS_MAX;) {
		bool has_unit = unit_find(listing, at);
		Dwarf_Line *found = has_unit ? dwarf_getsrc_die(&listing->unit, at) : NULL;
		uint64_t next = has_unit ? next_entry(&listing->unit, at) : next_unit(listing, at);
		uint64_t step = (at | (STEP_BYTES - 1)) + 1;

		line_add(listing, at, found);
		steps += has_unit && !found;
		gaps += !has_unit;
		/* Where a line is known, its entry reaches to the next one, but not into another unit. */
		if (has_unit && (!found || next == UINT64_MAX))
			next = MIN(next, step > at ? step : UINT64_MAX);
		at = next;
	}
}

static bool answer_put(const struct listing *listing, struct parse_answer *answer, GError **error)
{
	g_autoptr(GByteArray) tables = g_byte_array_new();

	table_add(tables, VPROF_PARSE_TABLE_LINES, sizeof(struct vprof_parse_line), listing->lines->data,
	          listing->lines->len);
	table_add(tables, VPROF_PARSE_TABLE_TEXT, 1, listing->text->data, listing->text->len);
	return parse_answer_put(answer, tables->data, tables->len, error);
}

bool parse_lines(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error)
{
	struct listing listing = {.lines = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_line)),
	                          .text = g_byte_array_new(),
	                          .names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
	struct dwarf_file *file = dwarf_file_new(input->bytes, input->n);
	uint64_t length = MIN(request->length, RANGE_BYTES_MAX);
	bool done = file != NULL;

	if (!file) {
		parse_fail(error, "it has no debug information");
	} else {
		listing.dwarf = dwarf_file_dwarf(file);
		listing.end = length > UINT64_MAX - request->start ? UINT64_MAX : request->start + length;
		range_walk(&listing, request->start);
		done = answer_put(&listing, answer, error);
	}
	dwarf_file_free(file);
	g_array_unref(listing.lines);
	g_byte_array_unref(listing.text);
	g_hash_table_unref(listing.names);
	return done;
}
