// SPDX-License-Identifier: BSD-2-Clause
/* Finds libraries as ld.so(8) would on this host. */
#ifndef VPROF_INITRAMFS_LIBRARY_SEARCH_H
#define VPROF_INITRAMFS_LIBRARY_SEARCH_H

#include <glib.h>

#include "lib/initramfs/elf_links.h"

#define LIBRARY_CACHE_PATH "/etc/ld.so.cache"

/* A file that needs libraries, and the file that needs it. */
struct library_user {
	char *path;
	struct elf_links links;
	const struct library_user *parent; /* NULL: the program */
};

struct library_search;

/* more: folders as in LD_LIBRARY_PATH, or NULL; cache_path: LIBRARY_CACHE_PATH, or a test's file. */
struct library_search *library_search_new(const char *more, const char *cache_path);
void library_search_free(struct library_search *search);

/* The file of the library that `user` calls `name`: new string, or NULL. */
char *library_search_find(const struct library_search *search, const struct library_user *user, const char *name);

#endif
