// SPDX-License-Identifier: BSD-2-Clause
/* A perf map or a jitdump, on its way out of vprof-parse (include/vprof/parse.h). */
#include <glib.h>
#include <string.h>

#include "lib/parser/table.h"
#include "lib/symbol/perf_map.h"

#define NAME_BYTES_MAX 1024u

#define DUMP_MAGIC 0x4a695444u /* "JiTD" as a number of the machine that wrote it */
#define CODE_LOAD 0u
#define CODE_MOVE 1u

struct dump_header {
	uint32_t magic, version;
	uint32_t bytes; /* of it; records follow */
};

struct dump_record {
	uint32_t kind;
	uint32_t bytes; /* with these */
	uint64_t timestamp;
};

/* The name and the code itself follow. */
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

#define HEADS_BYTES 128u /* of the answer's tables, with what pads them */

struct functions {
	GArray *rows; /* of struct vprof_parse_function */
	GByteArray *text;
	uint64_t room; /* for both */
	uint64_t left_out;
};

/* ---- a perf map ---- */

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

/* The name's place in the text. */
static uint32_t name_add(struct functions *functions, const char *at, const char *end)
{
	static const guint8 nul = 0;
	const guint name = functions->text->len;

	g_byte_array_append(functions->text, (const guint8 *)at,
	                    (guint)strnlen(at, MIN((size_t)(end - at), NAME_BYTES_MAX)));
	g_byte_array_append(functions->text, &nul, 1);
	return name;
}

static bool is_range(uint64_t address, uint64_t size)
{
	uint64_t last;

	return size != 0 && !__builtin_add_overflow(address, size - 1, &last);
}

/* Whether there is room for a function with this name; it counts as left out if there is not. */
static bool function_fits(struct functions *functions, size_t name_bytes)
{
	const uint64_t bytes = sizeof(struct vprof_parse_function) + name_bytes;

	if (functions->rows->len < PERF_MAP_SYMBOLS_MAX && bytes <= functions->room) {
		functions->room -= bytes;
		return true;
	}
	functions->room = 0;
	functions->left_out++;
	return false;
}

static void function_add(struct functions *functions, uint64_t address, uint64_t size, uint32_t name)
{
	const struct vprof_parse_function row = {
		.address = address, .size = size, .name = name, .number = functions->rows->len};

	g_array_append_val(functions->rows, row);
}

static void line_take(struct functions *functions, const char *at, const char *end)
{
	uint64_t address, size;

	if (number_take(&at, end, &address) && number_take(&at, end, &size) && at < end && is_range(address, size) &&
	    function_fits(functions, MIN((size_t)(end - at), NAME_BYTES_MAX) + 1))
		function_add(functions, address, size, name_add(functions, at, end));
}

static void lines_take(struct functions *functions, const char *text, const char *end)
{
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		/* The last one may still be written. */
		if (!newline)
			break;
		line_take(functions, text, newline);
		text = newline + 1;
	}
}

/* ---- a jitdump ---- */

static bool is_dump(const char *file, size_t bytes)
{
	const uint32_t magic = DUMP_MAGIC;

	return bytes >= sizeof(struct dump_header) && memcmp(file, &magic, sizeof(magic)) == 0;
}

/* loaded: places of names in the text, and 1, by the index of the code. */
static void load_take(struct functions *functions, GHashTable *loaded, const char *at, const char *end)
{
	struct code_load load;

	if ((size_t)(end - at) < sizeof(load))
		return;
	memcpy(&load, at, sizeof(load));
	at += sizeof(load);
	if (!memchr(at, '\0', (size_t)(end - at)) || !is_range(load.address, load.size) ||
	    !function_fits(functions, strnlen(at, NAME_BYTES_MAX) + 1))
		return;
	const uint32_t name = name_add(functions, at, end);

	function_add(functions, load.address, load.size, name);
	g_hash_table_insert(loaded, g_memdup2(&load.index, sizeof(load.index)), GSIZE_TO_POINTER((gsize)name + 1));
}

static void move_take(struct functions *functions, GHashTable *loaded, const char *at, const char *end)
{
	struct code_move move;

	if ((size_t)(end - at) < sizeof(move))
		return;
	memcpy(&move, at, sizeof(move));
	const gsize name = GPOINTER_TO_SIZE(g_hash_table_lookup(loaded, &move.index));

	if (name != 0 && is_range(move.address, move.size) && function_fits(functions, 0))
		function_add(functions, move.address, move.size, (uint32_t)(name - 1));
}

/* Up to a record that is not there as a whole, or to what the guest does not have in memory, which is zero. */
static void dump_take(struct functions *functions, const char *at, const char *end)
{
	g_autoptr(GHashTable) loaded = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	struct dump_header header;
	struct dump_record record;

	memcpy(&header, at, sizeof(header));
	if (header.bytes < sizeof(header) || header.bytes > (size_t)(end - at))
		return;
	for (at += header.bytes; (size_t)(end - at) >= sizeof(record); at += record.bytes) {
		memcpy(&record, at, sizeof(record));
		if (record.bytes < sizeof(record) || record.bytes > (size_t)(end - at))
			return;
		if (record.kind == CODE_LOAD)
			load_take(functions, loaded, at, at + record.bytes);
		else if (record.kind == CODE_MOVE)
			move_take(functions, loaded, at, at + record.bytes);
	}
}

/* ---- both ---- */

static int rows_compare(const void *a, const void *b)
{
	const struct vprof_parse_function *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

GByteArray *perf_map_encode(const char *file, size_t bytes, uint64_t bytes_max)
{
	g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_function));
	g_autoptr(GByteArray) text = g_byte_array_new();
	struct functions functions = {rows, text, bytes_max - MIN(bytes_max, HEADS_BYTES), 0};
	GByteArray *answer = g_byte_array_new();

	(is_dump(file, bytes) ? dump_take : lines_take)(&functions, file, file + bytes);
	g_array_sort(rows, rows_compare);
	table_add(answer, VPROF_PARSE_TABLE_FUNCTIONS, sizeof(struct vprof_parse_function), rows->data, rows->len);
	table_add(answer, VPROF_PARSE_TABLE_COUNTS, sizeof(functions.left_out), &functions.left_out, 1);
	table_add(answer, VPROF_PARSE_TABLE_TEXT, 1, text->data, text->len);
	return answer;
}
