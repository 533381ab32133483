// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_names.h"

#include <string.h>

#include "engine/engine_find.h"
#include "ui/text.h"

json_t *probe_names_list(struct client *client, const char *pattern, json_t *names, json_t *bare, GError **error)
{
	uint64_t from = 0;

	for (;;) {
		json_t *arguments = json_pack("{s:I}", "from", (json_int_t)from), *answer, *providers;
		bool more;

		if (pattern)
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
	static const char *const providers[] = {"function:", "tracepoint:", PROBE_NAME_PROGRAM};
	const char *what = probe_name_program(text), *function = what ? strchr(what, ':') : NULL;
	bool has_patterns = false;

	for (size_t i = 0; i < G_N_ELEMENTS(providers); i++)
		has_patterns |= g_str_has_prefix(text, providers[i]);
	/* A path has none: [ is the name of a program. */
	return has_patterns && strpbrk(function ? function : text, "*?[");
}

const char *probe_name_program(const char *text)
{
	return g_str_has_prefix(text, PROBE_NAME_PROGRAM) ? text + strlen(PROBE_NAME_PROGRAM) : NULL;
}

char *probe_name_function(const char *text)
{
	const char *what = probe_name_program(text), *end, *function;

	if (!what)
		return NULL;
	end = what + strlen(what) - (probe_name_returns(text) ? strlen(PROBE_NAME_RETURN) : 0);
	function = g_strrstr_len(what, end - what, ":");
	return function ? g_strndup(function + 1, MIN((gsize)(end - function - 1), strcspn(function + 1, "+"))) : NULL;
}

bool probe_name_returns(const char *text)
{
	const char *what = probe_name_program(text);

	return what && g_str_has_suffix(what, PROBE_NAME_RETURN) &&
	       memchr(what, ':', strlen(what) - strlen(PROBE_NAME_RETURN));
}
