// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/daemon_http.h"
#include "daemon/daemon_metrics.h"
#include "lib/process/shared_library.h"

#define REQUESTS_MAX 16u
#define HEAD_US (2 * (int64_t)G_USEC_PER_SEC) /* for the head of a request, since its connection */
#define SURE_US (G_USEC_PER_SEC / 10)         /* in which a request keeps its place for sure */
#define WAITING_US (G_USEC_PER_SEC / 200)     /* between two looks at who waits for a place */
#define IDLE_S 10u                            /* between two parts of an answer that its client takes */

/* clang-format off */
#define MICROHTTPD_FUNCTIONS(F) \
	F(MHD_add_response_header) F(MHD_create_response_from_buffer) F(MHD_destroy_response) \
	F(MHD_get_connection_info) F(MHD_get_daemon_info) F(MHD_get_timeout) F(MHD_queue_response) F(MHD_run) \
	F(MHD_start_daemon) F(MHD_stop_daemon)
/* clang-format on */

static struct {
	MICROHTTPD_FUNCTIONS(SHARED_LIBRARY_POINTER)
} microhttpd;
SHARED_LIBRARY_NOTE(MICROHTTPD_SONAME, "metrics");

G_DEFINE_QUARK(vprof_daemon_http_error, daemon_http_error)

/* A connection, which has one request. */
struct request {
	int fd;
	int64_t began_us;
	bool has_head; /* it is complete */
	bool ended;    /* not in the queue any more */
};

struct daemon_http {
	struct MHD_Daemon *server;
	int fd, listener;
	char *(*text)(void *data);
	void *data;
	GQueue requests; /* struct request, the oldest first */
};

/* ---- connections ---- */

/* libmicrohttpd finds the end of the connection as if the client had made it, and closes it. */
static void request_end(struct daemon_http *http, struct request *request)
{
	g_queue_remove(&http->requests, request);
	request->ended = true;
	shutdown(request->fd, SHUT_RDWR);
}

static bool all_places_are_taken(const struct daemon_http *http)
{
	return http->requests.length >= REQUESTS_MAX;
}

/*
 * Clients that send nothing, or a byte now and then, take no place from those that ask. libmicrohttpd accepts no client
 * while all places are taken.
 */
static void requests_end_late(struct daemon_http *http)
{
	const int64_t now_us = g_get_monotonic_time();
	struct pollfd waiting = {.fd = http->listener, .events = POLLIN};
	struct request *oldest;

	for (GList *at = http->requests.head, *next; at; at = next) {
		struct request *request = at->data;

		next = at->next;
		if (!request->has_head && request->began_us + HEAD_US <= now_us)
			request_end(http, request);
	}
	if (!all_places_are_taken(http) || poll(&waiting, 1, 0) <= 0)
		return;
	oldest = g_queue_peek_head(&http->requests);
	if (oldest->began_us + SURE_US <= now_us)
		request_end(http, oldest);
}

/* While all places are taken, no event says that a client waits. */
static int64_t requests_due_us(const struct daemon_http *http)
{
	int64_t due_us = all_places_are_taken(http) ? g_get_monotonic_time() + WAITING_US : INT64_MAX;

	for (const GList *at = http->requests.head; at; at = at->next) {
		const struct request *request = at->data;

		if (!request->has_head)
			due_us = MIN(due_us, request->began_us + HEAD_US);
	}
	return due_us;
}

static struct request *request_of(struct MHD_Connection *connection)
{
	return microhttpd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
	struct daemon_http *http = data;
	struct request *request = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (!request->ended)
			g_queue_remove(&http->requests, request);
		g_free(request);
		return;
	}
	request = g_new0(struct request, 1);
	request->fd = microhttpd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	request->began_us = g_get_monotonic_time();
	g_queue_push_tail(&http->requests, request);
	*context = request;
}

/* ---- requests ---- */

