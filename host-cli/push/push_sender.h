// SPDX-License-Identifier: BSD-2-Clause
/* Profiles to a server that has Pyroscope's HTTP API (POST URL/ingest), or Parca's. */
#ifndef VPROF_CLI_PUSH_SENDER_H
#define VPROF_CLI_PUSH_SENDER_H

#include "push/push_spool.h"

#define PUSH_SENDER_ERROR push_sender_error_quark()
GQuark push_sender_error_quark(void);
enum push_sender_error {
	PUSH_SENDER_ERROR_URL,
	PUSH_SENDER_ERROR_LATER,   /* nobody there, too slow, overloaded or broken: it may be taken later */
	PUSH_SENDER_ERROR_SERVER,  /* it is not to be had from this server as it is asked: somebody has to look */
	PUSH_SENDER_ERROR_REFUSED, /* it will not take this profile at any time */
	PUSH_SENDER_ERROR_UNAVAILABLE,
};

enum push_api { PUSH_API_PYROSCOPE, PUSH_API_PARCA };

struct push_sender;

/*
 * url: "http://HOST:PORT" and whatever path leads to the API. headers: NULL-terminated, "NAME: VALUE", or NULL.
 * PUSH_SENDER_ERROR_URL; _UNAVAILABLE in a build without libcurl.
 */
struct push_sender *push_sender_new(enum push_api api, const char *url, const char *const *headers, GError **error);
void push_sender_free(struct push_sender *sender);

/*
 * Takes timeout_ms at most. *wait_s: the seconds after which the server wants to be asked again, if it fails with
 * PUSH_SENDER_ERROR_LATER; 0: it does not say.
 */
bool push_sender_send(struct push_sender *sender, const struct push_profile *profile, int64_t timeout_ms,
                      uint64_t *wait_s, GError **error);

#endif
