// SPDX-License-Identifier: BSD-2-Clause
#include "linux/kernel.h"

#include "guest/processor.h"
#include "linux/call_sites.h"
#include "linux/orc.h"

gva_t kernel_symbol(const struct symtab *symtab, const char *name)
{
	return (gva_t){symtab_address(symtab, name)};
}

gva_t kernel_hot_symbol(const struct symtab *symtab, const struct types *types, const char *name, const char *member)
{
	gva_t found = kernel_symbol(symtab, name), hot = kernel_symbol(symtab, "pcpu_hot");
	uint32_t offset;

	if (found.value == 0 && hot.value != 0 && types && types_has(types, "pcpu_hot", member, &offset))
		found.value = hot.value + offset;
	return found;
}

static void layouts_load(struct kernel_layout *layout, const struct image *image, const struct symtab *symtab,
                         const struct types *types)
{
	const struct processor *processor = processor_of_image(image);
	g_autoptr(GError) error = NULL;

	layout->has_tasks = task_layout_load(image, symtab, types, &layout->tasks, &error);
	layout->switch_to = kernel_symbol(symtab, "__switch_to");
	layout->wake_up = kernel_symbol(symtab, "try_to_wake_up");
	processor->kernel->load(layout, symtab, types);
	if (!layout->has_tasks) {
		layout->tasks_why = g_strdup(error->message);
		return;
	}
	layout->has_areas = cpu_area_layout_load(symtab, types, &layout->tasks, &layout->areas);
	layout->has_page_cache = page_cache_layout_load(image, symtab, types, &layout->page_cache);
	layout->has_inodes = layout->has_page_cache && inode_layout_load(symtab, types, &layout->inodes);
	layout->has_locks = processor->gprs->futex_read && lock_layout_load(symtab, types, &layout->locks);
	layout->has_list = task_list_layout_load(symtab, types, &layout->tasks, &layout->list, &error);
	if (!layout->has_list)
		layout->list_why = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_mappings = vma_layout_load(types, &layout->mappings, &error);
	if (!layout->has_mappings)
		layout->mappings_why = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_cgroups = cgroup_layout_load(types, &layout->cgroups, &error);
	if (!layout->has_cgroups)
		layout->cgroups_why = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_modules = module_layout_load(symtab, types, &layout->modules, &error);
	if (!layout->has_modules && !g_error_matches(error, MODULE_ERROR, MODULE_ERROR_NONE))
		layout->modules_why = g_strdup(error->message);
}

struct kernel_layout *kernel_layout_load(const struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load(image, &error);
	struct types *types = symtab ? types_new(image, &error) : NULL;
	struct kernel_layout *layout = kernel_layout_none(error ? error->message : NULL);

	if (symtab) {
		symtab_index_names(symtab);
		layout->interrupt_stack = kernel_hot_symbol(symtab, types, "hardirq_stack_ptr", "hardirq_stack_ptr");
	}
	if (types)
		layouts_load(layout, image, symtab, types);
	types_free(types);
	symtab_free(symtab);
	return layout;
}

struct kernel_layout *kernel_layout_none(const char *why)
{
	struct kernel_layout *layout = g_new0(struct kernel_layout, 1);

	layout->tasks_why = g_strdup(why);
	return layout;
}

void kernel_layout_free(struct kernel_layout *layout)
{
	if (!layout)
		return;
	g_free(layout->tasks_why);
	g_free(layout->mappings_why);
	g_free(layout->cgroups_why);
	g_free(layout->modules_why);
	g_free(layout->list_why);
	g_free(layout);
}

struct kernel_parts *kernel_parts_load(const struct image *image, const struct image *running)
{
	struct kernel_parts *parts = g_new0(struct kernel_parts, 1);
	struct symtab *symtab = running ? symtab_load(running, NULL) : NULL;

	parts->layout = kernel_layout_load(image);
	if (processor_of_image(image)->frames->orc)
		parts->orc = orc_load(image, &parts->orc_why);
	if (symtab && parts->orc)
		parts->sites = call_sites_load(running, symtab, NULL);
	symtab_free(symtab);
	return parts;
}

void kernel_parts_free(struct kernel_parts *parts)
{
	if (!parts)
		return;
	kernel_layout_free(parts->layout);
	orc_free(parts->orc);
	g_clear_error(&parts->orc_why);
	call_sites_free(parts->sites);
	g_free(parts);
}

bool kernel_tables_open(gva_t page_tables, struct guest *guest, const struct guest_regs *regs, struct page_walk *walk)
{
	return processor_of(regs->processor)->memory->kernel_open(page_tables, guest, regs, walk);
}
