// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/program_find.h"

#include <string.h>
#include <unistd.h>

#include "lib/record/arch.h"

#define X86_ONLY "vprof-attach"

char *program_find(const char *name, GError **error)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", error);
	g_autofree char *folder = NULL, *beside = NULL, *installed = NULL;

	if (!self)
		return NULL;
	folder = g_path_get_dirname(self);
	beside = g_build_filename(folder, name, NULL);
	if (access(beside, R_OK) == 0)
		return g_steal_pointer(&beside);
	installed = g_build_filename(folder, "..", "libexec", "vprof", name, NULL);
	if (access(installed, R_OK) == 0)
		return g_canonicalize_filename(installed, NULL);
	if (strcmp(name, X86_ONLY) == 0 && arch_here() != ARCH_X86_64) {
		g_set_error(
			error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
			"guests of other VMMs can be attached to on hosts of %s only, and this host is %s; take vprof run",
			arch_name(ARCH_X86_64), arch_name(arch_here()));
		return NULL;
	}
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT,
	            "cannot find %s: it is neither %s nor %s; build or install all of vprof", name, beside, installed);
	return NULL;
}
