// SPDX-License-Identifier: BSD-2-Clause
/*
 * Compares the answer of a control method, or the data of an event, with the rows that query-schema has for it: these
 * members, and no others.
 */
#ifndef VPROF_TEST_SUPPORT_ANSWER_CHECK_H
#define VPROF_TEST_SUPPORT_ANSWER_CHECK_H

#include <check.h>
#include <string.h>

#include "control/method_priv.h"

static inline const json_t *answer_find_named(const json_t *list, const char *name)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object) {
		if (strcmp(json_string_value(json_object_get(object, "name")), name) == 0)
			return object;
	}
	return NULL;
}

static inline bool answer_is_address(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && g_str_has_prefix(text, "0x") && text[2] &&
	       text[2 + strspn(text + 2, "0123456789abcdef")] == '\0';
}

static inline bool answer_fits(const json_t *value, const char *type)
{
	if (g_str_has_prefix(type, "any"))
		return true;
	if (g_str_has_prefix(type, "address"))
		return answer_is_address(value);
	if (g_str_has_prefix(type, "boolean"))
		return json_is_boolean(value);
	if (g_str_has_prefix(type, "integer"))
		return json_is_integer(value);
	if (g_str_has_prefix(type, "string"))
		return json_is_string(value);
	return g_str_has_prefix(type, "object") && json_is_object(value);
}

static inline void assert_members(const json_t *schema, const json_t *rows, const json_t *object, const char *where);

/* Of an object; another method or an event may have them. NULL: it is none. */
static inline const json_t *answer_rows(const json_t *schema, const json_t *row)
{
	const char *of = json_string_value(json_object_get(row, "members-of"));
	const json_t *described;
	size_t i;

	if (!of)
		return json_object_get(row, "members");
	json_array_foreach(json_object_get(schema, "methods"), i, described)
		if (strcmp(json_string_value(json_object_get(described, "name")), of) == 0)
			return json_object_get(described, "returns");
	json_array_foreach(json_object_get(schema, "events"), i, described)
		if (strcmp(json_string_value(json_object_get(described, "name")), of) == 0)
			return json_object_get(described, "data");
	return NULL;
}

/* `type` is that of one value; in "[string]", behind the bracket. */
static inline void assert_value(const json_t *schema, const json_t *row, const char *type, const json_t *value,
                                const char *where)
{
	g_autofree char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	ck_assert_msg(answer_fits(value, type), "%s: %s is no %s", where, text, type);
	if (answer_rows(schema, row))
		assert_members(schema, answer_rows(schema, row), value, where);
}

static inline void assert_member(const json_t *schema, const json_t *row, const json_t *value, const char *where)
{
	const char *type = json_string_value(json_object_get(row, "type"));
	const json_t *element;
	size_t i;

	if (json_is_null(value)) {
		ck_assert_msg(json_object_get(row, "nullable") || strcmp(type, "any") == 0, "%s: null", where);
	} else if (type[0] == '[') {
		ck_assert_msg(json_is_array(value), "%s: no array", where);
		json_array_foreach(value, i, element)
			assert_value(schema, row, type + 1, element, where);
	} else {
		assert_value(schema, row, type, value, where);
	}
}

/* That `object` has every name of the schema's table, and no other. */
static inline void assert_names(const json_t *table, const json_t *object, const char *where)
{
	const json_t *term;
	size_t i;

	ck_assert_uint_gt(json_array_size(table), 0);
	json_array_foreach(table, i, term) {
		const char *name = json_string_value(json_object_get(term, "name"));

		ck_assert_msg(json_object_get(object, name), "%s: no %s", where, name);
	}
	ck_assert_msg(json_object_size(object) == i, "%s: more than these names", where);
}

static inline void assert_members(const json_t *schema, const json_t *rows, const json_t *object, const char *where)
{
	const json_t *others = answer_find_named(rows, "*"), *row;
	const char *name;
	json_t *value;
	size_t i;

	json_array_foreach(rows, i, row) {
		name = json_string_value(json_object_get(row, "name"));
		ck_assert_msg(row == others || json_object_get(row, "optional") || json_object_get(object, name),
		              "%s: no member %s", where, name);
	}
	json_object_foreach((json_t *)object, name, value) {
		g_autofree char *inside = g_strdup_printf("%s, %s", where, name);

		row = answer_find_named(rows, name);
		row = row ? row : others;
		ck_assert_msg(row, "%s: this member is not declared", inside);
		assert_member(schema, row, value, inside);
	}
	if (json_object_get(others, "names"))
		assert_names(json_object_get(schema, json_string_value(json_object_get(others, "names"))), object,
		             where);
}

/* The data of an event. */
static inline void assert_event(const char *name, const json_t *data)
{
	json_auto_t *schema = control_schema();
	const json_t *described = answer_find_named(json_object_get(schema, "events"), name);

	ck_assert_msg(described, "no event %s", name);
	assert_members(schema, json_object_get(described, "data"), data, name);
}

/* An answer with n_fds descriptors. */
static inline void assert_answer(const char *method, const json_t *answer, size_t n_fds)
{
	json_auto_t *schema = control_schema();
	const json_t *described = answer_find_named(json_object_get(schema, "methods"), method);

	ck_assert_msg(described, "no method %s", method);
	ck_assert_msg(n_fds == 0 || json_object_get(described, "descriptors"), "%s: undeclared descriptors", method);
	assert_members(schema, json_object_get(described, "returns"), answer, method);
}

#endif
