// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "guest/arm64/frame_arm64.h"
#include "linux/processor.h"

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

	if (types_has(types, "thread_info", "preempt_count", TYPES_PLACE, &offset))
		layout->task_preempt_count = offset;
	layout->os.page_tables = kernel_symbol(symtab, "swapper_pg_dir");
	if (types_has(types, "pt_regs", "stackframe", TYPES_PLACE, &offset))
		layout->os.entry_record = offset;
}

/* What cpu_switch_to has saved (struct cpu_context). `fork_return`: ret_from_fork. */
static bool from_switch(struct page_walk *memory, const struct listed_task *task, uint64_t fork_return,
                        struct frame *frame)
{
	*frame = (struct frame){
		.processor = GUEST_ARM64,
		.sp = task->stack_pointer,
		.bp = task->frame_pointer,
		.return_mask = frame_return_mask(&memory->tables.arm64),
		.exact = task->pc == fork_return,
	};
	frame->ip = frame_unsigned(frame, task->pc);
	return frame->ip >> 63 != 0;
}

/* PSTATE.M (Arm ARM, C5.2.18), with the bit of 32-bit code. */
#define PSTATE_MODE 0x1fu
#define MODE_EL0 0u
#define MODE_EL1T 4u
#define MODE_EL1H 5u

/* struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h, with which struct pt_regs begins. */
struct entry_regs {
	uint64_t x[31], sp, pc, pstate;
};
#define CALL_NUMBER 8u /* of x */

/*
 * The record of an exception is in the struct pt_regs with what was interrupted: user space, and from 6.13 on the
 * kernel, too (arch/arm64/kernel/entry.S).
 */
static bool entered(const struct unwind_config *config, struct page_walk *memory, struct frame *frame, enum step *step,
                    enum unwind_end *end G_GNUC_UNUSED)
{
	struct entry_regs regs;

	if (config->entry_record == 0 ||
	    !page_walk_read(memory, (gva_t){frame->bp - config->entry_record}, &regs, sizeof(regs)))
		return false;
	const unsigned mode = regs.pstate & PSTATE_MODE;
	const bool user = mode == MODE_EL0;

	/* The first record of a thread has no registers. */
	if ((!user && mode != MODE_EL1T && mode != MODE_EL1H) || regs.pc == 0 || user != (regs.pc >> 63 == 0))
		return false;
	*frame = (struct frame){
		.processor = GUEST_ARM64,
		.ip = regs.pc,
		.sp = regs.sp,
		.bp = regs.x[29],
		.return_mask = frame->return_mask,
		.exact = true,
		.user = user,
	};
	frame->lr = frame_unsigned(frame, regs.x[30]);
	frame_registers_set(frame);
	*step = STEP_MORE;
	return true;
}

static bool call_read(struct page_walk *walk, uint64_t at, struct os_call *call)
{
	uint64_t x[CALL_NUMBER + 1];

	if (!page_walk_read(walk, (gva_t){at}, x, sizeof(x)))
		return false;
	*call = (struct os_call){.number = x[CALL_NUMBER], .result = x[0]};
	memcpy(call->arguments, x, sizeof(call->arguments));
	return true;
}

const struct linux_processor linux_arm64 = {
	.tasks_load = tasks_load,
	.load = load,
	.from_switch = from_switch,
	.entered = entered,
	.call_read = call_read,
};
