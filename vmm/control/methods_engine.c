// SPDX-License-Identifier: BSD-2-Clause
/* negotiate, query-schema, query-status, quit */
#include <unistd.h>

#include "control/method_priv.h"

const struct method_argument negotiate_arguments[] = {
	{"protocol", "protocol version that the client speaks", ARGUMENT_INTEGER, .min = 1, .max = INT32_MAX},
	{0},
};

json_t *method_negotiate(struct control_call *call, GError **error)
{
	json_int_t protocol = json_integer_value(json_object_get(call->arguments, "protocol"));
	if (protocol < VPROF_CONTROL_PROTOCOL_OLDEST || protocol > VPROF_CONTROL_PROTOCOL) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		            "cannot speak protocol %lld: this engine (version " VPROF_VERSION
		            ") speaks %d to %d; use both from one installation",
		            (long long)protocol, VPROF_CONTROL_PROTOCOL_OLDEST, VPROF_CONTROL_PROTOCOL);
		return NULL;
	}
	call->connection->negotiated = true;
	return json_pack("{s:I}", "protocol", protocol);
}

static const char *state_name(enum guest_state state)
{
	static const char *const names[] = {
		[GUEST_CREATED] = "created",
		[GUEST_RUNNING] = "running",
		[GUEST_ENDED] = "ended",
	};
	return names[state];
}

json_t *method_query_status(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	const struct control_server *server = call->server;
	json_int_t uptime_ns = (g_get_monotonic_time() - server->started_us) * 1000;
	json_t *answer = json_pack("{s:s, s:s, s:i, s:I}", "state", state_name(server->guest->state), "session",
	                           session_running(server->session) ? "running" : "idle", "pid", (int)getpid(),
	                           "uptime-ns", uptime_ns);
	if (session_delivery(server->session))
		json_object_set_new(answer, server->guest->routes ? "route" : "delivery",
		                    json_string(session_delivery(server->session)));
	if (server->guest->state == GUEST_ENDED)
		json_object_set_new(answer, "end", control_guest_end(server->guest));
	return answer;
}

json_t *method_quit(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	call->quit = true;
	return json_object();
}

static json_t *argument_schema(const struct method_argument *argument)
{
	json_t *schema = argument_limits(argument);
	json_object_set_new(schema, "name", json_string(argument->name));
	json_object_set_new(schema, "optional", json_boolean(argument->optional));
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

static json_t *methods_schema(void)
{
	json_t *list = json_array();
	for (const struct control_method *method = control_methods; method->name; method++)
		json_array_append_new(list,
		                      json_pack("{s:s, s:s, s:s, s:o, s:s}", "name", method->name, "role",
		                                control_role_name(method->role), "summary", method->summary,
		                                "arguments", arguments_schema(method), "returns", method->returns));
	return list;
}

/* A name and what it means. */
struct term {
	const char *name, *summary;
};

static const struct term events[] = {
	{VPROF_EVENT_GUEST_ENDED,
         "the guest has ended: {\"reason\", \"code\", \"message\", \"details\"?, \"console\"?}"},
	{VPROF_EVENT_GUEST_KERNEL, "an attached guest was reset and runs a kernel elsewhere, or another one, which "
                                   "kernel-image has: {\"release\", \"build-id\", \"slide\"}"},
	{VPROF_EVENT_GUEST_PHASE, "the guest wrote a phase mark: {\"vcpu\", \"value\", \"time-ns\", \"dropped\"?}; "
                                  "dropped: marks before it that came too fast"},
	{VPROF_EVENT_MARKER,
         "a client marked a phase: {\"name\", \"kind\": \"begin\" or \"end\", \"time-ns\", \"number\"}"},
	{VPROF_EVENT_SAMPLES_LOST, "a ring was full: {\"vcpu\", \"lost\"}, the samples lost since the last such event; "
                                   "at most one a second and vCPU"},
};

static const struct term errors[] = {
	{VPROF_ERROR_GENERIC, "the host refused, or the line is no request"},
	{VPROF_ERROR_COMMAND_NOT_FOUND, "there is no such method"},
	{VPROF_ERROR_INVALID_ARGUMENT, "an argument is unknown, missing, of the wrong type or out of range"},
	{VPROF_ERROR_NOT_NEGOTIATED, "the client has not executed negotiate"},
	{VPROF_ERROR_BUSY, "another client holds what was asked for; the text says who"},
	{VPROF_ERROR_DENIED, "the client's role does not allow it"},
	{VPROF_ERROR_STATE, "not in this state of the guest or the session"},
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
		g_autofree char *name = g_strdelimit(g_strdup(terms[i].name), "_", '-');
		json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "summary", terms[i].summary));
	}
	return list;
}

json_t *method_query_schema(struct control_call *call G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "protocol", VPROF_CONTROL_PROTOCOL, "methods",
	                 methods_schema(), "events", terms_schema(events, G_N_ELEMENTS(events)), "errors",
	                 terms_schema(errors, G_N_ELEMENTS(errors)), "statistics",
	                 terms_schema(statistics, G_N_ELEMENTS(statistics)), "vcpu-times",
	                 terms_schema(vcpu_times, G_N_ELEMENTS(vcpu_times)));
}
