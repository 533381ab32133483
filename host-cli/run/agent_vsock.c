// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_vsock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "ui/units.h"

#define BACKLOG 4

G_DEFINE_QUARK(vprof_agent_vsock_error, agent_vsock_error)

bool agent_vsock_port(const char *where, uint32_t *port, GError **error)
{
	uint64_t number;

	if (!units_parse_number("--agent vsock", where + strlen(AGENT_VSOCK_PREFIX), 1, VMADDR_PORT_ANY - 1, &number,
	                        error))
		return false;
	*port = (uint32_t)number;
	return true;
}

int agent_vsock_listen(uint32_t port, GError **error)
{
	const struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = port};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	g_set_error(error, AGENT_VSOCK_ERROR, AGENT_VSOCK_ERROR_LISTEN, "cannot listen on vsock port %u: %s%s", port,
	            g_strerror(errno),
	            fd < 0                ? "; load the module vhost_vsock"
	            : errno == EADDRINUSE ? "; give another, and the agent the same"
	                                  : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

int agent_vsock_accept(int listener, uint32_t cid, unsigned *refused)
{
	struct sockaddr_vm peer;
	socklen_t bytes = sizeof(peer);
	int fd;

	/* Limits how many connections of other guests are refused in one call. */
	for (unsigned i = 0; i < BACKLOG; i++) {
		fd = accept4(listener, (struct sockaddr *)&peer, &bytes, SOCK_CLOEXEC);
		if (fd < 0)
			return -1;
		if (bytes == sizeof(peer) && peer.svm_family == AF_VSOCK && peer.svm_cid == cid)
			return fd;
		close(fd);
		bytes = sizeof(peer);
		*refused += 1;
	}
	return -1;
}
