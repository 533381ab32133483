// SPDX-License-Identifier: BSD-2-Clause
#include <poll.h>
#include <unistd.h>

#include "control/keeper.h"
#include "control/method_priv.h"
#include "control/server.h"
#include "probe/probe.h"
#include "sample/session_tasks.h"

/* How often requests that wait are executed again. */
#define RETRY_MS 10u

struct control_server *control_server_new(struct guest *guest, struct session *session)
{
	struct control_server *server = g_new0(struct control_server, 1);

	server->guest = guest;
	server->session = session;
	server->counters = counter_table_new(session);
	server->probes = probe_hub_new(guest, session);
	server->trace = trace_new();
	server->started_us = g_get_monotonic_time();
	server->user = geteuid();
	server->configuration = json_object();
	server->connections = g_ptr_array_new_with_free_func((GDestroyNotify)connection_free);
	control_server_watch_lost(server);
	return server;
}

void control_server_free(struct control_server *server)
{
	if (!server)
		return;
	control_server_unwatch_lost(server);
	if (server->quit_source)
		g_source_remove(server->quit_source);
	listener_free(server->listener);
	g_clear_handle_id(&server->wait_timer, g_source_remove);
	g_clear_handle_id(&server->stall_timer, g_source_remove);
	g_ptr_array_unref(server->connections);
	counter_table_free(server->counters);
	trace_exits_free(server->trace_exits);
	trace_free(server->trace);
	kernel_file_free(server->kernel_file);
	task_look_free(server->look);
	json_decref(server->configuration);
	policy_free(server->policy);
	probe_hub_free(server->probes);
	g_free(server);
}

void control_server_console_line(struct control_server *server, const char *line)
{
	if (trace_wants(server->trace, TRACE_CONSOLE))
		trace_add(server->trace, TRACE_NO_VCPU, line);
}

bool control_server_load_policy(struct control_server *server, const char *path, GError **error)
{
	server->policy = policy_load(path, error);
	return server->policy;
}

/* ---- the end ---- */

void control_server_on_quit(struct control_server *server, void (*quit)(void *data, bool at_once), void *data)
{
	server->quit = quit;
	server->quit_data = data;
}

static gboolean call_quit(gpointer data)
{
	struct control_server *server = data;

	server->quit_source = 0;
	if (server->quit)
		server->quit(server->quit_data, server->quitting_at_once);
	return G_SOURCE_REMOVE;
}

/* Ends the guest, if it has not ended, and has `quit` called from the main loop. */
static void server_quit(struct control_server *server, const char *why, bool at_once)
{
	if (at_once ? server->quitting_at_once : server->quitting)
		return;
	server->quitting = true;
	server->quitting_at_once = at_once;
	/* In a source of its own, as `quit` may free the server: no function of the server is on the stack then. */
	if (!server->quit_source)
		server->quit_source = g_idle_add_full(G_PRIORITY_DEFAULT, call_quit, server, NULL);
	if (server->guest->state != GUEST_ENDED)
		server->guest->ops->stop(server->guest, GUEST_END_STOPPED, why);
}

/* ---- clients ---- */

static gboolean retry_waiting(gpointer data)
{
	struct control_server *server = data;
	bool any = false;

	for (guint i = 0; i < server->connections->len; i++) {
		struct connection *connection = g_ptr_array_index(server->connections, i);

		if (connection->waiting && !connection->broken)
			request_retry(connection);
		any |= connection->waiting != NULL;
	}
	if (!any)
		server->wait_timer = 0;
	return any;
}

static void take_line(struct connection *connection, const char *line, size_t length)
{
	struct control_server *server = connection->server;
	enum request_outcome outcome = request_answer(connection, line, length);

	if (outcome == REQUEST_WAITS && !server->wait_timer)
		server->wait_timer = g_timeout_add(RETRY_MS, retry_waiting, server);
	if (outcome == REQUEST_QUIT || outcome == REQUEST_LEAVE)
		server_quit(server, "a client said quit", outcome == REQUEST_QUIT);
}

