// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_filter.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <vprof/program.h>

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

static bool parse_value(struct trace_filter *filter)
{
	const struct filter_field *field = find_field(filter->field);
	bool equality = filter->operator== EQUAL || filter->operator== NOT_EQUAL;

	/* Fields that are not in the table may be numbers with a sign as well: the value says which. */
	filter->is_signed = trace_field_is_result(filter->field) ||
	                    (!field->name && !trace_field_is_common(filter->field) && is_negative(filter->value));
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

/* ---- as a script has it ---- */

char *trace_field_expression(const struct trace_probe *probe, const char *field)
{
	static const char *const common[][2] = {
		{"time", "nsecs"}, {"vcpu", "cpu"},          {"pid", "(uint32)pid"}, {"tid", "(uint32)tid"},
		{"ip", "func"},    {"func", "(uint64)func"}, {"comm", "comm"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(common); i++)
		if (strcmp(common[i][0], field) == 0)
			return g_strdup(common[i][1]);
	if (!trace_probe_has(probe, field))
		return NULL;
	const bool in_str = trace_field_is_text(field);
	const char *path = in_str ? strchr(field, '(') + 1 : field;
	const bool is_whole = path[0] == '(' || g_str_has_prefix(path, "curtask");

	return g_strconcat(in_str ? "str(" : "", is_whole ? "" : "args.", path, NULL);
}

/* The operator as C has it. */
static const char *sign_of(const struct trace_filter *filter)
{
	for (size_t i = 0; i < G_N_ELEMENTS(operators); i++)
		if (operators[i].operator== filter->operator&& strcmp(operators[i].sign, "=") != 0)
			return operators[i].sign;
	return NULL;
}

static char *number_condition(const struct trace_filter *filter, const char *expression, uint64_t number)
{
	const char *type = filter->is_signed ? "int64" : "uint64";

	return g_strdup_printf("(%s)%s %s (%s)%" PRIu64, type, expression, sign_of(filter), type, number);
}

/* Whether only some names of tasks are as in memory: others are said by this side. */
static bool is_said(const char *comm)
{
	return strcmp(comm, "-") == 0 || strcmp(comm, "?") == 0 || g_str_has_prefix(comm, "swapper");
}

/* A whole text, or how it begins; NULL: any other pattern. */
static char *text_condition(const struct trace_filter *filter, const char *expression)
{
	const size_t plain = strcspn(filter->value, "*?[\\\""), length = strlen(filter->value);
	const bool is_prefix = plain > 0 && strcmp(filter->value + plain, "*") == 0;

	if ((plain < length && !is_prefix) || length >= VPROF_PROGRAM_TEXT_BYTES ||
	    (strcmp(filter->field, "comm") == 0 && is_said(filter->value)))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (!g_ascii_isprint(filter->value[i]))
			return NULL;
	if (!is_prefix)
		return g_strdup_printf("%s %s \"%s\"", expression, sign_of(filter), filter->value);
	return g_strdup_printf("strncmp(%s, \"%.*s\", %zu) %s 0", expression, (int)plain, filter->value, plain,
	                       sign_of(filter));
}

/* False: it is no name. */
static bool number_of_name(const struct trace_filter *filter, const struct trace_probe *probe, uint64_t *number)
{
	const bool of_call = strcmp(filter->field, "reason") != 0;
	const uint64_t n = of_call ? SYSCALL_NUMBER_MAX + 1 : exit_name_count();

	if (of_call ? !probe->is_syscall : !probe->is_exit)
		return false;
	for (*number = 0; *number < n; (*number)++)
		if (g_strcmp0(of_call ? syscall_name(*number) : exit_name_of_reason(*number), filter->value) == 0)
			return true;
	return false;
}

static bool has_text(const struct trace_probe *probe, const char *field)
{
	const struct trace_path *path = trace_probe_path(probe, field);

	return strcmp(field, "comm") == 0 || (path && path->is_text);
}

bool trace_filter_is_of_names(const struct trace_filter *filter, const struct trace_probe *probe)
{
	g_autofree char *condition = trace_filter_condition(filter, probe);

	return !condition;
}

char *trace_filter_condition(const struct trace_filter *filter, const struct trace_probe *probe)
{
	g_autofree char *expression = trace_field_expression(probe, filter->field), *condition = NULL;
	uint64_t number;

	if (strcmp(filter->field, "probe") == 0)
		return g_strdup(trace_filter_matches(filter, probe->name) ? "1" : "0");
	if (strcmp(filter->field, "func") == 0 || trace_field_is_stack(filter->field))
		return NULL;
	if (!expression)
		return g_strdup("0");
	if (filter->is_number && has_text(probe, filter->field))
		return g_strdup("0");
	if (filter->is_number)
		condition = number_condition(filter, expression, filter->number);
	else if (has_text(probe, filter->field))
		condition = text_condition(filter, expression);
	else if (number_of_name(filter, probe, &number))
		condition = number_condition(filter, expression, number);
	return condition && trace_probe_has(probe, filter->field) ? g_strconcat(condition, " && faults == 0", NULL)
	                                                          : g_steal_pointer(&condition);
}

bool trace_filter_matches(const struct trace_filter *filter, const char *text)
{
	return text && (fnmatch(filter->value, text, 0) == 0) == (filter->operator== EQUAL);
}
