// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loadable modules that a kernel needs before it can mount its root, with their dependencies, from a folder like
 * /lib/modules/VERSION. Dependencies are read from the modules themselves, so the folder needs no modules.dep.
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

/* Their folder in the guest. They are named NNN-NAME.ko: in the order of names, each comes after its dependencies. */
#define KERNEL_MODULES_PATH "/lib/modules/vprof"

struct kernel_modules;

/* folder: holds modules at any depth, compressed or not. release: the guest kernel's; NULL: unknown. */
struct kernel_modules *kernel_modules_new(const char *folder, const char *release, GError **error);
void kernel_modules_free(struct kernel_modules *modules);

/* Adds the module `name` and its dependencies, unless already added or built into the kernel. */
bool kernel_modules_add(struct kernel_modules *modules, const char *name, struct initramfs *initramfs, GError **error);

#endif
