// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/library_search.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "lib/initramfs/library_cache.h"
#include "lib/record/arch.h"

struct library_search {
	char *more;
	char *cache;
	gsize cache_bytes;
};

/* glibc's default folders, on Debian ("%s": its name of the architecture) and on other distributions. */
#define DEBIAN_FOLDERS "/lib/%s-linux-gnu:/usr/lib/%s-linux-gnu"
#define OTHER_FOLDERS ":/lib64:/usr/lib64:/lib:/usr/lib"

struct library_search *library_search_new(const char *more, const char *cache_path)
{
	struct library_search *search = g_new0(struct library_search, 1);

	search->more = g_strdup(more);
	/* Without a cache, ld.so searches the folders only. */
	if (!g_file_get_contents(cache_path, &search->cache, &search->cache_bytes, NULL))
		search->cache_bytes = 0;
	return search;
}

void library_search_free(struct library_search *search)
{
	if (!search)
		return;
	g_free(search->more);
	g_free(search->cache);
	g_free(search);
}

/* ld.so skips files of other architectures. */
static bool is_library(const char *path)
{
	guint8 start[sizeof(Elf64_Ehdr)];
	FILE *file = fopen(path, "re");
	gsize n = file ? fread(start, 1, sizeof(start), file) : 0;

	if (file)
		fclose(file);
	return elf_is_ours(start, n);
}

/* Expands $ORIGIN and the other tokens of ld.so(8). New string. */
static char *tokens_expand(const char *text, const char *user_path)
{
	const char *platform = arch_uname(arch_here());
	g_autofree char *origin = g_path_get_dirname(user_path);
	g_autofree char *lib = g_strdup_printf("lib/%s-linux-gnu", platform);
	GString *expanded = g_string_new(text);

	g_string_replace(expanded, "${ORIGIN}", origin, 0);
	g_string_replace(expanded, "$ORIGIN", origin, 0);
	g_string_replace(expanded, "${LIB}", lib, 0);
	g_string_replace(expanded, "$LIB", lib, 0);
	g_string_replace(expanded, "${PLATFORM}", platform, 0);
	g_string_replace(expanded, "$PLATFORM", platform, 0);
	return g_string_free(expanded, FALSE);
}

/* Searches the folders of `user_path`; NULL: no folder. */
static char *folders_find(const char *folders, const char *user_path, const char *name)
{
	g_auto(GStrv) list = g_strsplit_set(folders ? folders : "", ":;", -1);

	for (char **folder = list; *folder; folder++) {
		g_autofree char *expanded = tokens_expand(*folder, user_path);
		g_autofree char *path = g_build_filename(expanded[0] != '\0' ? expanded : ".", name, NULL);

		if (is_library(path))
			return g_canonicalize_filename(path, NULL);
	}
	return NULL;
}

/* DT_RPATH also applies to a library's own dependencies; a DT_RUNPATH disables it. */
static char *rpath_find(const struct library_user *user, const char *name)
{
	char *found = NULL;

	if (user->links.runpath)
		return NULL;
	for (; user && !found; user = user->parent)
		found = folders_find(!user->links.runpath ? user->links.rpath : NULL, user->path, name);
	return found;
}

static char *cache_find(const struct library_search *search, const char *name)
{
	const char *path = library_cache_find((const guint8 *)search->cache, search->cache_bytes, name);

	return path && is_library(path) ? g_strdup(path) : NULL;
}

char *library_search_find(const struct library_search *search, const struct library_user *user, const char *name)
{
	char *found = NULL;

	if (strchr(name, '/')) {
		g_autofree char *path = tokens_expand(name, user->path);

		return is_library(path) ? g_canonicalize_filename(path, NULL) : NULL;
	}
	found = rpath_find(user, name);
	if (!found)
		found = folders_find(search->more, user->path, name);
	if (!found)
		found = folders_find(user->links.runpath, user->path, name);
	if (!found)
		found = cache_find(search, name);
	if (!found) {
		const char *platform = arch_uname(arch_here());
		g_autofree char *folders = g_strdup_printf(DEBIAN_FOLDERS OTHER_FOLDERS, platform, platform);

		found = folders_find(folders, user->path, name);
	}
	return found;
}
