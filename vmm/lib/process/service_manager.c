// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/service_manager.h"

#include <errno.h>
#include <glib.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void service_manager_tell(const char *state)
{
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
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		g_warning("cannot tell the service manager at %s: %s", path, g_strerror(errno));
	close(fd);
}

static guint64 number(const char *variable)
{
	guint64 value = 0;
	const char *text = g_getenv(variable);

	return text && g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &value, NULL) ? value : 0;
}

int64_t service_manager_watchdog_us(void)
{
	/* The variables may be meant for a process that started us. */
	if (g_getenv("WATCHDOG_PID") && number("WATCHDOG_PID") != (guint64)getpid())
		return 0;
	return (int64_t)number("WATCHDOG_USEC");
}
