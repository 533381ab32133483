// SPDX-License-Identifier: BSD-2-Clause
#include "link.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void link_open(struct link *link, int fd)
{
	memset(link, 0, sizeof(*link));
	link->fd = fd;
}

void link_close(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

struct pollfd link_poll(const struct link *link)
{
	return (struct pollfd){.fd = link->fd, .events = (short)(POLLIN | (link->output_n != 0 ? POLLOUT : 0))};
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

bool link_receive(struct link *link)
{
	ssize_t n = read(link->fd, link->input + link->input_n, sizeof(link->input) - link->input_n);

	if (n < 0)
		return would_block();
	/* A terminal with its carrier present never returns 0. */
	if (n == 0)
		return false;
	link->input_n += (size_t)n;
	link->received_bytes += (uint64_t)n;
	return true;
}

/* Removes the frame that link_next returned last from the buffer. */
static void input_drop(struct link *link, size_t bytes)
{
	link->input_n -= bytes;
	memmove(link->input, link->input + bytes, link->input_n);
}

bool link_next(struct link *link, struct vprof_agent_frame *frame, const uint8_t **payload, bool *broken)
{
	*broken = false;
	if (link->taken != 0)
		input_drop(link, link->taken);
	link->taken = 0;
	if (link->input_n < sizeof(*frame))
		return false;
	memcpy(frame, link->input, sizeof(*frame));
	if (frame->bytes > VPROF_AGENT_PAYLOAD_BYTES_MAX) {
		*broken = true;
		return false;
	}
	if (link->input_n - sizeof(*frame) < frame->bytes)
		return false;
	*payload = link->input + sizeof(*frame);
	link->taken = sizeof(*frame) + frame->bytes;
	return true;
}

size_t link_room(const struct link *link, size_t reserve, size_t max)
{
	size_t used = link->output_n + sizeof(struct vprof_agent_frame) + reserve;
	size_t room = used < sizeof(link->output) ? sizeof(link->output) - used : 0;

	return room < max ? room : max;
}

static void output_append(struct link *link, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	memcpy(link->output + link->output_at + link->output_n, bytes, n);
	link->output_n += n;
}

bool link_send(struct link *link, uint16_t type, const void *fixed, size_t fixed_bytes, const void *tail,
               size_t tail_bytes)
{
	const struct vprof_agent_frame frame = {.bytes = (uint32_t)(fixed_bytes + tail_bytes), .type = type};

	if (fixed_bytes + tail_bytes > link_room(link, 0, sizeof(link->output)))
		return false;
	memmove(link->output, link->output + link->output_at, link->output_n);
	link->output_at = 0;
	output_append(link, &frame, sizeof(frame));
	output_append(link, fixed, fixed_bytes);
	output_append(link, tail, tail_bytes);
	return true;
}

bool link_flush(struct link *link)
{
	while (link->output_n != 0) {
		ssize_t n = write(link->fd, link->output + link->output_at, link->output_n);

		if (n < 0)
			return would_block();
		link->output_at += (size_t)n;
		link->output_n -= (size_t)n;
		link->sent_bytes += (uint64_t)n;
	}
	return true;
}

void link_drain(struct link *link, int timeout_ms)
{
	while (link->output_n != 0) {
		struct pollfd ready = {.fd = link->fd, .events = POLLOUT};

		if (poll(&ready, 1, timeout_ms) <= 0 || !link_flush(link))
			return;
	}
}
