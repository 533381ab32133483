// SPDX-License-Identifier: BSD-2-Clause
#include "guest/kernel.h"

static gva_t symbol_find(const struct symtab *symtab, const char *name)
{
	return (gva_t){symtab_address(symtab, name)};
}

/* A per-CPU variable; from 6.2 to 6.14 a member of pcpu_hot. */
static gva_t hot_find(const struct symtab *symtab, const struct types *types, const char *name, const char *member)
{
	gva_t found = symbol_find(symtab, name), hot = symbol_find(symtab, "pcpu_hot");
	uint32_t offset;

	if (found.value == 0 && hot.value != 0 && types && types_has(types, "pcpu_hot", member, &offset))
		found.value = hot.value + offset;
	return found;
}

static void layouts_load(struct kernel_layout *layout, const struct image *image, const struct symtab *symtab,
                         const struct types *types)
{
	g_autoptr(GError) error = NULL;
	uint32_t offset;

	layout->has_tasks = task_layout_load(image, symtab, types, &layout->tasks, &error);
	layout->switch_to = symbol_find(symtab, "__switch_to");
	layout->wake_up = symbol_find(symtab, "try_to_wake_up");
	if (image_arch(image) == ARCH_X86_64)
		layout->preempt_count = hot_find(symtab, types, "__preempt_count", "preempt_count");
	else if (types_has(types, "thread_info", "preempt_count", &offset))
		layout->task_preempt_count = offset;
	layout->page_tables = symbol_find(symtab, image_arch(image) == ARCH_ARM64 ? "swapper_pg_dir" : "init_top_pgt");
	if (image_arch(image) == ARCH_ARM64 && types_has(types, "pt_regs", "stackframe", &offset))
		layout->entry_record = offset;
	if (!layout->has_tasks) {
		layout->tasks_why = g_strdup(error->message);
		return;
	}
	layout->has_areas = cpu_area_layout_load(symtab, types, &layout->tasks, &layout->areas);
	layout->has_page_cache = page_cache_layout_load(image, symtab, types, &layout->page_cache);
	layout->has_inodes = layout->has_page_cache && inode_layout_load(symtab, types, &layout->inodes);
	layout->has_locks = image_arch(image) == ARCH_X86_64 && lock_layout_load(symtab, types, &layout->locks);
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

	if (symtab)
		layout->interrupt_stack = hot_find(symtab, types, "hardirq_stack_ptr", "hardirq_stack_ptr");
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

/* Page tables that are no longer in use may lead anywhere; the kernel's map themselves. */
static bool tables_lead(gva_t page_tables, struct guest *guest, uint64_t cr3, bool la57, struct page_walk *walk)
{
	gpa_t tables, again;

	page_walk_init(walk, guest, cr3, la57);
	if (!page_walk_translate(walk, page_tables, &tables))
		return false;
	page_walk_init(walk, guest, tables.value, la57);
	return page_walk_translate(walk, page_tables, &again) && again.value == tables.value;
}

bool kernel_tables_open(gva_t page_tables, struct guest *guest, const struct guest_regs *regs, struct page_walk *walk)
{
	gpa_t tables;

	/* The kernel's half has tables of its own, which are the same in all processes. */
	if (regs->processor == GUEST_ARM64) {
		page_walk_init_regs(walk, guest, regs);
		return page_tables.value != 0 && page_walk_translate(walk, page_tables, &tables);
	}
	return page_tables.value != 0 &&
	       (tables_lead(page_tables, guest, regs->cr3, regs->la57, walk) ||
	        ((regs->cr3 & CR3_USER_TABLES) &&
	         tables_lead(page_tables, guest, regs->cr3 & ~CR3_USER_TABLES, regs->la57, walk)));
}
