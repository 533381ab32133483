// SPDX-License-Identifier: BSD-2-Clause
#include "engine/service.h"

#include <fcntl.h>
#include <glib.h>
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
