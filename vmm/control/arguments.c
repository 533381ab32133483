// SPDX-License-Identifier: BSD-2-Clause
/* Checks the arguments of a request against the method's table. */
#include <string.h>

#include "control/method_priv.h"

static const char *argument_type_name(enum argument_type type)
{
	static const char *const names[] = {
		[ARGUMENT_ADDRESS] = "address", [ARGUMENT_BOOLEAN] = "boolean",  [ARGUMENT_INTEGER] = "integer",
		[ARGUMENT_STRING] = "string",   [ARGUMENT_STRINGS] = "[string]",
	};

	return names[type];
}

static bool in_range(const struct method_argument *argument, int64_t value)
{
	return value >= argument->min && value <= argument->max;
}

int argument_choice(const char *const *choices, const char *text)
{
	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], text) == 0)
			return i;
	}
	return -1;
}

static bool is_strings(const struct method_argument *argument, const json_t *value)
{
	if (!json_is_array(value))
		return false;
	for (size_t i = 0; i < json_array_size(value); i++) {
		const char *text = json_string_value(json_array_get(value, i));

		if (!text || (argument->choices && argument_choice(argument->choices, text) < 0))
			return false;
	}
	return in_range(argument, (int64_t)json_array_size(value));
}

static bool parse_address(const char *text, uint64_t *address)
{
	return g_str_has_prefix(text, "0x") && g_ascii_string_to_unsigned(text + 2, 16, 0, UINT64_MAX, address, NULL);
}

/* Addresses of kernels exceed JSON's integers, so an address may be a string, too. */
static bool is_address(const json_t *value)
{
	uint64_t address;

	return (json_is_integer(value) && json_integer_value(value) >= 0) ||
	       (json_is_string(value) && parse_address(json_string_value(value), &address));
}

uint64_t control_address(const json_t *value)
{
	uint64_t address = 0;

	if (json_is_integer(value))
		return (uint64_t)json_integer_value(value);
	if (value)
		parse_address(json_string_value(value), &address);
	return address;
}

static bool is_string(const struct method_argument *argument, const json_t *value)
{
	if (!json_is_string(value))
		return false;
	if (argument->choices)
		return argument_choice(argument->choices, json_string_value(value)) >= 0;
	return in_range(argument, (int64_t)json_string_length(value));
}

static bool fits(const struct method_argument *argument, const json_t *value)
{
	switch (argument->type) {
	case ARGUMENT_ADDRESS:
		return is_address(value);
	case ARGUMENT_BOOLEAN:
		return json_is_boolean(value);
	case ARGUMENT_INTEGER:
		return json_is_integer(value) && in_range(argument, json_integer_value(value));
	case ARGUMENT_STRING:
		return is_string(argument, value);
	case ARGUMENT_STRINGS:
		return is_strings(argument, value);
	}
	return false;
}

static json_t *choices_json(const char *const *names)
{
	json_t *list = json_array();

	for (; *names; names++)
		json_array_append_new(list, json_string(*names));
	return list;
}

json_t *argument_limits(const struct method_argument *argument)
{
	json_t *limits = json_pack("{s:s}", "type", argument_type_name(argument->type));

	if (argument->choices) {
		json_object_set_new(limits, "choices", choices_json(argument->choices));
	} else if (argument->type != ARGUMENT_BOOLEAN && argument->type != ARGUMENT_ADDRESS) {
		json_object_set_new(limits, "min", json_integer((json_int_t)argument->min));
		json_object_set_new(limits, "max", json_integer((json_int_t)argument->max));
	}
	return limits;
}

/* For messages: "an integer from 1 to 50000", "one of none, auto". */
static char *describe(const struct method_argument *argument)
{
	long long min = argument->min, max = argument->max;
	g_autofree char *choices = argument->choices ? g_strjoinv(", ", (char **)argument->choices) : NULL;
	if (choices)
		return g_strdup_printf(argument->type == ARGUMENT_STRINGS ? "an array of any of %s" : "one of %s",
		                       choices);
	switch (argument->type) {
	case ARGUMENT_ADDRESS:
		return g_strdup("a string like \"0xffffffff81000000\", or an integer from 0");
	case ARGUMENT_BOOLEAN:
		return g_strdup("true or false");
	case ARGUMENT_INTEGER:
		return g_strdup_printf("an integer from %lld to %lld", min, max);
	case ARGUMENT_STRING:
		return g_strdup_printf("a string of %lld to %lld bytes", min, max);
	case ARGUMENT_STRINGS:
		return g_strdup_printf("an array of %lld to %lld strings", min, max);
	}
	return NULL;
}

static const struct method_argument *find_argument(const struct control_method *method, const char *name)
{
	for (const struct method_argument *argument = method->arguments; argument && argument->name; argument++) {
		if (strcmp(argument->name, name) == 0)
			return argument;
	}
	return NULL;
}

static bool refuse(const struct control_method *method, const struct method_argument *argument, const char *why,
                   GError **error)
{
	g_autofree char *wanted = describe(argument);

	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT, "argument \"%s\" of %s %s %s", argument->name,
	            method->name, why, wanted);
	return false;
}

static bool given_check(const struct control_method *method, const char *name, const json_t *value, GError **error)
{
	const struct method_argument *argument = find_argument(method, name);

	if (argument)
		return fits(argument, value) || refuse(method, argument, "must be", error);
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
	            "%s has no argument \"%.64s\"; query-schema lists them", method->name, name);
	return false;
}

bool arguments_check(const struct control_method *method, const json_t *arguments, GError **error)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)arguments, name, value) {
		if (!given_check(method, name, value, error))
			return false;
	}
	for (const struct method_argument *argument = method->arguments; argument && argument->name; argument++) {
		if (!argument->optional && !json_object_get(arguments, argument->name))
			return refuse(method, argument, "is missing:", error);
	}
	return true;
}

bool control_vcpu_check(const struct guest *guest, json_int_t vcpu, GError **error)
{
	if (vcpu < (json_int_t)guest->vcpus)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT, "there is no vCPU %lld: guest %s has %u",
	            (long long)vcpu, guest->name, guest->vcpus);
	return false;
}
