// SPDX-License-Identifier: BSD-2-Clause
/* What a loadable module says of itself: "KEY=VALUE" strings in .modinfo (Linux, include/linux/moduleparam.h). */
#ifndef VPROF_INITRAMFS_MODINFO_H
#define VPROF_INITRAMFS_MODINFO_H

#include <glib.h>
#include <stdbool.h>

struct modinfo {
	const guint8 *at; /* in the module's bytes */
	gsize n;
};

/* False: the bytes are no module for this architecture. */
bool modinfo_find(const guint8 *bytes, gsize n, struct modinfo *modinfo);
/* The value of the first string with this key; new string, or NULL. */
char *modinfo_value(const struct modinfo *modinfo, const char *key);

#endif
