// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_names.h"

#include <string.h>

#include "engine/engine_find.h"
#include "trace/probe_lines.h"
#include "ui/text.h"

json_t *probe_names_list(struct client *client, const char *pattern, json_t *names, json_t *bare, GError **error)
{
	const bool is_line = pattern && probe_is_line(pattern);
	uint64_t from = 0;

	if (is_line && !probe_lines_list(client, pattern, names, error))
		return NULL;
	for (;;) {
		json_t *arguments = json_pack("{s:I}", "from", (json_int_t)from), *answer, *providers;
		bool more;

		if (pattern && !is_line)
			json_object_set_new(arguments, "match", text_json(pattern));
		answer = engine_ask(client, "probe-list", arguments, error);
		if (!answer)
			return NULL;
		json_array_extend(names, json_object_get(answer, "probes"));
		json_array_extend(bare, json_object_get(answer, "without-arguments"));
		more = member_number(answer, "next", 0) > from;
		from = member_number(answer, "next", 0);
		providers = json_incref(json_object_get(answer, "providers"));
		json_decref(answer);
		if (!more)
			return providers;
		json_decref(providers);
	}
}

char *probe_name_full(const char *text)
{
	const bool is_call = g_str_has_prefix(text, "syscalls:") || g_str_has_prefix(text, "raw_syscalls:");

	return g_strconcat(is_call ? "tracepoint:" : "", text, NULL);
}

bool probe_name_is_pattern(const char *text)
{
	static const char *const providers[] = {"function:", "tracepoint:", PROBE_NAME_PROGRAM, PROBE_NAME_NOTE};
	const char *what = probe_name_program(text), *function = what ? strchr(what, ':') : NULL;
	bool has_patterns = false;

	for (size_t i = 0; i < G_N_ELEMENTS(providers); i++)
		has_patterns |= g_str_has_prefix(text, providers[i]);
	/* A path has none: [ is the name of a program. */
	return probe_is_line(text) || (has_patterns && strpbrk(function ? function : text, "*?["));
}

const char *probe_name_program(const char *text)
{
	static const char *const providers[] = {PROBE_NAME_PROGRAM, PROBE_NAME_NOTE};

	for (size_t i = 0; i < G_N_ELEMENTS(providers); i++)
		if (g_str_has_prefix(text, providers[i]))
			return text + strlen(providers[i]);
	return NULL;
}

bool probe_name_is_note(const char *text)
{
	return g_str_has_prefix(text, PROBE_NAME_NOTE);
}

bool probe_name_returns(const char *text)
{
	const char *what = g_str_has_prefix(text, PROBE_NAME_PROGRAM) ? probe_name_program(text) : NULL;

	return what && g_str_has_suffix(what, PROBE_NAME_RETURN) &&
	       memchr(what, ':', strlen(what) - strlen(PROBE_NAME_RETURN));
}

/* The colon behind BINARY, which may have some itself; NULL: there is none. */
static const char *path_end(const char *text)
{
	const char *what = probe_name_program(text), *end;

	if (!what)
		return NULL;
	end = what + strlen(what) - (probe_name_returns(text) ? strlen(PROBE_NAME_RETURN) : 0);
	end = g_strrstr_len(what, end - what, ":");
	return end && probe_name_is_note(text) ? g_strrstr_len(what, end - what, ":") : end;
}

char *probe_name_path(const char *text)
{
	const char *end = path_end(text), *what = probe_name_program(text);

	return end ? g_strndup(what, (gsize)(end - what)) : NULL;
}

char *probe_name_function(const char *text)
{
	const char *end = path_end(text);

	if (!end || probe_name_is_note(text))
		return end ? g_strdup(end + 1) : NULL;
	return g_strndup(end + 1, strcspn(end + 1, ":+"));
}
