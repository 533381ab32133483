// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

static bool tasks_load(struct task_layout *layout, const struct symtab *symtab, const struct types *types G_GNUC_UNUSED,
                       GError **error)
{
	layout->current_task = symtab_address(symtab, "__entry_task");
	layout->offsets = symtab_address(symtab, "__per_cpu_offset");
	layout->kernel_tables = symtab_address(symtab, "swapper_pg_dir");
	if (layout->current_task != 0 && layout->offsets != 0)
		return true;
	g_set_error(
		error, TASK_ERROR, TASK_ERROR_NONE,
		"the kernel has no symbols __entry_task and __per_cpu_offset; it needs CONFIG_SMP, and CONFIG_KALLSYMS_ALL if the image is stripped");
	return false;
}

static void load(struct kernel_layout *layout, const struct symtab *symtab, const struct types *types)
{
	uint32_t offset;

	if (types_has(types, "thread_info", "preempt_count", &offset))
		layout->task_preempt_count = offset;
	layout->page_tables = kernel_symbol(symtab, "swapper_pg_dir");
	if (types_has(types, "pt_regs", "stackframe", &offset))
		layout->entry_record = offset;
}

const struct processor_kernel kernel_arm64 = {.tasks_load = tasks_load, .load = load};
