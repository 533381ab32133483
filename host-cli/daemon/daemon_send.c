// SPDX-License-Identifier: BSD-2-Clause
/* The spool and the server: what cannot be sent waits on disk, and the oldest of it goes when there is too much. */
#include "daemon/daemon_child.h"
#include "daemon/daemon_parts.h"
#include "push/push_queue.h"
#include "ui/message.h"
#include "ui/text.h"

#define LOOK_MS 1000                           /* between two looks at the spool */
#define COUNT_US (5 * (int64_t)G_USEC_PER_SEC) /* between two lists of it while it waits */
#define PASS_US (10 * (int64_t)G_USEC_PER_SEC) /* for a pass: then what waits is counted again */

struct sending {
	const struct daemon_config *config;
	struct push_queue queue; /* without a sender or a lock until they can be had */
	bool locked;
	struct push_spool_size waiting;
	uint64_t dropped, failures;
	char *why;         /* of the last failure; NULL: the last pass had none */
	int64_t next_us;   /* of the next pass */
	int64_t wait_us;   /* of push_queue_pause_us */
	int64_t listed_us; /* when the spool was listed last, by the wall clock */
	json_t *said;
};

static json_t *sending_json(const struct sending *sending)
{
	json_t *object =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sent", (json_int_t)sending->queue.sent,
	                  "sent-bytes", (json_int_t)sending->queue.bytes, "refused",
	                  (json_int_t)(sending->queue.refused - sending->queue.too_old), "too-old",
	                  (json_int_t)sending->queue.too_old, "dropped", (json_int_t)sending->dropped, "failures",
	                  (json_int_t)sending->failures, "spooled", (json_int_t)sending->waiting.profiles,
	                  "spooled-bytes", (json_int_t)sending->waiting.bytes);

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

/* Whatever the server does, no more than the configuration allows waits. */
static void sending_trim(struct sending *sending)
{
	const int64_t now_us = g_get_real_time();

	sending->dropped += push_spool_trim(sending->queue.spool, sending->config->spool_bytes, &sending->waiting);
	sending->listed_us = now_us;
}

/* What a pass needs, which a pass cannot do without, is looked for again with each. */
static bool sending_ready(struct sending *sending, GError **error)
{
	const struct daemon_config *config = sending->config;

	if (!sending->locked)
		sending->locked = push_spool_lock(sending->queue.spool, g_get_monotonic_time(), error);
	if (sending->locked && !sending->queue.sender)
		sending->queue.sender =
			push_sender_new(config->api, config->url, (const char *const *)config->headers, error);
	return sending->locked && sending->queue.sender;
}

static void sending_pass(struct sending *sending)
{
	const unsigned done = sending->queue.sent + sending->queue.refused;
	g_autoptr(GError) error = NULL;
	uint64_t asked_s = 0;
	const bool passed =
		sending_ready(sending, &error) && push_queue_pass(&sending->queue, INT64_MAX, &asked_s, &error);

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

/* A spool that waits for long has many files, and one that is empty is the rule. */
static void sending_look(struct sending *sending)
{
	const bool due = sending->queue.more || (sending->why && g_get_monotonic_time() >= sending->next_us);

	if (!due && !push_spool_changed(sending->queue.spool, sending->listed_us))
		return;
	if (!due && sending->why && g_get_real_time() - sending->listed_us < COUNT_US)
		return;
	sending_trim(sending);
	if (due || (!sending->why && sending->waiting.profiles > 0)) {
		sending_pass(sending);
		sending_trim(sending);
	}
}

int daemon_send(int fd, void *data)
{
	const struct daemon_config *config = data;
	g_autoptr(GError) error = NULL;
	struct sending sending = {
		.config = config,
		.queue = {.format = push_api_format(config->api), .pass_us = PASS_US},
	};

	sending.queue.spool = push_spool_open(config->spool, &error);
	if (!sending.queue.spool) {
		daemon_child_say(fd, json_pack("{s:o}", "why", text_json(error->message)));
		return failure(error);
	}
	do
		sending_look(&sending);
	while (sending_say(&sending, fd) && !daemon_child_wait(fd, LOOK_MS));
	return STATUS_OK;
}
