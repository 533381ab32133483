// SPDX-License-Identifier: BSD-2-Clause
/* The agent at work: one conversation with a host. */
#ifndef VPROF_AGENT_AGENT_H
#define VPROF_AGENT_AGENT_H

#include <stdbool.h>

/* Why a conversation is over. */
enum agent_end {
	AGENT_HOST_GONE,
	AGENT_BROKEN,    /* what came is no frame */
	AGENT_POWER_OFF, /* the host asked for the machine's end */
};

/* Blocks the signals that agent_talk waits for. Once, before the first. */
void agent_signals(void);
/* Talks to the host on this descriptor, which it closes, until the end. */
enum agent_end agent_talk(int fd, bool is_init);

#endif
