// SPDX-License-Identifier: BSD-2-Clause
/* Claims to be the agent, sends answers without a question, then what no agent sends. */
#include <vprof/agent.h>

#include "guests/guest.h"

#define COM2_PORT 0x2f8
#define FLOOD_FRAMES 300
#define COMPLAINTS 100

static void send(const void *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		outb(COM2_PORT, ((const unsigned char *)bytes)[i]);
}

static void send_frame(unsigned short type, unsigned n, const void *payload, unsigned sent)
{
	const struct vprof_agent_frame frame = {.bytes = n, .type = type};

	send(&frame, sizeof(frame));
	send(payload, sent);
}

void guest_main(void)
{
	static const struct vprof_agent_hello hello = {
		.magic = VPROF_AGENT_MAGIC, .protocol = VPROF_AGENT_PROTOCOL, .is_init = 1};
	static const struct vprof_agent_exited exited = {.run = 1, .status = 0};
	static const struct vprof_agent_pong pong = {.cookie = 1, .time_ns = ~0ull};
	static const struct vprof_agent_stdin_room room = {.bytes = ~0u};
	static const char complaint[] = "something is wrong";
	static const char output[] = "nothing runs that could have said this\n";

	send_frame(VPROF_AGENT_HELLO, sizeof(hello), &hello, sizeof(hello));
	send_frame(VPROF_AGENT_EXITED, sizeof(exited), &exited, sizeof(exited));
	send_frame(VPROF_AGENT_STDIN_ROOM, sizeof(room), &room, sizeof(room));
	for (unsigned i = 0; i < FLOOD_FRAMES; i++) {
		send_frame(VPROF_AGENT_STDOUT, sizeof(output), output, sizeof(output));
		send_frame(VPROF_AGENT_PONG, sizeof(pong), &pong, sizeof(pong));
	}
	for (unsigned i = 0; i < COMPLAINTS; i++)
		send_frame(VPROF_AGENT_COMPLAINT, sizeof(complaint) - 1, complaint, sizeof(complaint) - 1);
	send_frame(VPROF_AGENT_STDOUT, ~0u, output, sizeof(output));
	halt();
}
