// SPDX-License-Identifier: BSD-2-Clause
/*
 * One client: requests in, answers and events out, never blocking.
 *
 * Each turn of the main loop answers at most one request of a client, and none while an earlier answer has not gone
 * out. So a client that sends too much or does not read delays only itself. Only events pile up for it, up to
 * CONTROL_OUTPUT_BYTES_MAX.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/connection_priv.h"
#include "control/control_error.h"
#include "control/keeper.h"
#include "control/probe_client.h"
#include "lib/client/socket.h"

#define RECEIVE_BYTES 8192u

/* A line on its way out. */
struct output {
	char *line;
	size_t bytes, sent;
	int *fds; /* go with the first byte; closed then */
	size_t n_fds;
};

static void output_close_fds(struct output *output)
{
	for (size_t i = 0; i < output->n_fds; i++)
		close(output->fds[i]);
	output->n_fds = 0;
}

static void output_free(struct output *output)
{
	output_close_fds(output);
	g_free(output->fds);
	g_free(output->line);
	g_free(output);
}

/* Steals `line`. The descriptors are duplicated, as the rings may be freed before the line is sent. */
static struct output *output_new(char *line, size_t bytes, const int *fds, size_t n_fds, GError **error)
{
	struct output *output = g_new(struct output, 1);

	*output = (struct output){.line = line, .bytes = bytes, .fds = g_new(int, n_fds)};

	for (; output->n_fds < n_fds; output->n_fds++) {
		int fd = fcntl(fds[output->n_fds], F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
			            "cannot send %zu file descriptors: %s; raise the limit (ulimit -n)", n_fds,
			            g_strerror(errno));
			output_free(output);
			return NULL;
		}
		output->fds[output->n_fds] = fd;
	}
	return output;
}

#define REQUEST_US (G_USEC_PER_SEC / CONTROL_REQUESTS_PER_SECOND)
#define BURST_US ((int64_t)CONTROL_REQUESTS_BURST * REQUEST_US)

/* When the next request may be taken: 0 for now. */
static int64_t next_turn_us(const struct connection *connection)
{
	int64_t turn_us = connection->busy_until_us - BURST_US;

	return turn_us > g_get_monotonic_time() ? turn_us : 0;
}

static void count_request(struct connection *connection)
{
	connection->busy_until_us = MAX(connection->busy_until_us, g_get_monotonic_time()) + REQUEST_US;
}

bool connection_has_output(const struct connection *connection)
{
	return connection->output_bytes > 0;
}

static bool takes_requests(const struct connection *connection)
{
	return !connection->broken && !connection->closing && !connection->waiting &&
	       !connection_has_output(connection);
}

static bool is_over(const struct connection *connection)
{
	return connection->broken ||
	       (connection->closing && !connection->waiting && !connection_has_output(connection));
}

/* Sets what to wait for. A line that is already in the buffer does not make the socket ready, so it gets a time. */
static void rearm(struct connection *connection)
{
	GIOCondition wanted = G_IO_HUP | G_IO_ERR;
	int64_t turn_us = is_over(connection) ? 0 : -1;

	if (connection_has_output(connection))
		wanted |= G_IO_OUT;
	if (takes_requests(connection)) {
		int64_t next_us = next_turn_us(connection);

		if (next_us == 0 && line_buffer_state(&connection->input) == LINE_PARTIAL)
			wanted |= G_IO_IN;
		else
			turn_us = next_us;
	}
	g_source_modify_unix_fd(connection->source, connection->fd_tag, wanted);
	g_source_set_ready_time(connection->source, turn_us);
}

static bool output_send(struct connection *connection, struct output *output)
{
	ssize_t sent = client_socket_send(connection->fd, output->line + output->sent, output->bytes - output->sent,
	                                  output->fds, output->n_fds);

	if (sent < 0) {
		connection->broken = errno != EAGAIN && errno != EINTR;
		return false;
	}
	output_close_fds(output);
	output->sent += (size_t)sent;
	connection->output_bytes -= (size_t)sent;
	return output->sent == output->bytes;
}

void connection_flush(struct connection *connection)
{
	while (!connection->broken && connection_has_output(connection)) {
		if (!output_send(connection, g_queue_peek_head(&connection->output)))
			return;
		output_free(g_queue_pop_head(&connection->output));
	}
}

