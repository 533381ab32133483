// SPDX-License-Identifier: BSD-2-Clause
/* By libdebuginfod, which keeps what it gets in the user's cache folder. */
#include <elfutils/debuginfod.h>

#include "lib/process/shared_library.h"
#include "lib/symbol/user_file.h"

#define DEBUGINFOD_FUNCTIONS(F) \
	F(debuginfod_begin) F(debuginfod_end) F(debuginfod_find_debuginfo) F(debuginfod_find_executable)

static struct {
	DEBUGINFOD_FUNCTIONS(SHARED_LIBRARY_POINTER)
} libdebuginfod;
SHARED_LIBRARY_NOTE(DEBUGINFOD_SONAME, "debuginfod");

bool user_file_debuginfod_load(GError **error)
{
	static const char *const names[] = {DEBUGINFOD_FUNCTIONS(SHARED_LIBRARY_NAME)};

	return shared_library_load(DEBUGINFOD_SONAME, names, G_N_ELEMENTS(names), &libdebuginfod, sizeof(libdebuginfod),
	                           error);
}

int user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes, bool executable)
{
	debuginfod_client *client = user_file_debuginfod_load(NULL) ? libdebuginfod.debuginfod_begin() : NULL;
	int fd = -1;

	if (!client)
		return -1;
	if (!executable)
		fd = libdebuginfod.debuginfod_find_debuginfo(client, build_id, (int)build_id_bytes, NULL);
	if (fd < 0)
		fd = libdebuginfod.debuginfod_find_executable(client, build_id, (int)build_id_bytes, NULL);
	libdebuginfod.debuginfod_end(client);
	return MAX(fd, -1);
}
