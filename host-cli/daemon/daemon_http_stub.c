// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon_http.h"

G_DEFINE_QUARK(vprof_daemon_http_error, daemon_http_error)

struct daemon_http *daemon_http_new(const char *address, uint16_t port, char *(*text)(void *data), void *data,
                                    GError **error)
{
	(void)address;
	(void)port;
	(void)text;
	(void)data;
	g_set_error(error, DAEMON_HTTP_ERROR, DAEMON_HTTP_ERROR_UNAVAILABLE,
	            "this vprof was built without libmicrohttpd; \"address = off\" in [metrics] does without");
	return NULL;
}

void daemon_http_free(struct daemon_http *http)
{
	(void)http;
}

int daemon_http_fd(const struct daemon_http *http)
{
	(void)http;
	return -1;
}

int daemon_http_timeout_ms(struct daemon_http *http)
{
	(void)http;
	return -1;
}

void daemon_http_run(struct daemon_http *http)
{
	(void)http;
}
