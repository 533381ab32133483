// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/source_lines.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/parser/table.h"
#include "lib/symbol/image_priv.h"

#define ANSWER_BYTES_MAX (32u << 20)

struct source_lines {
	struct vprof_parse_line *lines; /* text[file] ends with a NUL inside */
	size_t n;
	char *text;
	uint64_t start, bytes;
};

/* What holds for two rows that follow each other. */
typedef bool rows_in_order(const struct vprof_parse_line *before, const struct vprof_parse_line *row);

static bool by_address(const struct vprof_parse_line *before, const struct vprof_parse_line *row)
{
	return row->address > before->address;
}

static bool by_line(const struct vprof_parse_line *before, const struct vprof_parse_line *row)
{
	return row->file != before->file || row->line >= before->line;
}

static bool rows_are_sound(const struct vprof_parse_line *rows, size_t n, size_t text_bytes, rows_in_order *in_order)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].line > G_MAXINT || (rows[i].line > 0 && rows[i].file >= text_bytes) ||
		    (i > 0 && !in_order(&rows[i - 1], &rows[i])))
			return false;
	return true;
}

static struct source_lines *decode(GBytes *answer, rows_in_order *in_order)
{
	size_t n, text_bytes = 0;
	const struct vprof_parse_line *rows = table_find(answer, VPROF_PARSE_TABLE_LINES, sizeof(*rows), &n);
	const char *text = table_text(answer, &text_bytes);

	if (!text)
		text_bytes = 0; /* of no line */
	if (!rows || !rows_are_sound(rows, n, text_bytes, in_order))
		return NULL;
	struct source_lines *lines = g_new0(struct source_lines, 1);

	lines->lines = g_memdup2(rows, n * sizeof(*rows));
	lines->n = n;
	lines->text = g_memdup2(text, text_bytes);
	return lines;
}

struct source_lines *source_lines_decode(GBytes *answer, uint64_t start, uint64_t bytes)
{
	struct source_lines *lines = decode(answer, by_address);

	if (lines) {
		lines->start = start;
		lines->bytes = bytes;
	}
	return lines;
}

struct source_lines *source_lines_decode_file(GBytes *answer)
{
	struct source_lines *lines = decode(answer, by_line);
	size_t i = 0;

	while (lines && i < lines->n && lines->lines[i].line > 0)
		i++;
	if (!lines || i == lines->n)
		return lines;
	source_lines_free(lines);
	return NULL;
}

/* NULL without *error: the image has no debug information. */
static GBytes *ask(const struct image *image, struct vprof_parse_request *request, GError **error)
{
	g_autoptr(GError) why = NULL;
	int file = image_debug_file(image, &request->bytes, &why);
	GBytes *mapped = file >= 0 ? parser_ask_mapped(request, file, &why) : NULL;

	if (file >= 0)
		close(file);
	/* That a program has none is no failure. */
	if (why && !g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT, "the debug information of %s %s", image_path(image),
		            why->message);
	return mapped;
}

static struct source_lines *lines_checked(const struct image *image, struct source_lines *lines, GError **error)
{
	if (!lines)
		g_set_error(
			error, IMAGE_ERROR, IMAGE_ERROR_FORMAT,
			"the debug information of %s cannot be read: what vprof-parse says of it contradicts itself",
			image_path(image));
	return lines;
}

struct source_lines *source_lines_new(const struct image *image, uint64_t start, uint64_t bytes, GError **error)
{
	struct vprof_parse_request request = {
		.what = VPROF_PARSE_LINES, .answer_bytes = ANSWER_BYTES_MAX, .start = start, .length = bytes};
	g_autoptr(GBytes) answer = ask(image, &request, error);

	return answer ? lines_checked(image, source_lines_decode(answer, start, bytes), error) : NULL;
}

struct source_lines *source_lines_new_file(const struct image *image, const char *file, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_PLACES, .answer_bytes = ANSWER_BYTES_MAX};

	if (!parser_add_name(&request, file)) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT, "the name of the source file is too long");
		return NULL;
	}
	g_autoptr(GBytes) answer = ask(image, &request, error);

	return answer ? lines_checked(image, source_lines_decode_file(answer), error) : NULL;
}

void source_lines_free(struct source_lines *lines)
{
	if (!lines)
		return;
	g_free(lines->lines);
	g_free(lines->text);
	g_free(lines);
}

bool source_lines_find(const struct source_lines *lines, uint64_t address, const char **file, int *line)
{
	size_t low = 0, high = lines->n;

	if (address - lines->start >= lines->bytes)
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines->lines[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || lines->lines[low - 1].line == 0)
		return false;
	*file = lines->text + lines->lines[low - 1].file;
	*line = (int)lines->lines[low - 1].line;
	return true;
}

bool source_lines_place(const struct source_lines *lines, size_t i, struct source_place *place)
{
	if (i >= lines->n)
		return false;
	*place = (struct source_place){lines->lines[i].address, lines->text + lines->lines[i].file,
	                               (int)lines->lines[i].line};
	return true;
}
