// SPDX-License-Identifier: BSD-2-Clause
#include "linux/kernel.h"

#include "linux/os_linux.h"
#include "linux/processor.h"

gva_t kernel_symbol(const struct symtab *symtab, const char *name)
{
	return (gva_t){symtab_address(symtab, name)};
}

gva_t kernel_hot_symbol(const struct symtab *symtab, const struct types *types, const char *name, const char *member)
{
	gva_t found = kernel_symbol(symtab, name), hot = kernel_symbol(symtab, "pcpu_hot");
	uint32_t offset;

	if (found.value == 0 && hot.value != 0 && types && types_has(types, "pcpu_hot", member, TYPES_PLACE, &offset))
		found.value = hot.value + offset;
	return found;
}

static void layouts_load(struct kernel_layout *layout, const struct image *image, const struct symtab *symtab,
                         const struct types *types)
{
	const struct linux_processor *processor = linux_processor_of_image(image);
	g_autoptr(GError) error = NULL;

	layout->has_tasks = task_layout_load(image, symtab, types, &layout->tasks, &error);
	layout->switch_to = kernel_symbol(symtab, "__switch_to");
	layout->set_comm = kernel_symbol(symtab, "__set_task_comm");
	layout->wake_up = kernel_symbol(symtab, "try_to_wake_up");
	processor->load(layout, symtab, types);
	if (!layout->has_tasks) {
		layout->os.why[OS_TASKS] = layout->texts[OS_TASKS] = g_strdup(error->message);
		return;
	}
	layout->has_areas = cpu_area_layout_load(symtab, types, &layout->tasks, &layout->areas);
	layout->has_page_cache = page_cache_layout_load(image, symtab, types, &layout->page_cache);
	layout->has_inodes = layout->has_page_cache && inode_layout_load(symtab, types, &layout->inodes);
	layout->has_locks = processor->futex_read && lock_layout_load(symtab, types, &layout->locks);
	layout->has_list = task_list_layout_load(symtab, types, &layout->tasks, &layout->list, &error);
	if (!layout->has_list)
		layout->os.why[OS_LIST] = layout->texts[OS_LIST] = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_mappings = vma_layout_load(types, &layout->mappings, &error);
	if (!layout->has_mappings)
		layout->os.why[OS_MAPPINGS] = layout->texts[OS_MAPPINGS] = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_cgroups = cgroup_layout_load(types, &layout->cgroups, &error);
	if (!layout->has_cgroups)
		layout->os.why[OS_GROUPS] = layout->texts[OS_GROUPS] = g_strdup(error->message);
	g_clear_error(&error);
	layout->has_modules = module_layout_load(symtab, types, &layout->modules, &error);
	if (!layout->has_modules && !g_error_matches(error, MODULE_ERROR, MODULE_ERROR_NONE))
		layout->os.why[OS_MODULES] = layout->texts[OS_MODULES] = g_strdup(error->message);
}

struct kernel_layout *kernel_layout_load(const struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load(image, &error);
	struct types *types = symtab ? types_new(image, &error) : NULL;
	struct kernel_layout *layout = kernel_layout_none(error ? error->message : NULL);

	if (symtab) {
		symtab_index_names(symtab);
		layout->os.places.interrupt_stack =
			kernel_hot_symbol(symtab, types, "hardirq_stack_ptr", "hardirq_stack_ptr").value;
	}
	if (types)
		layouts_load(layout, image, symtab, types);
	kernel_layout_settle(layout);
	types_free(types);
	symtab_free(symtab);
	return layout;
}

struct kernel_layout *kernel_layout_none(const char *why)
{
	struct kernel_layout *layout = g_new0(struct kernel_layout, 1);

	layout->os.os = &os_linux;
	layout->os.why[OS_TASKS] = layout->texts[OS_TASKS] = g_strdup(why);
	return layout;
}

void kernel_layout_free(struct kernel_layout *layout)
{
	if (!layout)
		return;
	for (unsigned i = 0; i < OS_PARTS; i++)
		g_free(layout->texts[i]);
	g_free(layout);
}
