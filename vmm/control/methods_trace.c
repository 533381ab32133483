// SPDX-License-Identifier: BSD-2-Clause
/* trace-read, trace-write, trace-set */
#include "control/method_priv.h"

#define TRACE_READ_BYTES_MAX 16384 /* if each of them becomes U+FFFD, the answer still fits into a line */

#define X(id, name, help) [id] = name,
const char *const control_trace_kinds[] = {TRACE_KINDS(X)[TRACE_KIND_COUNT] = NULL};
#undef X

static json_t *method_trace_read(struct control_call *call, GError **error)
{
	struct trace *trace = call->server->trace;
	const json_t *given = json_object_get(call->arguments, "offset");
	const json_t *max = json_object_get(call->arguments, "max-bytes");
	uint64_t wanted = given ? (uint64_t)json_integer_value(given) : 0, offset = wanted, head = trace_head(trace);
	size_t room = max ? (size_t)json_integer_value(max) : TRACE_READ_BYTES_MAX;
	g_autofree char *text = g_malloc(room + 1);

	if (wanted > head) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "the trace ends at offset %" G_GUINT64_FORMAT "; give \"next\" of the last answer", head);
		return NULL;
	}
	size_t n = trace_read(trace, &offset, text, room);
	if (n == 0 && control_call_wait(call))
		return NULL;
	text[n] = '\0';
	call->connection->trace_read = true;
	call->connection->trace_next = offset + n;
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "offset", (json_int_t)offset, "next", (json_int_t)(offset + n),
	                 "missed", (json_int_t)(offset - wanted), "dropped", (json_int_t)trace_dropped(trace), "text",
	                 control_text(text, room));
}

static json_t *method_trace_write(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	struct trace *trace = call->server->trace;
	const json_t *vcpu = json_object_get(call->arguments, "vcpu");

	trace_set(trace, TRACE_EXITS, trace_wants(trace, TRACE_EXITS)); /* makes the ring, if there is none */
	trace_add(trace, vcpu ? (uint32_t)json_integer_value(vcpu) : TRACE_NO_VCPU,
	          json_string_value(json_object_get(call->arguments, "text")));
	return json_pack("{s:I}", "next", (json_int_t)trace_head(trace));
}

/* The vCPUs are watched only while exits are traced. */
static bool exits_set(struct control_server *server, bool on, GError **error)
{
	if (!on) {
		g_clear_pointer(&server->trace_exits, trace_exits_free);
	} else if (!server->trace_exits) {
		server->trace_exits = trace_exits_new(server->guest, server->session, server->trace);
		if (!server->trace_exits) {
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
			            "cannot trace exits: the guest has ended, or has too many watchers");
			return false;
		}
	}
	return true;
}

static bool kind_set(struct control_server *server, enum trace_kind kind, bool on, GError **error)
{
	trace_set(server->trace, kind, on);
	if (kind != TRACE_EXITS || exits_set(server, on, error))
		return true;
	trace_set(server->trace, kind, false);
	return false;
}

bool control_trace_configure(struct control_server *server, const json_t *kinds, GError **error)
{
	unsigned wanted = 0;

	for (size_t i = 0; i < json_array_size(kinds); i++)
		wanted |= 1u << argument_choice(control_trace_kinds, json_string_value(json_array_get(kinds, i)));
	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		if (!kind_set(server, (enum trace_kind)kind, wanted >> kind & 1, error))
			return false;
	return true;
}

json_t *control_trace_configuration(const struct control_server *server)
{
	json_t *kinds = json_array();

	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		if (trace_wants(server->trace, (enum trace_kind)kind))
			json_array_append_new(kinds, json_string(control_trace_kinds[kind]));
	return kinds;
}

static bool state_set(struct control_server *server, const char *what, const char *state, GError **error)
{
	enum trace_kind kind = (enum trace_kind)argument_choice(control_trace_kinds, what);
	bool on = g_strcmp0(state, "toggle") == 0 ? !trace_wants(server->trace, kind) : g_strcmp0(state, "off") != 0;

	return kind_set(server, kind, on, error);
}

static json_t *method_trace_set(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	const char *what = json_string_value(json_object_get(call->arguments, "what"));
	const char *state = json_string_value(json_object_get(call->arguments, "state"));

	if (what && !state_set(server, what, state, error))
		return NULL;
	json_t *answer = json_object();
	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		json_object_set_new(answer, control_trace_kinds[kind],
		                    json_boolean(trace_wants(server->trace, (enum trace_kind)kind)));
	return answer;
}

/* ---- the methods ---- */

static const char *const states[] = {"on", "off", "toggle", NULL};

static const struct method_argument trace_read_arguments[] = {
	{"offset", "where to read: \"next\" of an earlier answer, on any connection; by default, the oldest line",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = INT64_MAX},
	{"max-bytes", "maximum bytes of text to return", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = TRACE_READ_BYTES_MAX, .preset = G_STRINGIFY(TRACE_READ_BYTES_MAX)},
	{"timeout-ms", "maximum time to wait for a line, in milliseconds", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = CONTROL_TIMEOUT_MS_MAX, .preset = "0"},
	{0},
};

static const struct method_argument trace_write_arguments[] = {
	{"text", "text of the line", ARGUMENT_STRING, .min = 1, .max = TRACE_LINE_BYTES_MAX},
	{"vcpu", "vCPU that the line is about; by default, the engine", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = GUEST_VCPUS_MAX - 1},
	{0},
};

#define X(id, name, help) name ": " help "; "
#define TRACE_KINDS_HELP TRACE_KINDS(X) "all are off at first"

static const struct method_argument trace_set_arguments[] = {
	{"what", "kind of lines to switch; by default, none. " TRACE_KINDS_HELP, ARGUMENT_STRING, .optional = true,
         .choices = control_trace_kinds},
	{"state", "new state of this kind", ARGUMENT_STRING, .optional = true, .choices = states, .preset = "\"on\""},
	{0},
};
#undef X

static const struct method_member trace_read_members[] = {
	{"offset", "offset of the text", MEMBER_INTEGER},
	{"next", "offset to read on from", MEMBER_INTEGER},
	{"missed", "bytes that were overwritten before they were read", MEMBER_INTEGER},
	{"dropped", "lines that were dropped so far, because another thread was writing one", MEMBER_INTEGER},
	{"text", "lines \"[SECONDS.NANOSECONDS]:vcpuN: TEXT\"; \"vmm\" stands for the engine", MEMBER_STRING},
	{0},
};

static const struct method_member trace_write_members[] = {
	{"next", "offset behind the line", MEMBER_INTEGER},
	{0},
};

#define X(id, name, help) {name, help, MEMBER_BOOLEAN},
static const struct method_member trace_set_members[] = {TRACE_KINDS(X){0}};
#undef X

const struct control_method trace_methods[] = {
	{
		.name = "trace-read",
		.summary = "reads lines of the engine's trace; the newest lines overwrite the oldest",
		.returns = trace_read_members,
		.role = ROLE_OBSERVE,
		.arguments = trace_read_arguments,
		.run = method_trace_read,
	},
	{
		.name = "trace-write",
		.summary = "adds a line to the trace",
		.returns = trace_write_members,
		.role = ROLE_INSTRUMENT,
		.arguments = trace_write_arguments,
		.run = method_trace_write,
	},
	{
		.name = "trace-set",
		.summary = "switches a kind of trace lines on or off, and returns which kinds are on",
		.returns = trace_set_members,
		.role = ROLE_INSTRUMENT,
		.arguments = trace_set_arguments,
		.run = method_trace_set,
	},
	{0},
};
