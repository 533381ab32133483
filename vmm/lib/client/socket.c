// SPDX-License-Identifier: BSD-2-Clause
#include "lib/client/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vprof/control.h>

/* Room for one SCM_RIGHTS message, aligned as CMSG_FIRSTHDR wants it. */
union control_buffer {
	char bytes[CMSG_SPACE(VPROF_CONTROL_FDS_MAX * sizeof(int))];
	struct cmsghdr alignment;
};

bool client_socket_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return g_strlcpy(address->sun_path, path, sizeof(address->sun_path)) < sizeof(address->sun_path);
}

int client_socket_connect(const char *path)
{
	struct sockaddr_un address;

	if (!client_socket_address(path, &address)) {
		errno = ENAMETOOLONG;
		return -1;
	}

	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

struct ucred client_socket_peer(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
		peer = (struct ucred){.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
	return peer;
}

ssize_t client_socket_send(int fd, const void *bytes, size_t n, const int *fds, size_t n_fds)
{
	union control_buffer control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void append_descriptors(struct msghdr *message, GArray *fds)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		g_array_append_vals(fds, CMSG_DATA(header), (guint)n);
	}
}

ssize_t client_socket_receive(int fd, void *bytes, size_t n, GArray *fds)
{
	union control_buffer control;
	struct iovec iov = {.iov_base = bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &iov,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof(control.bytes)};

	ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return got;
	append_descriptors(&message, fds);
	if (message.msg_flags & MSG_CTRUNC) {
		errno = EPROTO;
		return -1;
	}
	return got;
}
