// SPDX-License-Identifier: BSD-2-Clause
#include "terminal/terminal.h"

#include "lib/record/text.h"

static void line_clear(void *data)
{
	struct terminal_line *line = data;

	g_free(line->text);
}

GArray *terminal_lines_new(void)
{
	GArray *lines = g_array_new(FALSE, FALSE, sizeof(struct terminal_line));

	g_array_set_clear_func(lines, line_clear);
	return lines;
}

void terminal_line_add(GArray *lines, enum terminal_style style, char *text)
{
	struct terminal_line line = {.text = text_printable(text), .style = style};

	g_free(text);
	g_array_append_val(lines, line);
}

void terminal_lines_keys(GArray *lines, const char *const *texts)
{
	terminal_line_add(lines, TERMINAL_HEAD, g_strdup("KEYS"));
	for (; *texts; texts++)
		terminal_line_add(lines, TERMINAL_PLAIN, g_strdup(*texts));
}
