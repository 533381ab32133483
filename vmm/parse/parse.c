// SPDX-License-Identifier: BSD-2-Clause
#include "parse/parse.h"

#include <errno.h>
#include <unistd.h>

G_DEFINE_QUARK(vprof_parse_error, parse_error)

static const parse_fn parsers[] = {
	[VPROF_PARSE_UNPACK] = parse_unpack,     [VPROF_PARSE_MEMBER] = parse_member,
	[VPROF_PARSE_PAGES] = parse_pages,
#ifdef VPROF_HAVE_LIBDW
	[VPROF_PARSE_LINES] = parse_lines,       [VPROF_PARSE_TYPES] = parse_types,
	[VPROF_PARSE_PLACES] = parse_places,
#endif
	[VPROF_PARSE_SYMBOLS] = parse_symbols,   [VPROF_PARSE_FRAMES] = parse_frames,
	[VPROF_PARSE_PROGRAMS] = parse_programs, [VPROF_PARSE_MAP] = parse_map,
	[VPROF_PARSE_LAYOUT] = parse_layout,     [VPROF_PARSE_NOTES] = parse_notes,
	[VPROF_PARSE_DEMANGLED] = parse_symbols,
};

bool parse_fail(GError **error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *text = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error_literal(error, PARSE_ERROR, PARSE_ERROR_INPUT, text);
	return false;
}

bool parse_answer_put(struct parse_answer *answer, const void *bytes, size_t n, GError **error)
{
	ssize_t put;

	if (n > answer->limit - answer->bytes)
		return parse_fail(error, "it has or unpacks to more than %" G_GUINT64_FORMAT " bytes", answer->limit);
	for (size_t at = 0; at < n; at += (size_t)put) {
		put = write(answer->fd, (const char *)bytes + at, n - at);
		if (put <= 0)
			return parse_fail(error, "its contents cannot be stored: %s", g_strerror(errno));
	}
	answer->bytes += n;
	return true;
}

bool parse_answer_clear(struct parse_answer *answer, GError **error)
{
	answer->bytes = 0;
	return (ftruncate(answer->fd, 0) == 0 && lseek(answer->fd, 0, SEEK_SET) == 0) ||
	       parse_fail(error, "its contents cannot be stored: %s", g_strerror(errno));
}

parse_fn parse_find(const struct vprof_parse_request *request, GError **error)
{
	if (request->protocol != VPROF_PARSE_PROTOCOL)
		parse_fail(error, "vprof-parse is of another version; build or install all of vprof");
	else if (request->what >= G_N_ELEMENTS(parsers) || !parsers[request->what])
		parse_fail(error, "vprof-parse was built without a parser for it (libdw)");
	else if (request->text_bytes > sizeof(request->text) ||
	         (request->text_bytes > 0 && request->text[request->text_bytes - 1] != '\0') ||
	         request->packing >= VPROF_PARSE_PACKINGS || request->image >= VPROF_PARSE_IMAGES ||
	         request->answer_bytes > VPROF_PARSE_ANSWER_BYTES_MAX)
		parse_fail(error, "the request is malformed");
	else
		return parsers[request->what];
	return NULL;
}
