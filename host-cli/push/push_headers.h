// SPDX-License-Identifier: BSD-2-Clause
/*
 * HTTP headers of requests to a server, and secrets in them. Every user of the host can read the arguments of a
 * command, so secrets are in a file that only its owner can read, or in the environment.
 */
#ifndef VPROF_CLI_PUSH_PUSH_HEADERS_H
#define VPROF_CLI_PUSH_PUSH_HEADERS_H

#include <glib.h>
#include <stdbool.h>

#define PUSH_HEADERS_VARIABLE "VPROF_PUSH_HEADERS" /* one header a line */

#define PUSH_HEADERS_ERROR push_headers_error_quark()
GQuark push_headers_error_quark(void);
enum push_headers_error {
	PUSH_HEADERS_ERROR_FORMAT,
	PUSH_HEADERS_ERROR_EXPOSED, /* a secret can be read by others */
};

/* Authorization, Proxy-Authorization, Cookie, and names with "key", "token", "secret" or "password". */
bool push_header_is_secret(const char *header);
bool push_url_has_password(const char *url);
/* Without a user, a password and a query. New string. */
char *push_url_shown(const char *url);

/*
 * Whether each is "NAME: VALUE" without control characters; NULL-terminated, or NULL. `what` names them in the error,
 * which has no value.
 */
bool push_headers_check(const char *what, const char *const *headers, GError **error);

/* Whether a command line with these may be run: the error names --header-file otherwise. */
bool push_arguments_check(const char *url, const char *const *headers, GError **error);

/*
 * Reads a whole text file of at most 1 MiB. *exposed: it is a regular file that others than its owner can read.
 * Errors: G_FILE_ERROR; PUSH_HEADERS_ERROR_FORMAT.
 */
char *push_text_read(const char *path, bool *exposed, GError **error);
/* The error of a secret in such a file, with the command that helps. Returns false. */
bool push_exposed_refuse(const char *path, GError **error);

/*
 * `given` (NULL: none) and the headers of a file (NULL: none) and of the environment. A line is a header, empty, or a
 * comment that begins with "#". New strings.
 */
char **push_headers_all(const char *const *given, const char *file, GError **error);

#endif