static void refuse_line(struct connection *connection)
{
	request_refuse(connection, "the line is too long");
}

/* The connection is gone; an owner takes the guest along. */
static void drop(struct connection *connection)
{
	struct control_server *server = connection->server;
	bool owner = connection->owner;

	if (server->controller == connection)
		server->controller = NULL;
	counter_release_all(server->counters, connection);
	if (server->rings_holder == connection)
		server->rings_of = 0;
	g_ptr_array_remove(server->connections, connection);
	if (owner)
		server_quit(server, "its client has disconnected", false);
}

static const struct connection_ops connection_ops = {
	.line = take_line,
	.line_too_long = refuse_line,
	.over = drop,
};

static void greet(struct connection *connection)
{
	json_auto_t *greeting = json_pack("{s:{s:s, s:i, s:[s], s:o}}", "vprof", "version", VPROF_VERSION, "protocol",
	                                  VPROF_CONTROL_PROTOCOL, "capabilities", "descriptors", "guest",
	                                  control_guest_summary(connection->server->guest));

	connection_send(connection, greeting, NULL, 0, NULL);
}

static void admit(struct control_server *server, int fd, bool owner, enum control_role permitted)
{
	struct connection *connection = connection_new(server, &connection_ops, fd, owner, permitted);

	greet(connection);
	g_ptr_array_add(server->connections, connection);
	if (owner)
		server->controller = connection;
}

void control_server_add_client(struct control_server *server, int fd, bool owner)
{
	admit(server, fd, owner, ROLE_CONTROL);
}

/* What the peer may do at most, or -1: nothing. */
static int peer_role(const struct control_server *server, int fd)
{
	const struct ucred peer = keeper_identify(fd);

	if (peer.uid == (uid_t)-1)
		return -1;
	if (peer.uid == 0 || peer.uid == server->user)
		return ROLE_CONTROL;
	return policy_role(server->policy, peer.uid);
}

static void take_client(void *data, int fd)
{
	struct control_server *server = data;
	int role = peer_role(server, fd);

	if (role >= 0 && server->connections->len < CONTROL_CLIENTS_MAX)
		admit(server, fd, false, (enum control_role)role);
	else
		close(fd);
}

bool control_server_listen(struct control_server *server, const char *path, GError **error)
{
	server->listener = listener_new(path, server->policy, take_client, server, error);
	return server->listener;
}

bool control_server_listen_fd(struct control_server *server, int fd, GError **error)
{
	server->listener = listener_new_fd(fd, take_client, server, error);
	return server->listener;
}

static bool wait_writable(const GPtrArray *connections, int timeout_ms)
{
	g_autoptr(GArray) pollfds = g_array_new(FALSE, FALSE, sizeof(struct pollfd));

	for (guint i = 0; i < connections->len; i++) {
		const struct connection *connection = g_ptr_array_index(connections, i);
		const struct pollfd pollfd = {.fd = connection->fd, .events = POLLOUT};

		if (!connection->broken && connection_has_output(connection))
			g_array_append_val(pollfds, pollfd);
	}
	return pollfds->len > 0 && poll((struct pollfd *)(void *)pollfds->data, pollfds->len, timeout_ms) != 0;
}

static void answer_waiting(struct control_server *server)
{
	for (guint i = 0; i < server->connections->len; i++) {
		struct connection *connection = g_ptr_array_index(server->connections, i);

		if (!connection->waiting || connection->broken)
			continue;
		connection->wait_until_us = 0;
		request_retry(connection);
	}
}

void control_server_flush(struct control_server *server, unsigned timeout_ms)
{
	answer_waiting(server);
	int64_t deadline = g_get_monotonic_time() + (int64_t)timeout_ms * 1000;

	for (int64_t left_us = (int64_t)timeout_ms * 1000; left_us > 0; left_us = deadline - g_get_monotonic_time()) {
		if (!wait_writable(server->connections, (int)((left_us + 999) / 1000)))
			return;
		for (guint i = 0; i < server->connections->len; i++)
			connection_flush(g_ptr_array_index(server->connections, i));
	}
}
