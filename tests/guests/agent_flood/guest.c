// SPDX-License-Identifier: BSD-2-Clause
/* Claims to be the agent, and answers for ever what was not asked, as fast as the port takes it. */
#include <vprof/agent.h>

#include "guests/guest.h"

#define COM2_PORT 0x2f8

static void send(unsigned short type, unsigned n, const void *payload)
{
	const struct vprof_agent_frame frame = {.bytes = n, .type = type};

	for (unsigned i = 0; i < sizeof(frame); i++)
		outb(COM2_PORT, ((const unsigned char *)&frame)[i]);
	for (unsigned i = 0; i < n; i++)
		outb(COM2_PORT, ((const unsigned char *)payload)[i]);
}

void guest_main(void)
{
	static const struct vprof_agent_hello hello = {.magic = VPROF_AGENT_MAGIC, .protocol = VPROF_AGENT_PROTOCOL};
	static struct vprof_agent_pong pong;
	static struct vprof_agent_exited exited;
	static struct {
		struct vprof_agent_task task;
		char name[8];
	} task = {.name = "\x1b[2Jliar"};
	static struct {
		struct vprof_agent_mapping mapping;
		char path[8];
	} mapping = {.path = "../../x"};
	static const char text[] = "nothing that was asked for";

	console_print("agent_flood: begins\n");
	send(VPROF_AGENT_HELLO, sizeof(hello), &hello);
	for (uint64_t round = 0;; round++) {
		pong = (struct vprof_agent_pong){.cookie = round, .time_ns = ~round};
		exited = (struct vprof_agent_exited){.run = ~(uint32_t)round, .signal = ~0u, .time_ns = ~0ull};
		task.task = (struct vprof_agent_task){(uint32_t)round, ~(uint32_t)round};
		mapping.mapping = (struct vprof_agent_mapping){~0ull - round, ~0ull, ~0ull, .pid = (uint32_t)round % 8};
		send(VPROF_AGENT_PONG, sizeof(pong), &pong);
		send(VPROF_AGENT_EXITED, sizeof(exited), &exited);
		send(VPROF_AGENT_TASK, sizeof(task), &task);
		send(VPROF_AGENT_MAPPING, sizeof(mapping), &mapping);
		send(VPROF_AGENT_COMPLAINT, sizeof(text) - 1, text);
		send(VPROF_AGENT_STDERR, sizeof(text), text);
	}
}
