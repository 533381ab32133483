// SPDX-License-Identifier: BSD-2-Clause
/* The spool on its way to a server: what is sent, what is tried again, and what is given up. */
#ifndef VPROF_CLI_PUSH_PUSH_QUEUE_H
#define VPROF_CLI_PUSH_PUSH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "push/push_sender.h"
#include "push/push_spool.h"

struct push_queue {
	/* Set by the caller, and the caller's. */
	struct push_spool *spool;
	struct push_sender *sender;
	enum push_format format; /* that the server takes */
	int64_t pass_us;         /* from the begin of a pass until it begins no request any more; 0: for ever */
	/* What became of the profiles until now. */
	unsigned sent, refused, too_old; /* refused: the too old ones as well */
	uint64_t bytes;                  /* sent */
	/* Of the last pass. */
	unsigned other; /* in another format, which stay */
	bool more;      /* it has ended by pass_us */
	bool failed;    /* one had to wait */
};

/*
 * Sends all profiles, the oldest first, many of them some at once, until one has to wait. Each request takes half a
 * minute at most, and ends with `deadline_us` (monotonic). *asked_s: the seconds until the server wants a retry; 0: not
 * specified. False: the remaining ones have to wait for the reason in *error; PUSH_SENDER_ERROR_LATER may pass.
 */
bool push_queue_pass(struct push_queue *queue, int64_t deadline_us, uint64_t *asked_s, GError **error);

/* Locks the spool, and passes again with growing pauses as long as the reason may pass. */
bool push_queue_send(struct push_queue *queue, int64_t deadline_us, GError **error);

/* The next pause after *wait_us, which begins at 0 and grows: a little random, and not shorter than asked_s. */
int64_t push_queue_pause_us(int64_t *wait_us, uint64_t asked_s);

#endif
