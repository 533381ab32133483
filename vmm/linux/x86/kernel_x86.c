// SPDX-License-Identifier: BSD-2-Clause
#include "linux/x86/entry_regs.h"
#include "linux/x86/linux_x86.h"

/* __VMEMMAP_BASE_L4 of asm/pgtable_64_types.h: where KASLR does not move it. */
#define PAGES_4_LEVELS UINT64_C(0xffffea0000000000)

static bool tasks_load(struct task_layout *layout, const struct symtab *symtab, const struct types *types,
                       GError **error)
{
	const struct symbol *area = symtab_find_name(symtab, "this_cpu_off");
	const struct symbol *current_task = symtab_find_name(symtab, "current_task");
	const struct symbol *hot = !current_task ? symtab_find_name(symtab, "pcpu_hot") : NULL;
	uint32_t offset = 0;

	if (!area || (!current_task && !hot)) {
		g_set_error(
			error, TASK_ERROR, TASK_ERROR_NONE,
			"the kernel has no symbols this_cpu_off and current_task or pcpu_hot; it needs CONFIG_SMP, and CONFIG_KALLSYMS_ALL if the image is stripped");
		return false;
	}
	if (hot && !types_find(types, &(struct types_member){"pcpu_hot", "current_task", 8, &offset}, 1, error))
		return false;
	layout->this_cpu_off = area->address;
	layout->current_task = (hot ? hot->address : current_task->address) + offset;
	return true;
}

static void load(struct kernel_layout *layout, const struct symtab *symtab, const struct types *types)
{
	layout->preempt_count = kernel_hot_symbol(symtab, types, "__preempt_count", "preempt_count");
	layout->os.page_tables = kernel_symbol(symtab, "init_top_pgt");
}

/* TOP_OF_KERNEL_STACK_PADDING of asm/thread_info.h, with CONFIG_X86_FRED (since 6.9). */
static uint32_t stack_padding(const struct symtab *symtab)
{
	return symtab_find_name(symtab, "asm_fred_entrypoint_user") ? LINUX_X86_FRED_PADDING : 0;
}

const struct linux_processor linux_x86 = {
	.tasks_load = tasks_load,
	.load = load,
	.pages = PAGES_4_LEVELS,
	.from_switch = linux_x86_from_switch,
	.entered = linux_x86_entered,
	.call_read = linux_x86_call_read,
	.stack_padding = stack_padding,
	.futex_read = linux_x86_futex_read,
};
