// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf's cache of symbols by build-id, where plain `perf report` and Hotspot find the guest kernel's functions:
 * FOLDER/[kernel.kallsyms]/BUILD-ID/kallsyms, and FOLDER/.build-id/BU/ILD-ID that leads there (Linux,
 * tools/perf/util/build-id.c, build_id_cache__kallsyms_path, build_id_cache__add).
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "export/export.h"

#define KERNEL "[kernel.kallsyms]"

/* export_kallsyms ends its ranges by symbols of this module, so that its lists are known from those of perf. */
#define OURS "\tvprof"

static bool folder_make(const char *path, GError **error)
{
	if (g_mkdir_with_parents(path, 0755) == 0)
		return true;
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot make the folder %s: %s", path,
	            g_strerror(errno));
	return false;
}

/* A list that perf has made is of the whole kernel, and stays. */
static bool is_free(const char *path, GError **error)
{
	g_autofree char *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL) || strstr(text, OURS))
		return true;
	g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
	            "%s is a list that vprof has not made, and was left as it is", path);
	return false;
}

static bool link_make(const char *folder, const char *build_id, GError **error)
{
	g_autofree char *links = g_strdup_printf("%s/.build-id/%.2s", folder, build_id);
	g_autofree char *link = g_strdup_printf("%s/%s", links, build_id + 2);
	g_autofree char *target = g_strdup_printf("../../" KERNEL "/%s", build_id);

	if (!folder_make(links, error))
		return false;
	if (symlink(target, link) == 0 || errno == EEXIST)
		return true;
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot make the link %s: %s", link,
	            g_strerror(errno));
	return false;
}

char *export_buildid_cache_path(const struct input *input, const char *folder, GError **error)
{
	g_autofree char *usual = g_build_filename(g_get_home_dir(), ".debug", NULL);
	const char *build_id = recording_kernel_build_id(input->recording), *cache = folder ? folder : usual;
	g_autofree char *place = build_id ? g_build_filename(cache, KERNEL, build_id, NULL) : NULL;
	g_autofree char *path = place ? g_build_filename(place, "kallsyms", NULL) : NULL;

	if (!build_id || strlen(build_id) <= 2) {
		g_set_error(
			error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
			"%s has no build-id of the kernel, by which perf would find its functions; use --to kallsyms",
			input->path);
		return NULL;
	}
	if (!folder_make(place, error) || !is_free(path, error) || !link_make(cache, build_id, error))
		return NULL;
	return g_steal_pointer(&path);
}
