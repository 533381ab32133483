// SPDX-License-Identifier: BSD-2-Clause
/* trace-read, trace-write, trace-set */
#include "control/control_priv.h"

const char *const control_trace_states[] = {"on", "off", "toggle", NULL};

#define X(id, name, help) [id] = name,
const char *const control_trace_kinds[] = {TRACE_KINDS(X)[TRACE_KIND_COUNT] = NULL};
#undef X

json_t *method_trace_read(struct control_call *call, GError **error)
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
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "offset", (json_int_t)offset, "next", (json_int_t)(offset + n),
	                 "missed", (json_int_t)(offset - wanted), "dropped", (json_int_t)trace_dropped(trace), "text",
	                 control_text(text, room));
}

json_t *method_trace_write(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	struct trace *trace = call->server->trace;
	const json_t *vcpu = json_object_get(call->arguments, "vcpu");

	trace_set(trace, TRACE_EXITS, trace_wants(trace, TRACE_EXITS)); /* there is a ring from now on */
	trace_add(trace, vcpu ? (uint32_t)json_integer_value(vcpu) : TRACE_NO_VCPU,
	          json_string_value(json_object_get(call->arguments, "text")));
	return json_pack("{s:I}", "next", (json_int_t)trace_head(trace));
}

/* The vCPUs are watched only while somebody wants their exits. */
static bool exits_set(struct control_server *server, bool on, GError **error)
{
	if (!on) {
		g_clear_pointer(&server->trace_exits, trace_exits_free);
	} else if (!server->trace_exits) {
		server->trace_exits = trace_exits_new(server->guest, server->session, server->trace);
		if (!server->trace_exits) {
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
			            "cannot trace exits: the guest has ended, or too many watch it");
			return false;
		}
	}
	return true;
}

static bool kind_set(struct control_server *server, enum trace_kind kind, const char *state, GError **error)
{
	bool on = g_str_equal(state, "toggle") ? !trace_wants(server->trace, kind) : g_str_equal(state, "on");

	trace_set(server->trace, kind, on);
	if (kind != TRACE_EXITS || exits_set(server, on, error))
		return true;
	trace_set(server->trace, kind, false);
	return false;
}

json_t *method_trace_set(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	const char *what = json_string_value(json_object_get(call->arguments, "what"));
	const char *state = json_string_value(json_object_get(call->arguments, "state"));
	json_t *answer = json_object();

	if (what && !kind_set(server, (enum trace_kind)argument_choice(control_trace_kinds, what), state ? state : "on",
	                      error)) {
		json_decref(answer);
		return NULL;
	}
	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		json_object_set_new(answer, control_trace_kinds[kind],
		                    json_boolean(trace_wants(server->trace, (enum trace_kind)kind)));
	return answer;
}
