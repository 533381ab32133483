// SPDX-License-Identifier: BSD-2-Clause
/* The host's end of the agent's vsock(7) connection: guests connect to a port of the host. */
#ifndef VPROF_CLI_RUN_AGENT_VSOCK_H
#define VPROF_CLI_RUN_AGENT_VSOCK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define AGENT_VSOCK_ERROR agent_vsock_error_quark()
GQuark agent_vsock_error_quark(void);
enum agent_vsock_error {
	AGENT_VSOCK_ERROR_LISTEN, /* the port is in use, or this host has no vsock */
};

#define AGENT_VSOCK_PREFIX "vsock:"

/* Whether `where` is "vsock:PORT". Sets *port, or an error if PORT is invalid. Errors: UNITS_ERROR. */
bool agent_vsock_port(const char *where, uint32_t *port, GError **error);

/* A socket that listens; -1 with an error. */
int agent_vsock_listen(uint32_t port, GError **error);

/*
 * Accepts a connection of the guest `cid`; -1 if none waits. Connections of other guests are closed and added to
 * `refused`.
 */
int agent_vsock_accept(int listener, uint32_t cid, unsigned *refused);

#endif
