// SPDX-License-Identifier: BSD-2-Clause
/* Metrics over HTTP: GET /metrics. It has no thread; its owner polls. */
#ifndef VPROF_CLI_DAEMON_DAEMON_HTTP_H
#define VPROF_CLI_DAEMON_DAEMON_HTTP_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define DAEMON_HTTP_ERROR daemon_http_error_quark()
GQuark daemon_http_error_quark(void);
enum daemon_http_error { DAEMON_HTTP_ERROR_LISTEN, DAEMON_HTTP_ERROR_UNAVAILABLE };

struct daemon_http;

/* address: IPv4 or IPv6. `text` returns the metrics, a new string. Errors: _UNAVAILABLE in a build without
 * libmicrohttpd. */
struct daemon_http *daemon_http_new(const char *address, uint16_t port, char *(*text)(void *data), void *data,
                                    GError **error);
void daemon_http_free(struct daemon_http *http); /* NULL is fine */

/* To be polled; when it is readable, or after timeout_ms (-1: never), daemon_http_run serves what there is. */
int daemon_http_fd(const struct daemon_http *http);
int daemon_http_timeout_ms(struct daemon_http *http);
void daemon_http_run(struct daemon_http *http);

#endif