/* The object as a line, or NULL when it does not fit into one. */
static char *line_new(const json_t *object, size_t *bytes, GError **error)
{
	g_autofree char *text = json_dumps(object, JSON_COMPACT);

	*bytes = strlen(text) + 1;
	if (*bytes > VPROF_CONTROL_LINE_BYTES_MAX) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
		            "cannot answer: the answer has %zu bytes, and a line holds %u", *bytes,
		            VPROF_CONTROL_LINE_BYTES_MAX);
		return NULL;
	}
	text[*bytes - 1] = '\n';
	return g_steal_pointer(&text);
}

bool connection_send(struct connection *connection, const json_t *object, const int *fds, size_t n_fds, GError **error)
{
	size_t bytes;
	char *line = line_new(object, &bytes, error);

	if (!line)
		return false;
	struct output *output = output_new(line, bytes, fds, n_fds, error);
	if (!output)
		return false;

	g_queue_push_tail(&connection->output, output);
	connection->output_bytes += bytes;
	connection_flush(connection);
	if (connection->output_bytes > CONTROL_OUTPUT_BYTES_MAX)
		connection->broken = true;
	rearm(connection);
	return true;
}

void connection_set_waiting(struct connection *connection, json_t *request, uint64_t flushes)
{
	json_t *before = connection->waiting;

	connection->waiting = request ? json_incref(request) : NULL;
	connection->wait_flushes = flushes;
	json_decref(before);
}

static void receive(struct connection *connection)
{
	char bytes[RECEIVE_BYTES];
	ssize_t got = recv(connection->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		line_buffer_append(&connection->input, bytes, (size_t)got);
	else if (got == 0)
		connection->closing = true; /* the client may have shut down its half only, and wait for answers */
	else
		connection->broken = errno != EAGAIN && errno != EINTR;
}

static void answer_next(struct connection *connection)
{
	size_t length;
	const char *line = line_buffer_take(&connection->input, &length);

	if (line) {
		count_request(connection);
		connection->ops->line(connection, line, length);
	} else if (line_buffer_state(&connection->input) == LINE_TOO_LONG) {
		connection->ops->line_too_long(connection);
	}
}

struct connection_source {
	GSource source;
	struct connection *connection;
};

static gboolean connection_dispatch(GSource *source, GSourceFunc callback G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
	struct connection *connection = ((struct connection_source *)source)->connection;
	GIOCondition ready = g_source_query_unix_fd(source, connection->fd_tag);

	connection_flush(connection);
	if (connection->waiting && ready & (G_IO_HUP | G_IO_ERR | G_IO_NVAL))
		connection->broken = true; /* the client no longer waits for it */
	if (ready & (G_IO_IN | G_IO_HUP | G_IO_ERR | G_IO_NVAL) && takes_requests(connection) &&
	    line_buffer_state(&connection->input) == LINE_PARTIAL)
		receive(connection);
	if (takes_requests(connection) && next_turn_us(connection) == 0)
		answer_next(connection);

	if (is_over(connection)) {
		connection->ops->over(connection);
		return G_SOURCE_REMOVE;
	}
	rearm(connection);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs connection_source_funcs = {.dispatch = connection_dispatch};

struct connection *connection_new(struct control_server *server, const struct connection_ops *ops, int fd, bool owner,
                                  enum control_role permitted)
{
	struct connection *connection = g_new(struct connection, 1);

	*connection = (struct connection){
		.server = server,
		.ops = ops,
		.fd = fd,
		.owner = owner,
		.permitted = permitted,
	};
	/* The peer of a socket pair is the process that made it. */
	connection->peer = keeper_identify(fd);
	line_buffer_init(&connection->input);
	g_queue_init(&connection->output);

	connection->source = g_source_new(&connection_source_funcs, sizeof(struct connection_source));
	((struct connection_source *)connection->source)->connection = connection;
	connection->fd_tag = g_source_add_unix_fd(connection->source, fd, G_IO_IN);
	g_source_set_static_name(connection->source, "control connection");
	g_source_attach(connection->source, NULL);
	return connection;
}

void connection_free(struct connection *connection)
{
	g_source_destroy(connection->source);
	g_source_unref(connection->source);
	g_queue_clear_full(&connection->output, (GDestroyNotify)output_free);
	line_buffer_deinit(&connection->input);
	json_decref(connection->waiting);
	probe_client_free(connection->probes);
	close(connection->fd);
	g_free(connection);
}
