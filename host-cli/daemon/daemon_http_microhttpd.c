// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

#include "daemon/daemon_http.h"
#include "daemon/daemon_metrics.h"
#include "lib/process/shared_library.h"

#define CONNECTIONS_MAX 16u
#define IDLE_S 10u

/* clang-format off */
#define MICROHTTPD_FUNCTIONS(F) \
	F(MHD_add_response_header) F(MHD_create_response_from_buffer) F(MHD_destroy_response) F(MHD_get_daemon_info) \
	F(MHD_get_timeout) F(MHD_queue_response) F(MHD_run) F(MHD_start_daemon) F(MHD_stop_daemon)
/* clang-format on */

static struct {
	MICROHTTPD_FUNCTIONS(SHARED_LIBRARY_POINTER)
} microhttpd;
SHARED_LIBRARY_NOTE(MICROHTTPD_SONAME, "metrics");

G_DEFINE_QUARK(vprof_daemon_http_error, daemon_http_error)

struct daemon_http {
	struct MHD_Daemon *server;
	int fd;
	char *(*text)(void *data);
	void *data;
};

/* Steals `text`. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, char *text)
{
	struct MHD_Response *response =
		microhttpd.MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result queued = MHD_NO;

	g_free(text);
	if (!response)
		return MHD_NO;
	if (microhttpd.MHD_add_response_header(response, "Content-Type", type) == MHD_YES)
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
	/* The first call has the head of the request only; an answer in it would close the connection. */
	if (!*state) {
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
	return microhttpd.MHD_start_daemon(
		MHD_USE_EPOLL | (is_v6 ? MHD_USE_IPv6 : 0), port, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR,
		is_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4, MHD_OPTION_CONNECTION_LIMIT,
		CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_END);
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
	MHD_UNSIGNED_LONG_LONG ms;

	return microhttpd.MHD_get_timeout(http->server, &ms) == MHD_YES ? (int)MIN(ms, G_MAXINT) : -1;
}

void daemon_http_run(struct daemon_http *http)
{
	microhttpd.MHD_run(http->server);
}
