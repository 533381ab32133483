// SPDX-License-Identifier: BSD-2-Clause
/*
 * The second serial port of a PC, by its registers: for kernels whose driver has one port only (8250.nr_uarts=1), or
 * that have no driver. A process of its own polls them, so that the agent has a stream as from any device.
 */
#ifndef VPROF_AGENT_DEVICE_REGISTERS_H
#define VPROF_AGENT_DEVICE_REGISTERS_H

#include <errno.h>

#ifdef __x86_64__
/* A non-blocking stream. -1 with errno: ENODEV where there is no such port. */
int device_open_registers(void);
/* Waits until the host has everything, if `fd` is that stream, and ends it. */
void device_end_registers(int fd);
#else
static inline int device_open_registers(void)
{
	errno = ENODEV;
	return -1;
}

static inline void device_end_registers(int fd)
{
	(void)fd;
}
#endif

#endif
