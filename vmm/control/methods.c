// SPDX-License-Identifier: BSD-2-Clause
/* Every method there is, and query-schema, which describes them. */
#include <string.h>

#include "control/method_priv.h"
#include "lib/profile/vcpu_time.h"

_Static_assert(sizeof(((struct counter_event *)NULL)->name) == CONTROL_EVENT_NAME_BYTES_MAX + 1,
               "the length of event names in counter.h");

static const struct control_method schema_methods[];

/* Each up to a method without a name. */
static const struct control_method *const groups[] = {
	engine_methods,        schema_methods, role_methods,    guest_methods, host_methods,    session_methods,
	configuration_methods, sample_methods, counter_methods, trace_methods, time_methods,    probe_methods,
	mapping_methods,       file_methods,   table_methods,   task_methods,  program_methods,
};

const struct control_method *control_method_at(size_t index)
{
	for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
		for (const struct control_method *method = groups[i]; method->name; method++) {
			if (index-- == 0)
				return method;
		}
	}
	return NULL;
}

const struct control_method *control_method_find(const char *name)
{
	const struct control_method *method;

	for (size_t i = 0; (method = control_method_at(i)) && strcmp(method->name, name) != 0; i++)
		;
	return method;
}

/* ---- the schema ---- */

static json_t *argument_schema(const struct method_argument *argument)
{
	json_t *schema = argument_limits(argument);

	json_object_set_new(schema, "name", json_string(argument->name));
	if (argument->optional)
		json_object_set_new(schema, "optional", json_true());
	json_object_set_new(schema, "summary", json_string(argument->summary));
	if (argument->preset)
		json_object_set_new(schema, "default", json_loads(argument->preset, JSON_DECODE_ANY, NULL));
	return schema;
}

static json_t *arguments_schema(const struct control_method *method)
{
	json_t *list = json_array();

	for (const struct method_argument *argument = method->arguments; argument && argument->name; argument++)
		json_array_append_new(list, argument_schema(argument));
	return list;
}

/* The name of a member in answers. Rows made from a list of statistics have C names. */
static json_t *name_json(const char *name)
{
	g_autofree char *dashed = g_strdelimit(g_strdup(name), "_", '-');

	return json_string(dashed);
}

static const char *member_type_name(enum member_type type)
{
	static const char *const names[] = {
		[MEMBER_ANY] = "any",          [MEMBER_ADDRESS] = "address",  [MEMBER_ADDRESSES] = "[address]",
		[MEMBER_BOOLEAN] = "boolean",  [MEMBER_INTEGER] = "integer",  [MEMBER_INTEGERS] = "[integer]",
		[MEMBER_STRING] = "string",    [MEMBER_STRINGS] = "[string]", [MEMBER_OBJECT] = "object",
		[MEMBER_OBJECTS] = "[object]",
	};

	return names[type];
}

/* The method with these rows for its answer, or the event with them: they need not be there a second time. NULL: none.
 */
static const char *returned_by(const struct method_member *members)
{
	const struct control_method *method;

	for (size_t i = 0; (method = control_method_at(i)); i++)
		if (method->returns == members)
			return method->name;
	for (const struct control_event_type *event = control_events; event->name; event++)
		if (event->data == members)
			return event->name;
	return NULL;
}

static json_t *members_schema(const struct method_member *members)
{
	json_t *list = json_array();

	for (const struct method_member *member = members; member && member->name; member++) {
		json_t *row =
			json_pack("{s:o, s:s, s:s, s:s*}", "name", name_json(member->name), "type",
		                  member_type_name(member->type), "summary", member->summary, "names", member->names);

		if (member->optional)
			json_object_set_new(row, "optional", json_true());
		if (member->nullable)
			json_object_set_new(row, "nullable", json_true());
		const char *of = member->members ? returned_by(member->members) : NULL;

		if (of)
			json_object_set_new(row, "members-of", json_string(of));
		else if (member->members)
			json_object_set_new(row, "members", members_schema(member->members));
		json_array_append_new(list, row);
	}
	return list;
}

/* The method that describes the arguments of this one, too: a line has room for each table once. NULL: itself. */
static const char *arguments_of(const struct control_method *method)
{
	const struct control_method *other;

	for (size_t i = 0; (other = control_method_at(i)) != method; i++)
		if (method->arguments && other->arguments == method->arguments)
			return other->name;
	return NULL;
}

static json_t *method_schema(const struct control_method *method)
{
	const char *of = arguments_of(method);

	return json_pack("{s:s, s:s, s:s, s:s*, s:o, s:o, s:s*}", "name", method->name, "role",
	                 control_role_name(method->role), "summary", method->summary, "arguments-of", of, "arguments",
	                 of ? json_array() : arguments_schema(method), "returns", members_schema(method->returns),
	                 "descriptors", method->descriptors);
}

static json_t *methods_schema(void)
{
	const struct control_method *method;
	json_t *list = json_array();

	for (size_t i = 0; (method = control_method_at(i)); i++)
		json_array_append_new(list, method_schema(method));
	return list;
}

/* A name and what it means. */
struct term {
	const char *name, *summary;
};

