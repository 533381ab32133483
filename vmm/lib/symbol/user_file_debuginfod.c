// SPDX-License-Identifier: BSD-2-Clause
/* By libdebuginfod, which keeps what it gets in the user's cache folder. */
#include <elfutils/debuginfod.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/symbol/user_file.h"

static GBytes *fd_take(int fd)
{
	g_autoptr(GMappedFile) file = fd >= 0 ? g_mapped_file_new_from_fd(fd, FALSE, NULL) : NULL;

	if (fd >= 0)
		close(fd);
	return file ? g_mapped_file_get_bytes(file) : NULL;
}

GBytes *user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes)
{
	debuginfod_client *client = debuginfod_begin();
	GBytes *bytes;

	if (!client)
		return NULL;
	bytes = fd_take(debuginfod_find_debuginfo(client, build_id, (int)build_id_bytes, NULL));
	if (!bytes)
		bytes = fd_take(debuginfod_find_executable(client, build_id, (int)build_id_bytes, NULL));
	debuginfod_end(client);
	return bytes;
}
