// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/kernel_modules.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/initramfs/modinfo.h"
#include "lib/parser/parser.h"
#include "lib/record/arch.h"
#include "lib/symbol/module_file.h"

#define DEPTH_MAX 64u                  /* of modules that need others; Linux itself has ten */
#define BUILTIN_LIST "modules.builtin" /* Linux, Documentation/kbuild/kbuild.rst */

G_DEFINE_QUARK(vprof_kernel_modules_error, kernel_modules_error)

struct kernel_modules {
	char *folder, *release;
	struct module_folder *files;
	GHashTable *done; /* names of those that are added, built in, or being added */
	unsigned added;
	unsigned depth; /* of the module at hand */
};

/* Each line holds a path of the kernel's build. */
static void builtins_read(struct kernel_modules *modules)
{
	g_autofree char *path = g_build_filename(modules->folder, BUILTIN_LIST, NULL), *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, NULL))
		return;
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		g_autofree char *file = g_path_get_basename(*line);
		char *name = module_file_name(file);

		if (name)
			g_hash_table_add(modules->done, name);
	}
}

struct kernel_modules *kernel_modules_new(const char *folder, const char *release, GError **error)
{
	struct kernel_modules *modules = g_new0(struct kernel_modules, 1);

	modules->folder = g_strdup(folder);
	modules->release = g_strdup(release);
	modules->files = module_folder_new(folder);
	modules->done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	builtins_read(modules);
	if (module_folder_n(modules->files) > 0)
		return modules;
	g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FOLDER,
	            "no kernel modules (*.ko) in %s; name the folder /lib/modules/VERSION of the guest's kernel",
	            folder);
	kernel_modules_free(modules);
	return NULL;
}

void kernel_modules_free(struct kernel_modules *modules)
{
	if (!modules)
		return;
	module_folder_free(modules->files);
	g_hash_table_unref(modules->done);
	g_free(modules->folder);
	g_free(modules->release);
	g_free(modules);
}

/* ---- adding ---- */

/* vermagic begins with the release of the kernel that the module was built for. */
static bool release_check(const struct kernel_modules *modules, const char *path, const struct modinfo *modinfo,
                          GError **error)
{
	g_autofree char *vermagic = modinfo_value(modinfo, "vermagic");

	if (!modules->release || !vermagic)
		return true;
	vermagic[strcspn(vermagic, " ")] = '\0';
	if (strcmp(vermagic, modules->release) == 0)
		return true;
	g_set_error(
		error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_RELEASE,
		"kernel module %s is for Linux %s, and the guest's kernel is %s; give --modules that kernel's folder",
		path, vermagic, modules->release);
	return false;
}

static bool needs_add(struct kernel_modules *modules, const struct modinfo *modinfo, struct initramfs *initramfs,
                      GError **error)
{
	g_autofree char *depends = modinfo_value(modinfo, "depends");
	g_auto(GStrv) names = g_strsplit(depends ? depends : "", ",", -1);

	for (char **name = names; *name; name++) {
		if (**name && !kernel_modules_add(modules, *name, initramfs, error))
			return false;
	}
	return true;
}

static bool module_add(struct kernel_modules *modules, const char *name, const char *path, struct initramfs *initramfs,
                       GError **error)
{
	g_autoptr(GError) why = NULL;
	int unpacked = module_file_read(path, &why);
	g_autoptr(GBytes) bytes = unpacked >= 0 ? sealed_map(unpacked) : NULL;
	struct modinfo modinfo;
	const guint8 *contents;
	gsize n;

	if (unpacked >= 0)
		close(unpacked);
	if (!bytes) {
		g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FORMAT, "%s",
		            why ? why->message : g_strerror(errno));
		return false;
	}
	contents = g_bytes_get_data(bytes, &n);
	if (!modinfo_find(contents, n, &modinfo)) {
		g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FORMAT,
		            "%s is not a kernel module for %s", path, arch_name(arch_here()));
		return false;
	}
	if (!release_check(modules, path, &modinfo, error) || !needs_add(modules, &modinfo, initramfs, error))
		return false;
	g_autofree char *to = g_strdup_printf("%s/%03u-%s.ko", KERNEL_MODULES_PATH, modules->added++, name);
	initramfs_add_bytes(initramfs, bytes, to);
	return true;
}

bool kernel_modules_add(struct kernel_modules *modules, const char *name, struct initramfs *initramfs, GError **error)
{
	g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
	const char *path = module_folder_find(modules->files, key);

	if (g_hash_table_contains(modules->done, key))
		return true;
	if (!path) {
		g_set_error(
			error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_MISSING,
			"the guest needs the kernel module %s, which is not in %s, nor in its list of what is built in (" BUILTIN_LIST
			")",
			key, modules->folder);
		return false;
	}
	if (modules->depth == DEPTH_MAX) {
		g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FORMAT,
		            "%s is needed by a module that is needed by another, and so on for %u modules", path,
		            DEPTH_MAX);
		return false;
	}
	/* Before its dependencies, so that a circle ends. */
	g_hash_table_add(modules->done, g_strdup(key));
	modules->depth++;
	const bool added = module_add(modules, key, path, initramfs, error);

	modules->depth--;
	return added;
}
