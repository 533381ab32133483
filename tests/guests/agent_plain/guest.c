// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent as it should be, without a system: whatever it is asked to run does the same work, measures it, and exits
 * with the number of its arguments.
 */
#include <vprof/agent.h>

#include "guests/guest.h"

#define COM2_PORT 0x2f8
#define COM2_LINE_STATUS (COM2_PORT + 5)
#define LINE_STATUS_DATA 0x01
#define WORK_TURNS 200000u
#define PAYLOAD_KEPT 64u

static uint64_t host_ns; /* the time of the last ping, which serves as ours */

static void send(uint16_t type, uint32_t n, const void *payload)
{
	const struct vprof_agent_frame frame = {.bytes = n, .type = type};

	for (unsigned i = 0; i < sizeof(frame); i++)
		outb(COM2_PORT, ((const uint8_t *)&frame)[i]);
	for (unsigned i = 0; i < n; i++)
		outb(COM2_PORT, ((const uint8_t *)payload)[i]);
}

static uint8_t receive_byte(void)
{
	while (!(inb(COM2_LINE_STATUS) & LINE_STATUS_DATA))
		cpu_relax();
	return inb(COM2_PORT);
}

/* The beginning of a payload is kept, the rest read all the same. */
static struct vprof_agent_frame receive(uint8_t payload[PAYLOAD_KEPT])
{
	struct vprof_agent_frame frame;

	for (unsigned i = 0; i < sizeof(frame); i++)
		((uint8_t *)&frame)[i] = receive_byte();
	for (unsigned i = 0; i < frame.bytes; i++) {
		uint8_t byte = receive_byte();

		if (i < PAYLOAD_KEPT)
			payload[i] = byte;
	}
	return frame;
}

static __attribute__((noinline)) void work(void)
{
	unsigned turns = WORK_TURNS;

	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns));
}

static void run(const struct vprof_agent_run *asked)
{
	static const char output[] = "plain: done\nvprof: metric turns=200000 1\n", errors[] = "plain: no errors\n";
	const struct vprof_agent_started started = {.run = asked->run, .pid = 1, .time_ns = host_ns};
	struct vprof_agent_exited exited = {.run = asked->run,
	                                    .status = asked->arguments - 1,
	                                    .user_ns = 3000,
	                                    .system_ns = 1000,
	                                    .memory_bytes = 4096};
	uint64_t begin = rdtsc();

	send(VPROF_AGENT_STARTED, sizeof(started), &started);
	work();
	send(VPROF_AGENT_STDOUT, sizeof(output) - 1, output);
	send(VPROF_AGENT_STDERR, sizeof(errors) - 1, errors);
	exited.time_ns = host_ns + (rdtsc() - begin) / 2; /* of a processor with 2 GHz */
	send(VPROF_AGENT_EXITED, sizeof(exited), &exited);
}

void guest_main(void)
{
	static const struct vprof_agent_hello hello = {
		.magic = VPROF_AGENT_MAGIC, .protocol = VPROF_AGENT_PROTOCOL, .is_init = 1};

	static union {
		uint8_t bytes[PAYLOAD_KEPT];
		struct vprof_agent_ping ping;
		struct vprof_agent_run run;
	} payload;
	struct vprof_agent_frame frame;
	struct vprof_agent_pong pong;

	send(VPROF_AGENT_HELLO, sizeof(hello), &hello);
	while ((frame = receive(payload.bytes)).type != VPROF_AGENT_POWER_OFF) {
		if (frame.type == VPROF_AGENT_RUN)
			run(&payload.run);
		if (frame.type != VPROF_AGENT_PING)
			continue;
		host_ns = payload.ping.cookie;
		pong = (struct vprof_agent_pong){.cookie = host_ns, .time_ns = host_ns};
		send(VPROF_AGENT_PONG, sizeof(pong), &pong);
	}
	power_off();
}
