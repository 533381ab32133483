// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/source_lines.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

#define ANSWER_BYTES_MAX (32u << 20)

struct source_lines {
	struct vprof_parse_line *lines; /* by address; text[file] ends with a NUL inside */
	size_t n;
	char *text;
	uint64_t start, bytes;
};

/* Copies what of the answer is sound, or returns false. */
static bool answer_take(struct source_lines *lines, struct span answer)
{
	struct vprof_parse_lines head;
	struct span table, text;

	if (!span_read(answer, 0, &head, sizeof(head)) ||
	    !span_slice(answer, sizeof(head), head.n * (uint64_t)sizeof(*lines->lines), &table) ||
	    !span_slice(answer, sizeof(head) + table.n, head.text_bytes, &text) ||
	    (text.n > 0 && text.data[text.n - 1] != '\0'))
		return false;
	lines->lines = g_memdup2(table.data, table.n);
	lines->text = g_memdup2(text.data, text.n);
	lines->n = head.n;
	for (size_t i = 0; i < lines->n; i++) {
		const struct vprof_parse_line *line = &lines->lines[i];

		if (line->line > G_MAXINT || (line->line > 0 && line->file >= text.n) ||
		    (i > 0 && line->address <= line[-1].address))
			return false;
	}
	return true;
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
	struct source_lines *lines = answer ? g_new0(struct source_lines, 1) : NULL;
	struct span span = {NULL, 0};

	/* That a program has none is no failure. */
	if (why && !g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT, "the debug information of %s %s", image_path(image),
		            why->message);
	if (!lines)
		return NULL;
	span.data = g_bytes_get_data(answer, &span.n);
	lines->start = start;
	lines->bytes = bytes;
	if (answer_take(lines, span))
		return lines;
	g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT,
	            "the debug information of %s cannot be read: what vprof-parse says of it contradicts itself",
	            image_path(image));
	source_lines_free(lines);
	return NULL;
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
