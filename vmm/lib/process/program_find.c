// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/program_find.h"

#include <unistd.h>

char *program_find(const char *name, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", error);
	g_autofree char *folder = NULL, *beside = NULL, *libexec = NULL, *installed = NULL;

	if (!self)
		return NULL;
	folder = g_path_get_dirname(self);
	libexec = g_build_filename("..", "libexec", "vprof", name, NULL);
	installed = g_canonicalize_filename(libexec, folder);
	if (access(installed, R_OK) == 0)
		return g_steal_pointer(&installed);
	beside = g_build_filename(folder, name, NULL);
	if (access(beside, R_OK) == 0)
		return g_steal_pointer(&beside);
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
	            "cannot find %s: it is neither %s nor %s; build or install all of vprof", name, installed, beside);
	return NULL;
}
