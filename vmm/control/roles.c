// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a client may do. Every client may observe. A client may add instruments of its own if the policy allows it. One
 * client at a time controls the session and the guest, as one process at a time has a kernel's profiler open.
 */
#include "control/method_priv.h"

/* Whether the policy gives this client's uid the role. */
static bool permitted(const struct connection *connection, const char *what, enum control_role role, GError **error)
{
	if (connection->permitted >= role)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_DENIED,
	            "cannot execute %s: it needs the role \"%s\", and the engine's policy gives uid %u only \"%s\"",
	            what, control_role_name(role), connection->peer.uid, control_role_name(connection->permitted));
	return false;
}

static bool busy(const struct control_server *server, const char *what, GError **error)
{
	const struct ucred *holder = &server->controller->peer;

	g_set_error(
		error, CONTROL_ERROR, CONTROL_ERROR_BUSY,
		"cannot execute %s: pid %d (uid %u) holds the control role until it executes control-release or disconnects",
		what, holder->pid, holder->uid);
	return false;
}

bool control_role_check(const struct connection *connection, const struct control_method *method, GError **error)
{
	const struct control_server *server = connection->server;

	if (!permitted(connection, method->name, method->role, error))
		return false;
	if (method->role != ROLE_CONTROL || server->controller == connection)
		return true;
	if (server->controller)
		return busy(server, method->name, error);
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_DENIED,
	            "cannot execute %s: it needs the control role; execute control-take first", method->name);
	return false;
}

static json_t *method_control_take(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;

	if (!permitted(call->connection, "control-take", ROLE_CONTROL, error))
		return NULL;
	if (server->controller && server->controller != call->connection) {
		busy(server, "control-take", error);
		return NULL;
	}
	server->controller = call->connection;
	return json_object();
}

static json_t *method_control_release(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;

	if (server->controller != call->connection) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
		            "cannot release the control role: this client does not hold it");
		return NULL;
	}
	server->controller = NULL;
	return json_object();
}

static enum control_role role_of(const struct control_server *server, const struct connection *connection)
{
	return server->controller == connection ? ROLE_CONTROL : MIN(connection->permitted, ROLE_INSTRUMENT);
}

static json_t *method_query_clients(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	const struct control_server *server = call->server;
	json_t *clients = json_array();

	for (guint i = 0; i < server->connections->len; i++) {
		const struct connection *connection = g_ptr_array_index(server->connections, i);

		json_array_append_new(
			clients,
			json_pack("{s:i, s:i, s:s, s:b, s:b, s:I, s:I}", "pid", (int)connection->peer.pid, "uid",
		                  (int)connection->peer.uid, "role", control_role_name(role_of(server, connection)),
		                  "owner", connection->owner, "you", connection == call->connection, "requests",
		                  (json_int_t)connection->requests, "errors", (json_int_t)connection->errors));
	}
	return json_pack("{s:o}", "clients", clients);
}

/* ---- the methods ---- */

static const struct method_member client_members[] = {
	{"pid", "process id of the client", MEMBER_INTEGER},
	{"uid", "user id of the client", MEMBER_INTEGER},
	{"role", "observe, instrument or control: what the client may do now", MEMBER_STRING},
	{"owner", "whether the guest ends when this client disconnects", MEMBER_BOOLEAN},
	{"you", "whether this client asks", MEMBER_BOOLEAN},
	{"requests", "lines that it has sent", MEMBER_INTEGER},
	{"errors", "how many of them were answered with an error", MEMBER_INTEGER},
	{0},
};

static const struct method_member clients_members[] = {
	{"clients", "the connected clients", MEMBER_OBJECTS, .members = client_members},
	{0},
};

const struct control_method role_methods[] = {
	{
		.name = "query-clients",
		.summary = "lists the connected clients and their roles",
		.returns = clients_members,
		.role = ROLE_OBSERVE,
		.run = method_query_clients,
	},
	{
		.name = "control-take",
		.summary = "takes the control role; succeeds if the client already holds it",
		.role = ROLE_OBSERVE,
		.run = method_control_take,
	},
	{
		.name = "control-release",
		.summary = "releases the control role, as disconnecting does; a running session continues",
		.role = ROLE_OBSERVE,
		.run = method_control_release,
	},
	{0},
};
