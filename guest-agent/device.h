// SPDX-License-Identifier: BSD-2-Clause
/* The devices for the stream to the host. */
#ifndef VPROF_AGENT_DEVICE_H
#define VPROF_AGENT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The device of the virtio-serial port with the name org.vprof.agent.0: "/dev/vport0p0", in memory that the next call
 * overwrites. Waits a little if there is any virtio console. NULL: there is none.
 */
const char *device_find_port(void);
/* Opens a terminal (serial port, virtio console), made raw, or a virtio-serial port, non-blocking. -1 with errno. */
int device_open(const char *path);
/* Connects to this port of the host. -1 with errno. */
int device_open_vsock(uint32_t port);
/* Whether the host's end is open, as far as the device tells. */
bool device_has_host(int fd);
/* Waits until a terminal, or the stream of device_open_registers, has sent everything. */
void device_drain(int fd);

#endif
