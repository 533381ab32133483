// SPDX-License-Identifier: BSD-2-Clause
/* The files of a Linux kernel's loadable modules, in a folder like /lib/modules/VERSION. */
#ifndef VPROF_SYMBOL_MODULE_FILE_H
#define VPROF_SYMBOL_MODULE_FILE_H

#include <glib.h>

#include "lib/symbol/image.h"

struct module_folder;

/* Finds the modules at any depth, compressed or not. An empty or missing folder has none. */
struct module_folder *module_folder_new(const char *path);
void module_folder_free(struct module_folder *folder);

unsigned module_folder_n(const struct module_folder *folder);
/* The path of a module's file; in names, '-' and '_' are the same. NULL. */
const char *module_folder_find(const struct module_folder *folder, const char *name);

/* The name of the module in a file of this name: up to ".ko", with '_' for '-'. NULL: it is none. New string. */
char *module_file_name(const char *file);
/* Sealed memory with what is in the file, without its compression; the caller closes it. -1 with IMAGE_ERROR_PAYLOAD.
 */
int module_file_read(const char *path, GError **error);

#endif
