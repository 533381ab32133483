// SPDX-License-Identifier: BSD-2-Clause
/* ld.so's cache: which file is the library of a name (glibc, sysdeps/generic/dl-cache.h). */
#ifndef VPROF_INITRAMFS_LIBRARY_CACHE_H
#define VPROF_INITRAMFS_LIBRARY_CACHE_H

#include <glib.h>

/* The path of the library `name` for this architecture, a pointer into `bytes`; NULL if the cache is malformed or lacks
 * it. */
const char *library_cache_find(const guint8 *bytes, gsize n, const char *name);

#endif
