// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/source_lines.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/parser/table.h"
#include "lib/symbol/image_priv.h"

#define ANSWER_BYTES_MAX (32u << 20)

struct source_lines {
	struct vprof_parse_line *lines; /* by address; text[file] ends with a NUL inside */
	size_t n;
	char *text;
	uint64_t start, bytes;
};

static bool rows_are_sound(const struct vprof_parse_line *rows, size_t n, size_t text_bytes)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].line > G_MAXINT || (rows[i].line > 0 && rows[i].file >= text_bytes) ||
		    (i > 0 && rows[i].address <= rows[i - 1].address))
			return false;
	return true;
}

struct source_lines *source_lines_decode(GBytes *answer, uint64_t start, uint64_t bytes)
{
	size_t n, text_bytes = 0;
	const struct vprof_parse_line *rows = table_find(answer, VPROF_PARSE_TABLE_LINES, sizeof(*rows), &n);
	const char *text = table_text(answer, &text_bytes);

	if (!text)
		text_bytes = 0; /* of no line */
	if (!rows || !rows_are_sound(rows, n, text_bytes))
		return NULL;
	struct source_lines *lines = g_new(struct source_lines, 1);

	*lines = (struct source_lines){
		g_memdup2(rows, n * sizeof(*rows)), n, g_memdup2(text, text_bytes), start, bytes,
	};
	return lines;
}

static GBytes *ask(const struct image *image, uint64_t start, uint64_t bytes, GError **error)
{
	struct vprof_parse_request request = {
		.what = VPROF_PARSE_LINES, .answer_bytes = ANSWER_BYTES_MAX, .start = start, .length = bytes};
	int file = image_debug_file(image, &request.bytes, error);
	int answer = file >= 0 ? parser_ask(&request, file, error) : -1;
	GBytes *mapped = answer >= 0 ? sealed_map(answer) : NULL;

	if (answer >= 0)
		close(answer);
	if (file >= 0)
		close(file);
	return mapped;
}

struct source_lines *source_lines_new(const struct image *image, uint64_t start, uint64_t bytes, GError **error)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(GBytes) answer = ask(image, start, bytes, &why);

	/* That a program has none is no failure. */
	if (why && !g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT, "the debug information of %s %s", image_path(image),
		            why->message);
	if (!answer)
		return NULL;
	struct source_lines *lines = source_lines_decode(answer, start, bytes);

	if (!lines)
		g_set_error(
			error, IMAGE_ERROR, IMAGE_ERROR_FORMAT,
			"the debug information of %s cannot be read: what vprof-parse says of it contradicts itself",
			image_path(image));
	return lines;
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
