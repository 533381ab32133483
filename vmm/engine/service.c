// SPDX-License-Identifier: BSD-2-Clause
#include "engine/service.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_FDS_START 3 /* SD_LISTEN_FDS_START */

static guint64 number(const char *variable)
{
	guint64 value = 0;
	const char *text = g_getenv(variable);

	return text && g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT, &value, NULL) ? value : 0;
}

int service_listen_fd(void)
{
	/* The variables may be meant for a process that started us. */
	if (number("LISTEN_PID") != (guint64)getpid() || number("LISTEN_FDS") < 1)
		return -1;
	return fcntl(LISTEN_FDS_START, F_SETFD, FD_CLOEXEC) == 0 ? LISTEN_FDS_START : -1;
}

void service_ready(void)
{
	static const char state[] = "READY=1";
	const char *path = g_getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@') /* an abstract name */
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, sizeof(state) - 1, MSG_NOSIGNAL, (const struct sockaddr *)&address,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		g_warning("cannot tell %s that the engine is ready: %s", path, g_strerror(errno));
	close(fd);
}
