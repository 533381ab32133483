// SPDX-License-Identifier: BSD-2-Clause
/* Which system a kernel is of. */
#include "guest/os.h"

const struct guest_os *os_of_image(const struct guest_os *const *systems, const struct image *image)
{
	for (size_t i = 0; image && systems[i]; i++)
		if (systems[i]->recognises(image))
			return systems[i];
	return systems[0];
}

void os_kernel_free(struct os_kernel *kernel)
{
	if (kernel)
		kernel->os->free(kernel);
}

struct os_parts *os_parts_load(const struct guest_os *const *systems, const struct image *image,
                               const struct image *running)
{
	struct os_parts *parts = g_new0(struct os_parts, 1);
	struct symtab *symtab = running ? symtab_load(running, NULL) : NULL;

	parts->os = os_of_image(systems, image);
	const struct os_unwinding *unwinding = parts->os->unwinding;

	parts->kernel = parts->os->load(image);
	if (unwinding && unwinding->has_tables[image_arch(image)])
		parts->tables = unwinding->load(image, &parts->tables_why);
	if (symtab && parts->tables)
		parts->sites = unwinding->sites_load(running, symtab, NULL);
	symtab_free(symtab);
	return parts;
}

void os_parts_free(struct os_parts *parts)
{
	if (!parts)
		return;
	os_kernel_free(parts->kernel);
	if (parts->tables)
		parts->os->unwinding->free(parts->tables);
	if (parts->sites)
		parts->os->unwinding->sites_free(parts->sites);
	g_clear_error(&parts->tables_why);
	g_free(parts);
}
