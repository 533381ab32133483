// SPDX-License-Identifier: BSD-2-Clause
/* What clients still want of an engine whose guest has ended. */
#include "control/method_priv.h"
#include "control/probe_client.h"
#include "control/server.h"
#include "stream/ring.h"

void control_note_samples(struct control_call *call, unsigned vcpu, bool end)
{
	struct connection *connection = call->connection;
	uint64_t session = session_number(call->server->session), bit = UINT64_C(1) << vcpu;

	_Static_assert(GUEST_VCPUS_MAX <= 64, "a bit for each vCPU");
	if (connection->samples_of != session)
		connection->samples_unread = 0;
	connection->samples_of = session;
	connection->samples_unread = end ? connection->samples_unread & ~bit : connection->samples_unread | bit;
}

static bool samples_unread(const struct connection *connection)
{
	return connection->samples_unread != 0 && connection->samples_of == session_number(connection->server->session);
}

static bool rings_unread(const struct connection *connection)
{
	const struct control_server *server = connection->server;

	if (server->rings_holder != connection || !session_configuration(server->session) ||
	    server->rings_of != session_number(server->session))
		return false;
	for (unsigned i = 0; i < server->guest->vcpus; i++)
		if (ring_unread(session_ring(server->session, i)) > 0)
			return true;
	return false;
}

static bool counter_unread(const struct connection *connection, unsigned number)
{
	const struct control_server *server = connection->server;
	struct counter_info info;

	counter_info_get(server->counters, number, &info);
	if (info.state == COUNTER_FREE || info.state == COUNTER_DISABLED || info.owner.key != connection)
		return false;
	for (unsigned i = 0; i < server->guest->vcpus; i++) {
		const struct ring *ring = counter_ring(server->counters, number, i);

		if (ring && ring_unread(ring) > 0)
			return true;
	}
	return false;
}

static bool counters_unread(const struct connection *connection)
{
	_Static_assert(COUNTERS_MAX <= 32, "a bit for each counter");
	for (unsigned number = 0; number < COUNTERS_MAX; number++)
		if (connection->counter_rings >> number & 1 && counter_unread(connection, number))
			return true;
	return false;
}

static bool probes_unread(const struct connection *connection)
{
	const struct probe_client *client = connection->probes;

	if (!client || client->reader == PROBE_READER_NONE)
		return false;
	for (unsigned i = 0; probe_set_map(client->set, i); i++)
		if (!(client->maps_read >> i & 1))
			return true;
	for (unsigned i = 0; i < client->vcpus; i++)
		if (ring_unread(probe_set_ring(client->set, i)) > 0)
			return true;
	return false;
}

static bool trace_unread(const struct connection *connection)
{
	return connection->trace_read && connection->trace_next < trace_head(connection->server->trace);
}

static bool wants(const struct connection *connection)
{
	return connection->server->controller == connection || connection->waiting || samples_unread(connection) ||
	       rings_unread(connection) || counters_unread(connection) || probes_unread(connection) ||
	       trace_unread(connection);
}

bool control_server_wanted(const struct control_server *server)
{
	for (guint i = 0; i < server->connections->len; i++) {
		const struct connection *connection = g_ptr_array_index(server->connections, i);

		if (!connection->owner && !connection->broken && wants(connection))
			return true;
	}
	return false;
}
