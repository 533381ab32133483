// SPDX-License-Identifier: BSD-2-Clause
/* negotiate, query-status, quit */
#include <unistd.h>

#include "control/method_priv.h"
#include "control/server.h"

static json_t *method_negotiate(struct control_call *call, GError **error)
{
	json_int_t protocol = json_integer_value(json_object_get(call->arguments, "protocol"));

	if (protocol < VPROF_CONTROL_PROTOCOL_OLDEST || protocol > VPROF_CONTROL_PROTOCOL) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		            "cannot speak protocol %lld: this engine (version " VPROF_VERSION
		            ") speaks %d to %d; use a client and an engine of the same version",
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

/* What the last session has to do without, and why. */
static json_t *missing_json(const struct session *session)
{
	const struct {
		const char *what, *why;
	} parts[] = {
		{"tasks", session_tasks_why(session)},     {"mapped files", session_mappings_why(session)},
		{"cgroups", session_cgroups_why(session)}, {"modules", session_modules_why(session)},
		{"ORC", session_unwinder_why(session)},    {"waits", session_waits_why(session)},
	};
	json_t *missing = json_array();

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
		if (parts[i].why) {
			g_autofree char *text = g_strdup_printf("%s: %s", parts[i].what, parts[i].why);

			json_array_append_new(missing, control_text(text, CONTROL_PATH_BYTES_MAX));
		}
	return missing;
}

static json_t *method_query_status(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	const struct control_server *server = call->server;
	json_int_t uptime_ns = (g_get_monotonic_time() - server->started_us) * 1000;
	json_t *answer = json_pack("{s:s, s:s, s:i, s:I}", "state", state_name(server->guest->state), "session",
	                           session_running(server->session) ? "running" : "idle", "pid", (int)getpid(),
	                           "uptime-ns", uptime_ns);

	if (session_delivery(server->session))
		json_object_set_new(answer, server->guest->routes ? "route" : "delivery",
		                    json_string(session_delivery(server->session)));
	if (session_configuration(server->session))
		json_object_set_new(answer, "missing", missing_json(server->session));
	if (server->guest->pause)
		json_object_set_new(answer, "pause", json_string(server->guest->pause));
	if (server->guest->kernel_why)
		json_object_set_new(answer, "kernel-why", json_string(server->guest->kernel_why));
	if (server->guest->state == GUEST_ENDED)
		json_object_set_new(answer, "end", control_guest_end(server->guest));
	return answer;
}

static json_t *method_quit(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	bool lingers = call->connection->owner && control_server_wanted(call->server);

	call->leave = lingers;
	call->quit = !lingers;
	return json_pack("{s:b}", "lingers", lingers);
}

/* ---- the methods ---- */

static const struct method_argument negotiate_arguments[] = {
	{"protocol", "protocol version that the client speaks", ARGUMENT_INTEGER, .min = 1, .max = INT32_MAX},
	{0},
};

static const struct method_member negotiate_members[] = {
	{"protocol", "the version that both sides speak from now on", MEMBER_INTEGER},
	{0},
};

static const struct method_member status_members[] = {
	{"state", "state of the guest: created, running or ended", MEMBER_STRING},
	{"session", "state of the session: idle or running", MEMBER_STRING},
	{"pid", "process id of the engine", MEMBER_INTEGER},
	{"uptime-ns", "how long the engine has been running", MEMBER_INTEGER},
	{"delivery", "how the last session turned overflows into exits", MEMBER_STRING, .optional = true},
	{"route", "how the last session sampled an attached guest, instead of delivery", MEMBER_STRING,
         .optional = true},
	{"missing", "parts of the guest that the last session does without, each with the reason", MEMBER_STRINGS,
         .optional = true},
	{"pause", "how an attached guest stands still, as \"is paused\"", MEMBER_STRING, .optional = true},
	{"kernel-why", "why the kernel of an attached guest is not known (yet), or that the search for it was given up",
         MEMBER_STRING, .optional = true},
	{"end", "how the guest ended", MEMBER_OBJECT, .optional = true, .members = control_guest_end_members},
	{0},
};

static const struct method_member quit_members[] = {
	{"lingers", "whether the engine stays for other clients", MEMBER_BOOLEAN},
	{0},
};

const struct control_method engine_methods[] = {
	{
		.name = "negotiate",
		.summary = "agrees on the protocol version; must come first",
		.returns = negotiate_members,
		.role = ROLE_OBSERVE,
		.before_negotiate = true,
		.arguments = negotiate_arguments,
		.run = method_negotiate,
	},
	{
		.name = "query-status",
		.summary = "returns the state of the guest and of the session",
		.returns = status_members,
		.role = ROLE_OBSERVE,
		.run = method_query_status,
	},
	{
		.name = "quit",
		.summary = "ends the guest and the engine; from the client that started the engine, as the end of its "
			   "connection: once the other clients have read all",
		.returns = quit_members,
		.role = ROLE_CONTROL,
		.run = method_quit,
	},
	{0},
};
