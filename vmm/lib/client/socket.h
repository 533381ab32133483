// SPDX-License-Identifier: BSD-2-Clause
/* The UNIX socket under the control protocol: addresses, and bytes with descriptors. */
#ifndef VPROF_CLIENT_SOCKET_H
#define VPROF_CLIENT_SOCKET_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* False when `path` is too long for an address (107 bytes). */
bool client_socket_address(const char *path, struct sockaddr_un *address);

/* A socket connected to `path`, close-on-exec. -1 with errno: EAGAIN when the backlog is full. Never blocks. */
int client_socket_connect(const char *path);

/*
 * The other side of a connected socket; of a process that listens, what it was when it began to, also for an engine
 * that has become another user since. Pid 0 and uid -1: not known.
 */
struct ucred client_socket_peer(int fd);

/*
 * sendmsg(2) of `bytes`, with n_fds <= VPROF_CONTROL_FDS_MAX descriptors on the first of them. Neither blocks nor
 * raises SIGPIPE.
 */
ssize_t client_socket_send(int fd, const void *bytes, size_t n, const int *fds, size_t n_fds);

/*
 * recvmsg(2); does not block. Received descriptors, close-on-exec, are appended to `fds` (of int). -1 with EPROTO when
 * more than VPROF_CONTROL_FDS_MAX came with the bytes; those that came are appended all the same.
 */
ssize_t client_socket_receive(int fd, void *bytes, size_t n, GArray *fds);

#endif