static const struct term errors[] = {
	{VPROF_ERROR_GENERIC, "the host refused, or the line is not a request"},
	{VPROF_ERROR_COMMAND_NOT_FOUND, "the method does not exist"},
	{VPROF_ERROR_INVALID_ARGUMENT, "an argument is unknown, missing, of the wrong type or out of range"},
	{VPROF_ERROR_NOT_NEGOTIATED, "the client has not executed negotiate"},
	{VPROF_ERROR_BUSY, "another client holds what was asked for; the text names that client"},
	{VPROF_ERROR_DENIED, "the client's role does not allow it"},
	{VPROF_ERROR_STATE, "not possible in the present state of the guest or the session"},
	{VPROF_ERROR_UNSUPPORTED, "this host or this engine cannot do it"},
};

#define X(name, help) {#name, help},
static const struct term statistics[] = {SESSION_STATISTICS(X)};
#undef X

#define X(name, help) {#name, help},
static const struct term vcpu_times[] = {VCPU_TIMES(X)};
#undef X

static json_t *terms_schema(const struct term *terms, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(
			list, json_pack("{s:o, s:s}", "name", name_json(terms[i].name), "summary", terms[i].summary));
	}
	return list;
}

static json_t *events_schema(void)
{
	json_t *list = json_array();

	for (const struct control_event_type *event = control_events; event->name; event++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", event->name, "summary", event->summary,
		                                      "data", members_schema(event->data)));
	return list;
}

json_t *control_schema(void)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "protocol", VPROF_CONTROL_PROTOCOL, "methods",
	                 methods_schema(), "events", events_schema(), "errors",
	                 terms_schema(errors, G_N_ELEMENTS(errors)), "statistics",
	                 terms_schema(statistics, G_N_ELEMENTS(statistics)), "vcpu-times",
	                 terms_schema(vcpu_times, G_N_ELEMENTS(vcpu_times)));
}

static json_t *method_query_schema(struct control_call *call G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return control_schema();
}

/* ---- the methods ---- */

static const struct method_member argument_members[] = {
	{"name", "name of the argument", MEMBER_STRING},
	{"type", "address, boolean, integer, string or [string]", MEMBER_STRING},
	{"optional", "true: it may be left out", MEMBER_BOOLEAN, .optional = true},
	{"summary", "what it means", MEMBER_STRING},
	{"min", "least integer, bytes of a string or strings", MEMBER_INTEGER, .optional = true},
	{"max", "greatest integer, bytes of a string or strings", MEMBER_INTEGER, .optional = true},
	{"choices", "the strings that are allowed, instead of min and max", MEMBER_STRINGS, .optional = true},
	{"default", "its value when it is left out", MEMBER_ANY, .optional = true},
	{0},
};

static const struct method_member member_members[] = {
	{"name", "name of the member; \"*\" describes all members that have no row of their own", MEMBER_STRING},
	{"type", "any, address, boolean, integer, string, object, or an array of one of these as [integer]",
         MEMBER_STRING},
	{"optional", "true: it may be absent", MEMBER_BOOLEAN, .optional = true},
	{"summary", "what it means", MEMBER_STRING},
	{"nullable", "true: it may be null", MEMBER_BOOLEAN, .optional = true},
	{"names", "table of this schema with the names that \"*\" stands for", MEMBER_STRING, .optional = true},
	{"members", "members of an object: rows like these", MEMBER_OBJECTS, .optional = true},
	{"members-of", "name of the method that returns such an object, or of the event with it: described there",
         MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member method_members[] = {
	{"name", "name of the method", MEMBER_STRING},
	{"role", "role that the client needs: observe, instrument or control", MEMBER_STRING},
	{"summary", "what it does", MEMBER_STRING},
	{"arguments", "what it takes", MEMBER_OBJECTS, .members = argument_members},
	{"arguments-of", "name of the method with the same arguments, which are described there", MEMBER_STRING,
         .optional = true},
	{"returns", "the members of its answer", MEMBER_OBJECTS, .members = member_members},
	{"descriptors", "the file descriptors that come with the answer", MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member term_members[] = {
	{"name", "name in the protocol", MEMBER_STRING},
	{"summary", "what it means", MEMBER_STRING},
	{0},
};

static const struct method_member event_members[] = {
	{"name", "name of the event", MEMBER_STRING},
	{"summary", "what it means", MEMBER_STRING},
	{"data", "members of its data: rows as those of returns", MEMBER_OBJECTS},
	{0},
};

static const struct method_member schema_members[] = {
	{"protocol", "the newest version that the engine speaks", MEMBER_INTEGER},
	{"methods", "what a client can execute", MEMBER_OBJECTS, .members = method_members},
	{"events", "what clients are told without a request", MEMBER_OBJECTS, .members = event_members},
	{"errors", "the classes of errors", MEMBER_OBJECTS, .members = term_members},
	{"statistics", "what query-stats counts: as errors", MEMBER_OBJECTS},
	{"vcpu-times", "the clocks of query-vcpu-time: as errors", MEMBER_OBJECTS},
	{0},
};

static const struct control_method schema_methods[] = {
	{
		.name = "query-schema",
		.summary = "describes the methods, events, error classes, statistics and clocks",
		.returns = schema_members,
		.role = ROLE_OBSERVE,
		.run = method_query_schema,
	},
	{0},
};
