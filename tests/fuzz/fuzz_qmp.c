// SPDX-License-Identifier: BSD-2-Clause
/* QEMU's monitor on a socket. Input: all that QEMU ever sends. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/monitor.h"
#include "fuzz_target.h"

#define CALLS 3u

static struct {
	char *folder, *path;
	int listener;
} qemu;

static void clean_up(void)
{
	g_unlink(qemu.path);
	g_rmdir(qemu.folder);
}

static void set_up(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (qemu.folder)
		return;
	qemu.folder = g_dir_make_tmp("vprof-fuzz-XXXXXX", NULL);
	g_assert(qemu.folder);
	qemu.path = g_build_filename(qemu.folder, "qmp", NULL);
	qemu.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	g_strlcpy(address.sun_path, qemu.path, sizeof(address.sun_path));
	g_assert(bind(qemu.listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	         listen(qemu.listener, 1) == 0);
	atexit(clean_up);
}

struct input {
	const uint8_t *bytes;
	size_t n;
};

/* Sends it all, and takes what comes until the other side has closed. */
static void *qemu_run(void *data)
{
	const struct input *input = data;
	int fd = accept(qemu.listener, NULL, NULL);
	size_t sent = 0;
	char rubbish[4096];

	for (ssize_t n = 1; n > 0 && sent < input->n; sent += (size_t)MAX(n, 0))
		n = send(fd, input->bytes + sent, input->n - sent, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while (read(fd, rubbish, sizeof(rubbish)) > 0)
		;
	close(fd);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct monitor *monitor;
	GThread *thread;

	set_up();
	thread = g_thread_new("qemu", qemu_run, &input);
	monitor = monitor_open_socket(qemu.path, NULL);
	for (unsigned i = 0; monitor && i < CALLS; i++) {
		const struct monitor_request request = {.command = MONITOR_REGISTERS};

		g_free(monitor_human(monitor, &request, NULL));
		json_decref(monitor_ask(monitor, MONITOR_CPUS, NULL));
	}
	monitor_free(monitor);
	g_thread_join(thread);
	return 0;
}
