// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_sender.h"

G_DEFINE_QUARK(push - sender - error - quark, push_sender_error)

struct push_sender *push_sender_new(enum push_api api, const char *url, const char *const *headers, GError **error)
{
	(void)api;
	(void)url;
	(void)headers;
	g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_UNAVAILABLE,
	            "this vprof was built without libcurl; `vprof export --to pprof` writes what would be sent");
	return NULL;
}

struct push_sender *push_sender_another(const struct push_sender *sender)
{
	(void)sender;
	return NULL;
}

void push_sender_free(struct push_sender *sender)
{
	(void)sender;
}

bool push_sender_send(struct push_sender *sender, const struct push_profile *profile, int64_t timeout_ms,
                      uint64_t *wait_s, GError **error)
{
	(void)sender;
	(void)profile;
	(void)timeout_ms;
	(void)wait_s;
	(void)error;
	return false;
}
