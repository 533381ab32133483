// SPDX-License-Identifier: BSD-2-Clause
#include "lib/probe_name/probe_spec.h"

#include <string.h>

#include "lib/probe_name/probe_name.h"

G_DEFINE_QUARK(vprof_probe_error, probe_error)

bool probe_syntax_error(const struct probe_spec *spec, const char *text, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_SYNTAX, "\"%s:%s\" is no probe; it is written %s",
	            probe_providers[spec->kind].name, text, probe_providers[spec->kind].syntax);
	return false;
}

/* strtoull also takes signs, spaces and octal numbers, which are errors here. */
bool probe_number(const char *text, uint64_t max, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	guint64 value;

	if (!g_ascii_string_to_unsigned(hex ? text + 2 : text, hex ? 16 : 10, 0, max, &value, NULL))
		return false;
	*number = value;
	return true;
}

bool probe_range(const char *text, uint64_t max, uint64_t *first, uint64_t *last)
{
	if (strcmp(text, "*") == 0) {
		*first = 0;
		*last = max;
		return true;
	}
	g_auto(GStrv) ends = g_strsplit(text, "-", 3);
	guint n = g_strv_length(ends);
	return n >= 1 && n <= 2 && probe_number(ends[0], max, first) && probe_number(ends[n - 1], max, last) &&
	       *first <= *last;
}

/* The first of this name. */
static enum probe_kind find_provider(const char *text, size_t length)
{
	unsigned i = 0;

	while (i < PROBE_KINDS &&
	       (strlen(probe_providers[i].name) != length || memcmp(probe_providers[i].name, text, length) != 0))
		i++;
	return (enum probe_kind)i;
}

static bool provider_error(const char *text, GError **error)
{
	g_autoptr(GString) names = g_string_new(NULL);

	for (size_t i = 0; i < PROBE_KINDS; i++)
		if (i == 0 || !g_str_equal(probe_providers[i].name, probe_providers[i - 1].name))
			g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", probe_providers[i].name);
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_SYNTAX,
	            "\"%s\" is no probe; it is written PROVIDER:WHAT, and the providers are %s", text, names->str);
	return false;
}

bool probe_spec_parse(const char *given, struct probe_spec *spec, GError **error)
{
	g_autofree char *text = probe_name_full(given);
	const size_t length = strcspn(text, ":");
	struct probe_spec parsed = {.kind = find_provider(text, length)};

	if (parsed.kind == PROBE_KINDS || text[length] == '\0' || strlen(text) >= PROBE_NAME_BYTES)
		return provider_error(text, error);
	if (!probe_providers[parsed.kind].parse(&parsed, text + length + 1, error))
		return false;
	*spec = parsed;
	return true;
}
