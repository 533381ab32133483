// SPDX-License-Identifier: BSD-2-Clause
/* Where statements of a source file's lines begin, by the DWARF line tables of an ELF file (libdw). */
#include <string.h>

#include "lib/parser/table.h"
#include "parse/dwarf_file.h"
#include "parse/parse.h"

/* Lines of that many units are in memory at a time: those of a kernel would not fit. */
#define UNITS_TOGETHER 256u
#define PLACES_MAX (1u << 20)
#define TEXT_BYTES_MAX (1u << 20)
#define NO_FILE UINT32_MAX

struct search {
	const char *wanted; /* a path, or the end of one */
	GArray *places;     /* of struct vprof_parse_line */
	GByteArray *text;   /* the names of the files that are wanted */
	GHashTable *names;  /* name -> where it is in the text, + 1 */
};

static bool is_wanted(const char *wanted, const char *path)
{
	const size_t n = strlen(path), end = strlen(wanted);

	if (n < end || strcmp(path + n - end, wanted) != 0)
		return false;
	return n == end || path[n - end - 1] == '/';
}

/* Compilers write the same file as ./include/linux/list.h and include/linux/list.h. */
static uint32_t file_find(struct search *search, const char *given)
{
	const char *base = strrchr(search->wanted, '/');

	if (!given || !g_str_has_suffix(given, base ? base + 1 : search->wanted))
		return NO_FILE;
	g_autofree char *path = g_canonicalize_filename(given, "/");
	const guint known = GPOINTER_TO_UINT(g_hash_table_lookup(search->names, path));

	if (known > 0)
		return known - 1;
	if (!is_wanted(search->wanted, path) || strlen(path) + 1 > TEXT_BYTES_MAX - search->text->len)
		return NO_FILE;
	const uint32_t at = table_text_add(search->text, path);

	g_hash_table_insert(search->names, g_steal_pointer(&path), GUINT_TO_POINTER(at + 1));
	return at;
}

/* Where an entry goes on with the line of the one before, no statement of it begins. */
static void unit_take(struct search *search, Dwarf_Die *unit)
{
	struct vprof_parse_line before = {.file = NO_FILE};
	const char *name = NULL;
	uint32_t file = NO_FILE;
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(unit, &lines, &n) != 0)
		return;
	for (size_t i = 0; i < n && search->places->len < PLACES_MAX; i++) {
		Dwarf_Line *entry = dwarf_onesrcline(lines, i);
		const char *source = dwarf_linesrc(entry, NULL, NULL);
		bool begins = false, ends = false;
		Dwarf_Addr address;
		int number;

		if (source != name)
			file = file_find(search, source);
		name = source;
		if (dwarf_lineaddr(entry, &address) != 0 || dwarf_lineno(entry, &number) != 0 ||
		    dwarf_linebeginstatement(entry, &begins) != 0 || dwarf_lineendsequence(entry, &ends) != 0)
			continue;
		const struct vprof_parse_line here = {
			.address = address, .file = ends ? NO_FILE : file, .line = (uint32_t)number};

		if (begins && here.file != NO_FILE && number > 0 &&
		    (here.file != before.file || here.line != before.line))
			g_array_append_val(search->places, here);
		before = here;
	}
}

/* From unit `at` on; where the next begin. UINT64_MAX: it was the last. */
static Dwarf_Off units_take(struct search *search, Dwarf *dwarf, Dwarf_Off at)
{
	for (unsigned i = 0; i < UNITS_TOGETHER; i++) {
		Dwarf_Off next;
		size_t head;
		Dwarf_Die unit;

		if (dwarf_nextcu(dwarf, at, &next, &head, NULL, NULL, NULL) != 0 || next <= at)
			return UINT64_MAX;
		if (dwarf_offdie(dwarf, at + head, &unit))
			unit_take(search, &unit);
		at = next;
	}
	return at;
}

static bool all_take(struct search *search, const struct parse_input *input, GError **error)
{
	for (Dwarf_Off at = 0; at != UINT64_MAX;) {
		struct dwarf_file *file = dwarf_file_new(input->bytes, input->n);

		if (!file)
			return parse_fail(error, "it has no debug information");
		at = units_take(search, dwarf_file_dwarf(file), at);
		dwarf_file_free(file);
	}
	return true;
}

static gint compare(gconstpointer a, gconstpointer b)
{
	const struct vprof_parse_line *first = a, *second = b;

	if (first->file != second->file)
		return first->file < second->file ? -1 : 1;
	if (first->line != second->line)
		return first->line < second->line ? -1 : 1;
	return (first->address > second->address) - (first->address < second->address);
}

static void sort(GArray *places)
{
	guint n = 0;

	g_array_sort(places, compare);
	for (guint i = 0; i < places->len; i++) {
		const struct vprof_parse_line *place = &g_array_index(places, struct vprof_parse_line, i);

		if (n == 0 || compare(place, &g_array_index(places, struct vprof_parse_line, n - 1)) != 0)
			g_array_index(places, struct vprof_parse_line, n++) = *place;
	}
	g_array_set_size(places, n);
}

bool parse_places(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	struct search search = {.wanted = request->text,
	                        .places = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_line)),
	                        .text = g_byte_array_new(),
	                        .names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
	bool done = request->text_bytes > 1 || parse_fail(error, "the request names no source file");

	g_autoptr(GByteArray) tables = g_byte_array_new();

	done = done && all_take(&search, input, error);
	sort(search.places);
	table_add(tables, VPROF_PARSE_TABLE_LINES, sizeof(struct vprof_parse_line), search.places->data,
	          search.places->len);
	table_add(tables, VPROF_PARSE_TABLE_TEXT, 1, search.text->data, search.text->len);
	done = done && parse_answer_put(answer, tables->data, tables->len, error);
	g_array_unref(search.places);
	g_byte_array_unref(search.text);
	g_hash_table_unref(search.names);
	return done;
}
