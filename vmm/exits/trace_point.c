// SPDX-License-Identifier: BSD-2-Clause
#include "exits/trace_point.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *trace_point_format(const char *name)
{
	/* The second: where it was before Linux 4.1, and where old set-ups still mount it. */
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	int first = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(roots); i++) {
		g_autofree char *path = g_strdup_printf("%s/events/%s/format", roots[i], name);
		char *text = NULL;

		errno = 0;
		if (g_file_get_contents(path, &text, NULL, NULL))
			return text;
		first = first ? first : errno;
	}
	errno = first;
	return NULL;
}

bool trace_point_id(const char *format, uint64_t *id)
{
	const char *line = strstr(format, "\nID: ");

	return line && sscanf(line, "\nID: %" SCNu64, id) == 1;
}

/* "	field:unsigned int exit_reason;	offset:8;	size:4;	signed:0;" */
static bool line_is(const char *line, const char *field, unsigned offset, unsigned bytes)
{
	const char *end = strchr(line, ';');
	const size_t length = strlen(field);
	unsigned at, size;

	return g_str_has_prefix(line, "\tfield:") && end && (size_t)(end - line) > length + 1 &&
	       end[-(ptrdiff_t)length - 1] == ' ' && strncmp(end - length, field, length) == 0 &&
	       sscanf(end, "; offset:%u; size:%u;", &at, &size) == 2 && at == offset && size == bytes;
}

bool trace_point_has(const char *format, const char *field, unsigned offset, unsigned bytes)
{
	g_auto(GStrv) lines = g_strsplit(format, "\n", 0);

	for (char **line = lines; *line; line++)
		if (line_is(*line, field, offset, bytes))
			return true;
	return false;
}
