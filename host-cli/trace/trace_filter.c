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

struct script_node *trace_field_node(const struct trace_probe *probe, const char *field)
{
	static const struct {
		const char *field, *name;
		int64_t bits; /* of a cast; 0: none */
	} common[] = {
		{"time", "nsecs", 0}, {"vcpu", "cpu", 0},   {"pid", "pid", 32},  {"tid", "tid", 32},
		{"ip", "func", 0},    {"func", "func", 64}, {"comm", "comm", 0},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(common); i++) {
		if (strcmp(common[i].field, field) != 0)
			continue;
		struct script_node *name = script_node_text(NODE_NAME, common[i].name);

		return common[i].bits != 0 ? script_node_cast(common[i].bits, name) : name;
	}
	if (!trace_probe_has(probe, field))
		return NULL;
	if (!trace_field_is_text(field))
		return script_node_text(NODE_PATH, field);
	const char *path = strchr(field, '(') + 1;
	g_autofree char *inner = g_strndup(path, strlen(path) - 1);

	return script_node_list(NODE_CALL, "str", script_node_text(NODE_PATH, inner));
}

/* The operator as C has it. */
static const char *sign_of(const struct trace_filter *filter)
{
	for (size_t i = 0; i < G_N_ELEMENTS(operators); i++)
		if (operators[i].operator== filter->operator&& strcmp(operators[i].sign, "=") != 0)
			return operators[i].sign;
	return NULL;
}

static struct script_node *number_condition(const struct trace_filter *filter, struct script_node *value,
                                            uint64_t number)
{
	const int64_t bits = filter->is_signed ? -64 : 64;

	return script_node_pair(NODE_BINARY, sign_of(filter), script_node_cast(bits, value),
	                        script_node_cast(bits, script_node_number((int64_t)number)));
}

/* Whether only some names of tasks are as in memory: others are said by this side. */
static bool is_said(const char *comm)
{
	return strcmp(comm, "-") == 0 || strcmp(comm, "?") == 0 || g_str_has_prefix(comm, "swapper");
}

/* Whether it is for a whole text, or for how one begins, as it is in memory; *plain: the characters of that. */
static bool is_in_memory(const struct trace_filter *filter, size_t *plain)
{
	const size_t length = strlen(filter->value);

	*plain = strcspn(filter->value, "*?[\\\"");
	if ((*plain < length && (*plain == 0 || strcmp(filter->value + *plain, "*") != 0)) ||
	    length >= VPROF_PROGRAM_TEXT_BYTES || (strcmp(filter->field, "comm") == 0 && is_said(filter->value)))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!g_ascii_isprint(filter->value[i]))
			return false;
	return true;
}

static struct script_node *text_condition(const struct trace_filter *filter, struct script_node *value, size_t plain)
{
	g_autofree char *begin = g_strndup(filter->value, plain);
	struct script_node *text = script_node_text(NODE_STRING, begin);

	if (filter->value[plain] == '\0')
		return script_node_pair(NODE_BINARY, sign_of(filter), value, text);
	script_node_append(value, text);
	script_node_append(value, script_node_number((int64_t)plain));
	return script_node_pair(NODE_BINARY, sign_of(filter), script_node_list(NODE_CALL, "strncmp", value),
	                        script_node_number(0));
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
	struct script_node *condition = trace_filter_condition(filter, probe);

	script_node_free(condition);
	return !condition;
}

/* Of a field that the probe has; NULL: it is about names. */
static struct script_node *value_condition(const struct trace_filter *filter, const struct trace_probe *probe)
{
	uint64_t number = filter->number;
	size_t plain;

	if (has_text(probe, filter->field)) {
		if (filter->is_number)
			return script_node_number(0);
		return is_in_memory(filter, &plain)
		               ? text_condition(filter, trace_field_node(probe, filter->field), plain)
		               : NULL;
	}
	return filter->is_number || number_of_name(filter, probe, &number)
	               ? number_condition(filter, trace_field_node(probe, filter->field), number)
	               : NULL;
}

struct script_node *trace_filter_condition(const struct trace_filter *filter, const struct trace_probe *probe)
{
	const bool is_own = trace_probe_has(probe, filter->field);
	struct script_node *condition;

	if (strcmp(filter->field, "probe") == 0)
		return script_node_number(trace_filter_matches(filter, probe->name));
	if (strcmp(filter->field, "func") == 0 || trace_field_is_stack(filter->field))
		return NULL;
	if (!is_own && !trace_field_is_common(filter->field))
		return script_node_number(0);
	condition = value_condition(filter, probe);
	return condition && is_own
	               ? script_node_pair(NODE_BINARY, "&&", condition,
	                                  script_node_pair(NODE_BINARY, "==", script_node_text(NODE_NAME, "faults"),
	                                                   script_node_number(0)))
	               : condition;
}

bool trace_filter_matches(const struct trace_filter *filter, const char *text)
{
	return text && (fnmatch(filter->value, text, 0) == 0) == (filter->operator== EQUAL);
}
