// SPDX-License-Identifier: BSD-2-Clause
#include "engine/ctl_request.h"

#include <string.h>

#include "ui/text.h"

G_DEFINE_QUARK(vprof_ctl_error, ctl_error)

static const json_t *find_named(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (g_strcmp0(member_text(item, "name"), name) == 0)
			return item;
	return NULL;
}

const json_t *ctl_method(const json_t *schema, const char *name)
{
	return find_named(json_object_get(schema, "methods"), name);
}

void ctl_schema_complete(json_t *schema)
{
	const json_t *methods = json_object_get(schema, "methods");
	json_t *method;
	size_t i;

	json_array_foreach(methods, i, method) {
		const char *of = member_text(method, "arguments-of");

		if (of)
			json_object_set(method, "arguments", json_object_get(ctl_method(schema, of), "arguments"));
	}
}

bool ctl_needs_control(const json_t *method)
{
	return g_strcmp0(member_text(method, "role"), "control") == 0;
}

static json_t *strings_of(const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, ",", -1);
	json_t *strings = json_array();

	for (char **part = parts; *part; part++)
		json_array_append_new(strings, text_json(*part));
	return strings;
}

/* Arguments of type string stay strings even if they look like numbers: a name may be "7". */
static json_t *value_of(const char *type, const char *text)
{
	json_t *value;

	if (g_strcmp0(type, "string") == 0 || g_strcmp0(type, "address") == 0)
		return text_json(text);
	if (g_strcmp0(type, "[string]") == 0)
		return strings_of(text);
	value = json_loads(text, JSON_DECODE_ANY, NULL);
	return value ? value : text_json(text);
}

json_t *ctl_arguments(const json_t *method, char *const *words, GError **error)
{
	json_t *arguments = json_object();

	for (; *words; words++) {
		const char *equals = strchr(*words, '=');
		g_autofree char *name = equals ? g_strndup(*words, (gsize)(equals - *words)) : NULL;

		if (!name ||
		    json_object_set_new(
			    arguments, name,
			    value_of(member_text(find_named(json_object_get(method, "arguments"), name), "type"),
		                     equals + 1)) != 0) {
			g_set_error(error, CTL_ERROR, CTL_ERROR_WORDS, "\"%s\" is no argument; write KEY=VALUE",
			            *words);
			json_decref(arguments);
			return NULL;
		}
	}
	return arguments;
}

static void add_names(GPtrArray *words, const json_t *list, const char *prefix, char behind)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *name = member_text(item, "name");

		if (name && g_str_has_prefix(name, prefix))
			g_ptr_array_add(words, g_strdup_printf("%s%c", name, behind));
	}
}

static void add_values(GPtrArray *words, const json_t *argument, const char *word)
{
	const json_t *choices = json_object_get(argument, "choices"), *choice;
	const char *begun = strchr(word, '=') + 1;
	size_t i;

	json_array_foreach(choices, i, choice)
		if (g_str_has_prefix(json_string_value(choice), begun))
			g_ptr_array_add(words, g_strdup_printf("%s=%s ", member_text(argument, "name"),
			                                       json_string_value(choice)));
	if (g_strcmp0(member_text(argument, "type"), "boolean") == 0) {
		g_ptr_array_add(words, g_strdup_printf("%s=true ", member_text(argument, "name")));
		g_ptr_array_add(words, g_strdup_printf("%s=false ", member_text(argument, "name")));
	}
}

char **ctl_completions(const json_t *schema, const char *line, const char *word)
{
	GPtrArray *words = g_ptr_array_new();
	g_autofree char *first = g_strndup(line, strcspn(line, " "));
	const json_t *arguments = json_object_get(ctl_method(schema, first), "arguments");

	if (line[strcspn(line, " ")] == '\0')
		add_names(words, json_object_get(schema, "methods"), word, ' ');
	else if (!strchr(word, '='))
		add_names(words, arguments, word, '=');
	else {
		g_autofree char *name = g_strndup(word, strcspn(word, "="));

		add_values(words, find_named(arguments, name), word);
	}
	g_ptr_array_add(words, NULL);
	return (char **)g_ptr_array_free(words, FALSE);
}
