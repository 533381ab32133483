// SPDX-License-Identifier: BSD-2-Clause
/* Profiles to a server that has Pyroscope's HTTP API (POST URL/ingest), Parca's, or OpenTelemetry's (OTLP over HTTP).
 */
#ifndef VPROF_CLI_PUSH_PUSH_SENDER_H
#define VPROF_CLI_PUSH_PUSH_SENDER_H

#include "push/push_spool.h"

#define PUSH_SENDER_ERROR push_sender_error_quark()
GQuark push_sender_error_quark(void);
enum push_sender_error {
	PUSH_SENDER_ERROR_URL,
	PUSH_SENDER_ERROR_LATER,   /* unreachable, slow, overloaded or broken: retry later */
	PUSH_SENDER_ERROR_SERVER,  /* the request does not fit this server: a person has to look */
	PUSH_SENDER_ERROR_REFUSED, /* the server will never accept this profile */
	PUSH_SENDER_ERROR_TOO_OLD, /* as REFUSED, because of the profile's age */
	PUSH_SENDER_ERROR_UNAVAILABLE,
};

enum push_api { PUSH_API_PYROSCOPE, PUSH_API_PARCA, PUSH_API_OTLP };

/* "pyroscope", "parca", "otlp". */
bool push_api_parse(const char *name, enum push_api *api);
const char *push_api_name(enum push_api api);
/* What a server with that API takes. */
enum push_format push_api_format(enum push_api api);

/*
 * Whether "NAME=VALUE" is what all of them take; NULL-terminated, or NULL. `what` names them in the error ("--label"),
 * G_OPTION_ERROR_BAD_VALUE.
 */
bool push_labels_check(const char *what, const char *const *labels, GError **error);

struct push_sender;

/*
 * url: "http://HOST:PORT" and the path of the API, if any. headers: NULL-terminated, "NAME: VALUE", or NULL. Errors:
 * PUSH_SENDER_ERROR_URL; _UNAVAILABLE in a build without libcurl.
 */
struct push_sender *push_sender_new(enum push_api api, const char *url, const char *const *headers, GError **error);
/* Another one for the same server, so that two requests can be under way; the one that it is made of goes last. */
struct push_sender *push_sender_another(const struct push_sender *sender);
void push_sender_free(struct push_sender *sender);

/*
 * Takes at most timeout_ms. *wait_s: on PUSH_SENDER_ERROR_LATER, the seconds until the server wants a retry; 0: not
 * specified.
 */
bool push_sender_send(struct push_sender *sender, const struct push_profile *profile, int64_t timeout_ms,
                      uint64_t *wait_s, GError **error);

#endif
