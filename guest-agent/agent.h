// SPDX-License-Identifier: BSD-2-Clause
/* One conversation of the agent with a host. */
#ifndef VPROF_AGENT_AGENT_H
#define VPROF_AGENT_AGENT_H

#include <stdbool.h>

/* Why a conversation is over. */
enum agent_end {
	AGENT_HOST_GONE,
	AGENT_BROKEN,    /* the input is not a frame */
	AGENT_POWER_OFF, /* the host requested to power off */
	AGENT_STOPPED,   /* by SIGTERM, as a service */
};

/* Blocks the signals that agent_talk waits for. To be called once, before the first agent_talk. */
void agent_signals(bool is_init);
/* Waits; false, and at once, when SIGTERM has come. */
bool agent_pause(unsigned ms);
/* Talks to the host on this descriptor until the end, and closes it. */
enum agent_end agent_talk(int fd, bool is_init);

#endif
