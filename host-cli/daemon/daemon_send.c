// SPDX-License-Identifier: BSD-2-Clause
/* The spool and the server: what cannot be sent waits on disk, and the oldest of it goes when there is too much. */
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "daemon/daemon_child.h"
#include "daemon/daemon_parts.h"
#include "push/push_queue.h"
#include "ui/message.h"
#include "ui/text.h"

#define LOOK_MS 1000                           /* between two looks into the spool */
#define PASS_US (60 * (int64_t)G_USEC_PER_SEC) /* for a pass */
#define LOCK_US (5 * (int64_t)G_USEC_PER_SEC)

struct sending {
	const struct daemon_config *config;
	struct push_queue queue;
	uint64_t dropped, failures;
	char *why;       /* of the last failure; NULL: the last pass had none */
	int64_t next_us; /* of the next pass */
	int64_t wait_us; /* of push_queue_pause_us */
	json_t *said;
};

/* What waits now. */
static void spool_measure(const struct push_spool *spool, uint64_t *n, uint64_t *bytes)
{
	g_autoptr(GPtrArray) names = push_spool_list(spool);

	*n = names->len;
	*bytes = 0;
	for (guint i = 0; i < names->len; i++) {
		g_autofree char *path = g_build_filename(push_spool_folder(spool), names->pdata[i], NULL);
		struct stat status;

		if (stat(path, &status) == 0)
			*bytes += (uint64_t)status.st_size;
	}
}

static json_t *sending_json(const struct sending *sending)
{
	uint64_t n, bytes;
	json_t *object;

	spool_measure(sending->queue.spool, &n, &bytes);
	object = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sent", (json_int_t)sending->queue.sent,
	                   "sent-bytes", (json_int_t)sending->queue.bytes, "refused",
	                   (json_int_t)(sending->queue.refused - sending->queue.too_old), "too-old",
	                   (json_int_t)sending->queue.too_old, "dropped", (json_int_t)sending->dropped, "failures",
	                   (json_int_t)sending->failures, "spooled", (json_int_t)n, "spooled-bytes", (json_int_t)bytes);
	if (sending->why)
		json_object_set_new(object, "why", text_json(sending->why));
	return object;
}

/* False: the supervisor is gone. */
static bool sending_say(struct sending *sending, int fd)
{
	json_t *object = sending_json(sending);

	if (json_equal(object, sending->said)) {
		json_decref(object);
		return true;
	}
	json_decref(sending->said);
	sending->said = object;
	return daemon_child_say(fd, json_incref(object));
}

static void sending_pass(struct sending *sending)
{
	const unsigned done = sending->queue.sent + sending->queue.refused;
	const int64_t now_us = g_get_monotonic_time();
	g_autoptr(GError) error = NULL;
	uint64_t asked_s;
	bool passed;

	sending->dropped += push_spool_trim(sending->queue.spool, sending->config->spool_bytes);
	if (now_us < sending->next_us)
		return;
	passed = push_queue_pass(&sending->queue, now_us + PASS_US, &asked_s, &error);
	if (passed || sending->queue.sent + sending->queue.refused > done)
		sending->wait_us = 0;
	if (passed) {
		if (sending->why)
			say("the server takes profiles again");
		g_clear_pointer(&sending->why, g_free);
		return;
	}
	sending->failures++;
	if (g_strcmp0(sending->why, error->message) != 0)
		say("%s; profiles wait in %s", error->message, push_spool_folder(sending->queue.spool));
	g_free(sending->why);
	sending->why = g_strdup(error->message);
	sending->next_us = g_get_monotonic_time() + push_queue_pause_us(&sending->wait_us, asked_s);
}

int daemon_send(int fd, void *data)
{
	const struct daemon_config *config = data;
	g_autoptr(GError) error = NULL;
	struct sending sending = {
		.config = config,
		.queue = {.format = push_api_format(config->api)},
	};

	sending.queue.sender = push_sender_new(config->api, config->url, (const char *const *)config->headers, &error);
	if (sending.queue.sender)
		sending.queue.spool = push_spool_open(config->spool, &error);
	if (!sending.queue.spool || !push_spool_lock(sending.queue.spool, g_get_monotonic_time() + LOCK_US, &error)) {
		daemon_child_say(fd, json_pack("{s:o}", "why", text_json(error->message)));
		return failure(error);
	}
	do
		sending_pass(&sending);
	while (sending_say(&sending, fd) && !daemon_child_wait(fd, LOOK_MS));
	return STATUS_OK;
}
