// SPDX-License-Identifier: BSD-2-Clause
/*
 * The client of the control protocol against a hostile engine. Input: a byte with the number of descriptors that come
 * along, then all that the engine ever sends.
 */
#include <fcntl.h>
#include <glib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vprof/control.h>

#include "fuzz_target.h"
#include "lib/client/client.h"
#include "lib/client/socket.h"

#define BYTES_MAX 65536u /* that a socket takes without a reader */
#define TIMEOUT_MS 1000u /* not reached: the engine has closed its side */
#define CALLS 4u

static void calls_make(struct client *client)
{
	for (unsigned i = 0; i < CALLS; i++) {
		int *fds = NULL;
		size_t n = 0;

		json_decref(client_execute(client, "rings", NULL, i % 2 != 0 ? &fds : NULL, &n, TIMEOUT_MS, NULL));
		for (size_t j = 0; j < n; j++)
			g_assert(close(fds[j]) == 0);
		g_free(fds);
	}
	for (json_t *event; (event = client_next_event(client, 0, NULL));)
		json_decref(event);
}

/* The lowest descriptor that is free. */
static int free_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int before = free_descriptor();
	int pair[2], fds[VPROF_CONTROL_FDS_MAX];
	struct client *client;

	if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
		return 0;
	for (size_t i = 0; i < VPROF_CONTROL_FDS_MAX; i++)
		fds[i] = pair[0];
	g_assert(client_socket_send(pair[0], data + 1, MIN(size - 1, BYTES_MAX), fds,
	                            data[0] % (VPROF_CONTROL_FDS_MAX + 1)) >= 0);
	shutdown(pair[0], SHUT_WR);
	client = client_new_fd(pair[1], 0, TIMEOUT_MS, NULL);
	if (client)
		calls_make(client);
	client_free(client);
	close(pair[0]);
	g_assert(free_descriptor() == before);
	return 0;
}
