// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_filter.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"

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

static bool is_negative(const char *text)
{
	return text[0] == '-';
}

/* A negative one as 64 bits have it. */
static bool parse_signed(const char *text, uint64_t *number)
{
	if (!is_negative(text))
		return parse_number(text, number);
	if (!parse_number(text + 1, number) || *number > (uint64_t)INT64_MAX)
		return false;
	*number = -*number;
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

static bool is_text(const char *pattern G_GNUC_UNUSED)
{
	return true;
}

static bool names_syscall(const char *pattern)
{
	for (uint64_t number = 0; number <= SYSCALL_NUMBER_MAX; number++) {
		if (syscall_name(number) && fnmatch(pattern, syscall_name(number), 0) == 0)
			return true;
	}
	return false;
}

static bool names_exit(const char *pattern)
{
	for (uint64_t reason = 0; reason < exit_name_count(); reason++) {
		if (exit_name_of_reason(reason) && fnmatch(pattern, exit_name_of_reason(reason), 0) == 0)
			return true;
	}
	return false;
}

/* Fields that take a pattern, with = and !=; the last row stands for all others. */
static const struct filter_field {
	const char *name;
	bool number;
	bool (*pattern)(const char *pattern);
	const char *takes;
} fields[] = {
	{"comm", false, is_text, "a pattern, with = or !="},
	{"probe", false, is_text, "a pattern, with = or !="},
	{"func", false, is_text, "a pattern, with = or !="},
	{"stack", false, is_text, "a pattern, with = or !="},
	{"kstack", false, is_text, "a pattern, with = or !="},
	{"ustack", false, is_text, "a pattern, with = or !="},
	{"nr", true, names_syscall, "a number, or, with = or !=, the name of a system call or a pattern for names"},
	{"id", true, names_syscall, "a number, or, with = or !=, the name of a system call or a pattern for names"},
	{"reason", true, names_exit, "a number, or, with = or !=, the name of an exit or a pattern for names"},
	{"retval", true, NULL, "a number, which may be negative, decimal or hexadecimal with 0x"},
	{"ret", true, NULL, "a number, which may be negative, decimal or hexadecimal with 0x"},
	{NULL, true, NULL, "a number, decimal or hexadecimal with 0x"},
};

static const struct filter_field *find_field(const char *name)
{
	const struct filter_field *field = fields;

	if (trace_field_is_text(name))
		return field; /* as comm */
	while (field->name && strcmp(field->name, name) != 0)
		field++;
	return field;
}

/* Fields that all events have: none is ever negative. */
static bool is_common(const char *field)
{
	static const char *const names[] = {"time", "vcpu", "pid", "tid", "ip", NULL};

	return g_strv_contains(names, field);
}

static bool parse_value(struct trace_filter *filter)
{
	const struct filter_field *field = find_field(filter->field);
	bool equality = filter->operator== EQUAL || filter->operator== NOT_EQUAL;

	/* Fields that are not in the table may be numbers with a sign as well: the value says which. */
	filter->is_signed = trace_field_is_result(filter->field) ||
	                    (!field->name && !is_common(filter->field) && is_negative(filter->value));
	filter->is_number = field->number && (filter->is_signed ? parse_signed(filter->value, &filter->number)
	                                                        : parse_number(filter->value, &filter->number));
	return filter->is_number ||
	       (equality && filter->value[0] != '\0' && field->pattern && field->pattern(filter->value));
}

static bool value_error(const char *text, const struct trace_filter *filter, GError **error)
{
	g_set_error(
		error, TRACE_ERROR, TRACE_ERROR_FILTER,
		"filter \"%s\" makes no sense: %s takes %s; to combine filters, give --filter for each of them: all must match",
		text, filter->field, find_field(filter->field)->takes);
	return false;
}

/* Where the operator is: ">" in a path's "->" is none. */
static size_t field_length(const char *text)
{
	size_t n = 0;

	while (text[n] != '\0' && !strchr("=!<>", text[n]))
		n += g_str_has_prefix(text + n, "->") ? 2 : 1;
	return n;
}

bool trace_filter_parse(const char *text, struct trace_filter *filter, GError **error)
{
	size_t length = field_length(text);
	const char *sign = text + length;
	size_t i = 0;

	while (i < G_N_ELEMENTS(operators) && !g_str_has_prefix(sign, operators[i].sign))
		i++;
	if (length == 0 || i == G_N_ELEMENTS(operators))
		return filter_error(text, error);
	*filter = (struct trace_filter){.field = g_strndup(text, length),
	                                .value = g_strdup(sign + strlen(operators[i].sign)),
	                                .operator= operators[i].operator};
	if (parse_value(filter))
		return true;
	value_error(text, filter, error);
	trace_filter_clear(filter);
	return false;
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

bool trace_filter_match(const struct trace_filter *filter, const struct trace_event *event, struct trace_names *names)
{
	/* Signed numbers are in the order of unsigned ones when their sign is flipped. */
	const uint64_t sign = filter->is_signed ? UINT64_C(1) << 63 : 0;
	g_autofree char *text = NULL;
	uint64_t number;

	if (filter->is_number)
		return trace_event_number(event, filter->field, &number) &&
		       compare(number ^ sign, filter->operator, filter->number ^ sign);
	text = trace_event_text(event, filter->field, names);
	return text && (fnmatch(filter->value, text, 0) == 0) == (filter->operator== EQUAL);
}
