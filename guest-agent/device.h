// SPDX-License-Identifier: BSD-2-Clause
/* Where the stream to the host comes out in the guest. */
#ifndef VPROF_AGENT_DEVICE_H
#define VPROF_AGENT_DEVICE_H

#include <stdint.h>

/*
 * The device of the virtio-serial port that the host calls org.vprof.agent.0: "/dev/vport0p0", in memory that the next
 * call uses again. Waits a little if there is a virtio console at all. NULL: there is none.
 */
const char *device_find_port(void);
/* A terminal (serial port, virtio console), made raw, or a virtio-serial port. -1 with errno. Does not block. */
int device_open(const char *path);
/* Connects to this port of the host. -1 with errno. */
int device_open_vsock(uint32_t port);
/* Waits until a terminal has sent everything. */
void device_drain(int fd);

#endif
