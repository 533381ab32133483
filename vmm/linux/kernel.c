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

/* Since 5.12, its address is that of its last word (arch/x86/kernel/irq_64.c); irq_count went in that release, too. */
static void interrupt_stack_find(struct os_places *places, const struct symtab *symtab, const struct types *types)
{
	places->interrupt_stack = kernel_hot_symbol(symtab, types, "hardirq_stack_ptr", "hardirq_stack_ptr").value;
	places->interrupt_stack_behind = symtab_find_name(symtab, "irq_count") ? sizeof(uint64_t) : 0;
}

/* Keeps the reason why the part is missing, if there is one. */
static void part_lacks(struct kernel_layout *layout, enum os_part part, GError **error)
{
	if (!*error)
		return;
	layout->os.why[part] = layout->texts[part] = g_strdup((*error)->message);
	g_clear_error(error);
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
	part_lacks(layout, OS_TASKS, &error);
	if (!layout->has_tasks)
		return;
	layout->has_areas = cpu_area_layout_load(symtab, types, &layout->tasks, &layout->areas, &error);
	part_lacks(layout, OS_AREAS, &error);
	layout->has_page_cache = page_cache_layout_load(image, symtab, types, &layout->page_cache, &error);
	part_lacks(layout, OS_FILES, &error);
	layout->has_inodes = layout->has_page_cache && inode_layout_load(symtab, types, &layout->inodes, &error);
	part_lacks(layout, OS_FILE_NAMES, &error);
	layout->has_locks =
		lock_layout_load(image, symtab, types, layout->os.places.stack_padding, &layout->locks, &error);
	part_lacks(layout, OS_WAITS, &error);
	layout->has_list = task_list_layout_load(symtab, types, &layout->tasks, &layout->list, &error);
	part_lacks(layout, OS_LIST, &error);
	layout->has_mappings = vma_layout_load(types, &layout->mappings, &error);
	part_lacks(layout, OS_MAPPINGS, &error);
	layout->has_cgroups = cgroup_layout_load(types, &layout->cgroups, &error);
	part_lacks(layout, OS_GROUPS, &error);
	layout->has_modules = module_layout_load(symtab, types, &layout->modules, &error);
	if (g_error_matches(error, MODULE_ERROR, MODULE_ERROR_NONE))
		g_clear_error(&error);
	part_lacks(layout, OS_MODULES, &error);
}

struct kernel_layout *kernel_layout_load(const struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load(image, &error);
	struct types *types = symtab ? types_new(image, &error) : NULL;
	struct kernel_layout *layout = kernel_layout_none(error ? error->message : NULL);
	const struct linux_processor *processor = linux_processor_of_image(image);

	if (symtab) {
		symtab_index_names(symtab);
		interrupt_stack_find(&layout->os.places, symtab, types);
		layout->os.places.stack_padding = processor->stack_padding ? processor->stack_padding(symtab) : 0;
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
