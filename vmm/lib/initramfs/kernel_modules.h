// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loadable modules that a kernel needs before it can mount its root: from a folder like /lib/modules/VERSION, with what
 * they depend on. That is read in the modules themselves, so the folder needs no index (modules.dep).
 */
#ifndef VPROF_INITRAMFS_KERNEL_MODULES_H
#define VPROF_INITRAMFS_KERNEL_MODULES_H

#include <glib.h>
#include <stdbool.h>

#include "lib/initramfs/initramfs.h"

#define KERNEL_MODULES_ERROR kernel_modules_error_quark()
GQuark kernel_modules_error_quark(void);
enum kernel_modules_error {
	KERNEL_MODULES_ERROR_FOLDER,
	KERNEL_MODULES_ERROR_MISSING, /* neither there nor built into the kernel */
	KERNEL_MODULES_ERROR_FORMAT,  /* a file that is no module */
	KERNEL_MODULES_ERROR_RELEASE, /* of another kernel */
};

/* Where they are in the guest, as NNN-NAME.ko: in the order of their names, each comes behind what it needs. */
#define KERNEL_MODULES_PATH "/lib/modules/vprof"

struct kernel_modules;

/* folder: with modules in it, at any depth, compressed or not. release: of the guest's kernel; NULL: not known. */
struct kernel_modules *kernel_modules_new(const char *folder, const char *release, GError **error);
void kernel_modules_free(struct kernel_modules *modules);

/* Adds the module `name` and what it needs, unless it has been added or is built into the kernel. */
bool kernel_modules_add(struct kernel_modules *modules, const char *name, struct initramfs *initramfs, GError **error);

#endif
