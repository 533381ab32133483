// SPDX-License-Identifier: BSD-2-Clause
/* By libdebuginfod, which keeps what it gets in the user's cache folder. */
#include <elfutils/debuginfod.h>

#include "lib/process/shared_library.h"
#include "lib/symbol/user_file.h"
#include "vprof/parse.h"

/* clang-format off */
#define DEBUGINFOD_FUNCTIONS(F) \
	F(debuginfod_begin) F(debuginfod_end) F(debuginfod_find_debuginfo) F(debuginfod_find_executable) \
	F(debuginfod_set_progressfn) F(debuginfod_set_user_data) F(debuginfod_get_user_data)
/* clang-format on */

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

/* A server may send without end. Of what it sends, `all` is what it says; 0: it does not. Other than 0: no more of it.
 */
static int check_progress(debuginfod_client *client, long bytes, long all)
{
	const gint64 *until_us = libdebuginfod.debuginfod_get_user_data(client);

	return MAX(bytes, all) > (long)VPROF_PARSE_INPUT_BYTES_MAX || g_get_monotonic_time() > *until_us;
}

int user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes, bool executable)
{
	debuginfod_client *client = user_file_debuginfod_load(NULL) ? libdebuginfod.debuginfod_begin() : NULL;
	gint64 until_us = g_get_monotonic_time() + USER_FILE_DEBUGINFOD_SECONDS * G_USEC_PER_SEC;
	int fd = -1;

	if (!client)
		return -1;
	libdebuginfod.debuginfod_set_user_data(client, &until_us);
	libdebuginfod.debuginfod_set_progressfn(client, check_progress);
	if (!executable)
		fd = libdebuginfod.debuginfod_find_debuginfo(client, build_id, (int)build_id_bytes, NULL);
	if (fd < 0)
		fd = libdebuginfod.debuginfod_find_executable(client, build_id, (int)build_id_bytes, NULL);
	libdebuginfod.debuginfod_end(client);
	return MAX(fd, -1);
}