/* Steals `text`. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, char *text)
{
	struct MHD_Response *response =
		microhttpd.MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result queued = MHD_NO;

	g_free(text);
	if (!response)
		return MHD_NO;
	if (microhttpd.MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
	    microhttpd.MHD_add_response_header(response, "Connection", "close") == MHD_YES)
		queued = microhttpd.MHD_queue_response(connection, status, response);
	microhttpd.MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	const struct daemon_http *http = data;

	(void)version;
	(void)upload;
	/* The first call has the head of the request only; an answer in it would leave a body unread. */
	if (!*state) {
		request_of(connection)->has_head = true;
		*state = data;
		return MHD_YES;
	}
	if (*upload_bytes > 0) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", g_strdup("GET /metrics\n"));
	if (strcmp(url, "/metrics") != 0)
		return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain", g_strdup("GET /metrics\n"));
	return answer(connection, MHD_HTTP_OK, DAEMON_METRICS_TYPE, http->text(http->data));
}

static bool microhttpd_load(GError **error)
{
	static const char *const names[] = {MICROHTTPD_FUNCTIONS(SHARED_LIBRARY_NAME)};
	g_autoptr(GError) why = NULL;

	if (shared_library_load(MICROHTTPD_SONAME, names, G_N_ELEMENTS(names), &microhttpd, sizeof(microhttpd), &why))
		return true;
	g_set_error(error, DAEMON_HTTP_ERROR, DAEMON_HTTP_ERROR_UNAVAILABLE, "metrics: %s", why->message);
	return false;
}

static struct MHD_Daemon *server_start(struct daemon_http *http, const char *address, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;

	inet_pton(AF_INET, address, &v4.sin_addr);
	return microhttpd.MHD_start_daemon(MHD_USE_EPOLL | (is_v6 ? MHD_USE_IPv6 : 0), port, NULL, NULL, on_request,
	                                   http, MHD_OPTION_SOCK_ADDR,
	                                   is_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
	                                   MHD_OPTION_CONNECTION_LIMIT, REQUESTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
	                                   IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

struct daemon_http *daemon_http_new(const char *address, uint16_t port, char *(*text)(void *data), void *data,
                                    GError **error)
{
	struct daemon_http *http;

	if (!microhttpd_load(error))
		return NULL;
	http = g_new0(struct daemon_http, 1);
	http->text = text;
	http->data = data;
	http->server = server_start(http, address, port);
	if (!http->server) {
		g_set_error(error, DAEMON_HTTP_ERROR, DAEMON_HTTP_ERROR_LISTEN,
		            "cannot serve metrics at %s port %u: %s", address, port, g_strerror(errno));
		g_free(http);
		return NULL;
	}
	http->fd = microhttpd.MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	http->listener = microhttpd.MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd;
	return http;
}

void daemon_http_free(struct daemon_http *http)
{
	if (!http)
		return;
	microhttpd.MHD_stop_daemon(http->server);
	g_free(http);
}

int daemon_http_fd(const struct daemon_http *http)
{
	return http->fd;
}

int daemon_http_timeout_ms(struct daemon_http *http)
{
	int64_t left_us = requests_due_us(http);
	MHD_UNSIGNED_LONG_LONG ms;

	if (left_us != INT64_MAX)
		left_us = MAX(left_us - g_get_monotonic_time(), 0);
	if (microhttpd.MHD_get_timeout(http->server, &ms) == MHD_YES)
		left_us = MIN(left_us, (int64_t)MIN(ms, G_MAXINT) * 1000);
	return left_us != INT64_MAX ? (int)((left_us + 999) / 1000) : -1;
}

void daemon_http_run(struct daemon_http *http)
{
	const bool taken = all_places_are_taken(http);

	requests_end_late(http);
	microhttpd.MHD_run(http->server);
	/* It listens again, once it is called with a place that is free. */
	if (taken && !all_places_are_taken(http))
		microhttpd.MHD_run(http->server);
}
