// SPDX-License-Identifier: BSD-2-Clause
#include "lib/probe_name/probe_name.h"

#include <string.h>

#define PATTERN "*?["

char *probe_name_full(const char *text)
{
	const bool is_call = g_str_has_prefix(text, "syscalls:") || g_str_has_prefix(text, "raw_syscalls:");

	return g_strconcat(is_call ? PROBE_NAME_TRACEPOINT : "", text, NULL);
}

const char *probe_name_line(const char *text)
{
	const char *separator =
		g_str_has_prefix(text, PROBE_NAME_FUNCTION) ? strchr(text + strlen(PROBE_NAME_FUNCTION), ':') : NULL;

	if (!separator || !(g_ascii_isdigit(separator[1]) || (separator[1] != '\0' && strchr(PATTERN, separator[1]))))
		return NULL;
	g_autofree char *file = g_strndup(text, (gsize)(separator - text));
	return strchr(file, '.') && !strpbrk(file, PATTERN) ? separator + 1 : NULL;
}

bool probe_name_is_note(const char *text)
{
	return g_str_has_prefix(text, PROBE_NAME_NOTE);
}

bool probe_name_is_of_program(const char *text)
{
	return g_str_has_prefix(text, PROBE_NAME_PROGRAM) || probe_name_is_note(text);
}

bool probe_name_is_pattern(const char *text)
{
	const char *what = text;

	if (probe_name_line(text))
		return true;
	/* A path has none: [ is the name of a program. */
	if (probe_name_is_of_program(text) && (what = strchr(strchr(text, ':') + 1, ':')) == NULL)
		what = text;
	else if (what == text && !g_str_has_prefix(text, PROBE_NAME_FUNCTION) &&
	         !g_str_has_prefix(text, PROBE_NAME_TRACEPOINT))
		return false;
	return strpbrk(what, PATTERN);
}

static char *part(const char *from, const char *end)
{
	return g_strndup(from, (gsize)(end - from));
}

bool probe_in_program_parse(const char *text, struct probe_in_program *out)
{
	struct probe_in_program parsed = {.is_note = probe_name_is_note(text)};
	const char *what, *end, *colon;

	if (!probe_name_is_of_program(text))
		return false;
	what = strchr(text, ':') + 1;
	end = what + strlen(what);
	if (!parsed.is_note && g_str_has_suffix(what, PROBE_NAME_RETURN) &&
	    memchr(what, ':', strlen(what) - strlen(PROBE_NAME_RETURN))) {
		parsed.returns = true;
		end -= strlen(PROBE_NAME_RETURN);
	}
	colon = g_strrstr_len(what, end - what, ":");
	if (colon && parsed.is_note)
		colon = g_strrstr_len(what, colon - what, ":");
	if (!colon)
		return false;
	const char *plus = parsed.is_note ? NULL : memchr(colon, '+', (size_t)(end - colon));

	parsed.path = part(what, colon);
	parsed.name = part(colon + 1, plus ? plus : end);
	parsed.offset = plus ? part(plus + 1, end) : NULL;
	*out = parsed;
	return true;
}

void probe_in_program_clear(struct probe_in_program *program)
{
	g_clear_pointer(&program->path, g_free);
	g_clear_pointer(&program->name, g_free);
	g_clear_pointer(&program->offset, g_free);
}

/* ---- in a script ---- */

/* bpftrace's names for what engines call otherwise, long and short, and what those have at the end. */
static const struct {
	const char *given, *shown, *own, *end;
} aliases[] = {
	{"kprobe:", "kprobe", PROBE_NAME_FUNCTION, ""},
	{"k:", "kprobe", PROBE_NAME_FUNCTION, ""},
	{"kfunc:", "kfunc", PROBE_NAME_FUNCTION, ""},
	{"fentry:", "fentry", PROBE_NAME_FUNCTION, ""},
	{"kretprobe:", "kretprobe", "return:", ""},
	{"kr:", "kretprobe", "return:", ""},
	{"uprobe:", "uprobe", PROBE_NAME_PROGRAM, ""},
	{"u:", "uprobe", PROBE_NAME_PROGRAM, ""},
	{"uretprobe:", "uretprobe", PROBE_NAME_PROGRAM, PROBE_NAME_RETURN},
	{"ur:", "uretprobe", PROBE_NAME_PROGRAM, PROBE_NAME_RETURN},
	{"U:", "usdt", PROBE_NAME_NOTE, ""},
	{"t:", NULL, PROBE_NAME_TRACEPOINT, ""},
	{"p:", NULL, "profile:", ""},
	{"i:", NULL, "interval:", ""},
};

void probe_written_parse(const char *text, size_t n, struct probe_written *out)
{
	g_autofree char *given = g_strndup(text, n);
	const bool begins = strcmp(given, "BEGIN") == 0 || strcmp(given, "begin") == 0,
		   ends = strcmp(given, "END") == 0 || strcmp(given, "end") == 0;

	*out = (struct probe_written){.end = ""};
	if (begins || ends) {
		out->shown = g_ascii_strup(given, -1);
		out->name = g_strdup(begins ? "recording:start" : "recording:end");
		return;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++) {
		if (!g_str_has_prefix(given, aliases[i].given))
			continue;
		out->shown = g_strdup(aliases[i].shown);
		out->end = aliases[i].end;
		out->name = g_strconcat(aliases[i].own, given + strlen(aliases[i].given), aliases[i].end, NULL);
		return;
	}
	out->name = probe_name_full(given);
}

void probe_written_clear(struct probe_written *written)
{
	g_clear_pointer(&written->name, g_free);
	g_clear_pointer(&written->shown, g_free);
}

const char *probe_written_elsewhere(const char *text)
{
	static const char *const elsewhere[] = {
		"software:", "hardware:", "kretfunc:", "fexit:", "rawtracepoint:", "watchpoint:", "iter:"};

	for (size_t i = 0; i < G_N_ELEMENTS(elsewhere); i++)
		if (g_str_has_prefix(text, elsewhere[i]))
			return elsewhere[i];
	return NULL;
}

/* Of PROVIDER:FILE:LINE, the file of which may have slashes; 0: it is none. */
static size_t source_line_length(const char *text)
{
	static const char path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+/";
	const char *file = strpbrk(text, ": \t\r\n,{}/");
	const size_t n = file && *file == ':' ? strspn(file + 1, path) : 0,
		     digits = n > 0 && file[n + 1] == ':' ? strspn(file + n + 2, "0123456789") : 0;

	return digits > 0 && memchr(file, '.', n + 1) ? (size_t)(file + n + 2 + digits - text) : 0;
}

/* Whether the text is of a program, by the engines' name or bpftrace's, so that a slash is part of its path. */
static bool has_path(const char *text)
{
	bool has = probe_name_is_of_program(text);

	for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++)
		has |= g_str_has_prefix(text, aliases[i].given) && probe_name_is_of_program(aliases[i].own);
	return has;
}

size_t probe_written_length(const char *text)
{
	const bool is_path = has_path(text);
	const size_t line = is_path ? 0 : source_line_length(text);

	return line > 0 ? line : strcspn(text, is_path ? " \t\r\n,{}" : " \t\r\n,/{}");
}
