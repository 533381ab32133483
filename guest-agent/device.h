// SPDX-License-Identifier: BSD-2-Clause
/* Where the stream to the host comes out in the guest. */
#ifndef VPROF_AGENT_DEVICE_H
#define VPROF_AGENT_DEVICE_H

#include <stdint.h>

/* A terminal (serial port, virtio console), made raw, or a virtio-serial port. -1 with errno. Does not block. */
int device_open(const char *path);
/* Connects to this port of the host. -1 with errno. */
int device_open_vsock(uint32_t port);
/* Waits until a terminal has sent everything. */
void device_drain(int fd);

#endif
