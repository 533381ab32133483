// SPDX-License-Identifier: BSD-2-Clause
/* What a profile can know of a guest with this kernel, from its image alone. */
#include "control/host_json.h"
#include "guest/kernel.h"
#include "guest/orc.h"
#include "lib/symbol/symtab.h"

/* {"name", "known", "how" or "why"}. */
static json_t *part_json(const char *name, bool known, const char *how, const char *why)
{
	return json_pack("{s:s, s:b, s:s*, s:s*}", "name", name, "known", known, "how", known ? how : NULL, "why",
	                 known ? NULL : why);
}

static json_t *symbols_json(const struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load(image, &error);
	json_t *part = part_json("symbols", symtab != NULL, symtab ? symtab_source(symtab) : NULL,
	                         error ? error->message : NULL);

	symtab_free(symtab);
	return part;
}

static json_t *unwinder_json(const struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct orc *orc = orc_load(image, &error);
	g_autofree char *why = error ? g_strdup_printf("%s; by frame pointers, if it has them", error->message) : NULL;
	json_t *part = part_json("call chains", orc != NULL, "ORC", why);

	orc_free(orc);
	return part;
}

static json_t *parts_json(const struct image *image)
{
	struct kernel_layout *layout = kernel_layout_load(image);
	const char *no_tasks = layout->tasks_why;
	const char *no_files = layout->mappings_why ? layout->mappings_why : no_tasks;
	const char *no_cgroups = layout->cgroups_why ? layout->cgroups_why : no_tasks;
	const char *no_modules = layout->modules_why ? layout->modules_why : no_tasks;
	json_t *parts = json_pack("[o, o, o, o, o, o]", symbols_json(image), unwinder_json(image),
	                          part_json("tasks", layout->has_tasks, "types and symbols", no_tasks),
	                          part_json("mapped files", layout->has_mappings, "types", no_files),
	                          part_json("cgroups", layout->has_cgroups, "types", no_cgroups),
	                          part_json("modules", layout->has_modules, "types and symbols",
	                                    no_modules ? no_modules : "the kernel has no loadable modules"));

	kernel_layout_free(layout);
	return parts;
}

json_t *control_kernel(const char *path, GError **error)
{
	struct image *image = image_open(path, error);
	json_t *kernel;

	if (!image)
		return NULL;
	kernel = json_pack("{s:s, s:b, s:s*, s:o}", "path", path, "linux", image_is_linux(image), "release",
	                   image_release(image), "parts", parts_json(image));
	image_free(image);
	return kernel;
}
