// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_filter.h"

#include <fnmatch.h>
#include <string.h>

G_DEFINE_QUARK(vprof_trace_error, trace_error)

enum { EQUAL, NOT_EQUAL, NOT_LESS, NOT_GREATER, LESS, GREATER };

/* The longer ones first. */
static const struct {
	const char *sign;
	int operator;
} operators[] = {
	{"==", EQUAL}, {"!=", NOT_EQUAL}, {">=", NOT_LESS}, {"<=", NOT_GREATER},
	{"=", EQUAL},  {"<", LESS},       {">", GREATER},
};

static bool parse_number(const char *text, uint64_t *number)
{
	bool hex = g_str_has_prefix(text, "0x");
	guint64 value;

	if (!g_ascii_string_to_unsigned(hex ? text + 2 : text, hex ? 16 : 10, 0, UINT64_MAX, &value, NULL))
		return false;
	*number = value;
	return true;
}

static bool filter_error(const char *text, GError **error)
{
	g_set_error(
		error, TRACE_ERROR, TRACE_ERROR_FILTER,
		"\"%s\" is no filter; one is written FIELD=VALUE, with =, !=, <, <=, > or >=, as pid=12 or comm=sh*",
		text);
	return false;
}

static bool is_text_field(const char *field)
{
	static const char *const fields[] = {"comm", "probe", "func", NULL};

	return g_strv_contains(fields, field);
}

bool trace_filter_parse(const char *text, struct trace_filter *filter, GError **error)
{
	size_t length = strcspn(text, "=!<>");
	const char *sign = text + length;
	size_t i = 0;

	while (i < G_N_ELEMENTS(operators) && !g_str_has_prefix(sign, operators[i].sign))
		i++;
	if (length == 0 || i == G_N_ELEMENTS(operators))
		return filter_error(text, error);
	*filter = (struct trace_filter){.field = g_strndup(text, length),
	                                .value = g_strdup(sign + strlen(operators[i].sign)),
	                                .operator= operators[i].operator};
	filter->is_number = !is_text_field(filter->field) && parse_number(filter->value, &filter->number);
	if (filter->value[0] != '\0' && (filter->is_number || filter->operator<= NOT_EQUAL))
		return true;
	trace_filter_clear(filter);
	return filter_error(text, error);
}

void trace_filter_clear(struct trace_filter *filter)
{
	g_free(filter->field);
	g_free(filter->value);
}

static bool compare(uint64_t a, int operator, uint64_t b)
{
	switch (operator) {
	case EQUAL:
		return a == b;
	case NOT_EQUAL:
		return a != b;
	case LESS:
		return a < b;
	case GREATER:
		return a > b;
	case NOT_LESS:
		return a >= b;
	default:
		return a <= b;
	}
}

bool trace_filter_match(const struct trace_filter *filter, const struct trace_event *event, const struct symtab *symtab)
{
	g_autofree char *text = NULL;
	uint64_t number;

	if (filter->is_number)
		return trace_event_number(event, filter->field, &number) &&
		       compare(number, filter->operator, filter->number);
	text = trace_event_text(event, filter->field, symtab);
	return text && (fnmatch(filter->value, text, 0) == 0) == (filter->operator== EQUAL);
}
