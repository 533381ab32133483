// SPDX-License-Identifier: BSD-2-Clause
/* The stream to the host: frames in both directions, with a buffer each. Nothing here blocks but link_drain. */
#ifndef VPROF_AGENT_LINK_H
#define VPROF_AGENT_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/agent.h>

#define LINK_INPUT_BYTES (sizeof(struct vprof_agent_frame) + VPROF_AGENT_PAYLOAD_BYTES_MAX)
#define LINK_OUTPUT_BYTES 65536u
/* Reserved for frames other than output when output has filled its part. */
#define LINK_RESERVE_BYTES 16384u

struct link {
	int fd; /* -1: closed */
	uint8_t input[LINK_INPUT_BYTES];
	size_t input_n;
	size_t taken; /* of the input: the frame that link_next returned last */
	uint8_t output[LINK_OUTPUT_BYTES];
	size_t output_at, output_n;
	uint64_t received_bytes, sent_bytes;
};

void link_open(struct link *link, int fd);
void link_close(struct link *link);

/* The entry for poll. */
struct pollfd link_poll(const struct link *link);

/* Reads the available input; false when the other end is closed or the stream has failed. */
bool link_receive(struct link *link);
/*
 * The next complete frame; its payload stays in place until link_next is called again. False when there is none yet,
 * or, with *broken, when the input is not a frame.
 */
bool link_next(struct link *link, struct vprof_agent_frame *frame, const uint8_t **payload, bool *broken);

/* The number of payload bytes for which there is room, up to `max`; `reserve`: bytes to keep free for other frames. */
size_t link_room(const struct link *link, size_t reserve, size_t max);
/*
 * Queues a frame with the payload `fixed`, then `tail`. False, and nothing is queued, when there is no room for
 * it: callers that may lack room check link_room first.
 */
bool link_send(struct link *link, uint16_t type, const void *fixed, size_t fixed_bytes, const void *tail,
               size_t tail_bytes);
/* Writes as much as the stream takes; false when it has failed. */
bool link_flush(struct link *link);
/* Waits until everything has been written, for timeout_ms at most. */
void link_drain(struct link *link, int timeout_ms);

#endif
