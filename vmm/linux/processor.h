// SPDX-License-Identifier: BSD-2-Clause
/*
 * What Linux has in a way of its processor. x86/ and arm64/ each have all of it, and both are in every build (as
 * guest/processor.h has it of the machine).
 */
#ifndef VPROF_LINUX_PROCESSOR_H
#define VPROF_LINUX_PROCESSOR_H

#include "guest/os.h"
#include "linux/kernel.h"

struct linux_processor {
	/* Of the layouts, what each processor has under names of its own. Errors: TASK_ERROR, TYPES_ERROR. */
	bool (*tasks_load)(struct task_layout *layout, const struct symtab *symtab, const struct types *types,
	                   GError **error);
	void (*load)(struct kernel_layout *layout, const struct symtab *symtab, const struct types *types);
	/* The array of struct page, where a kernel has no variable for that; 0: the page cache is not found. */
	uint64_t pages;
	/* listed_task_frame */
	bool (*from_switch)(struct page_walk *memory, const struct listed_task *task, uint64_t fork_return,
	                    struct frame *frame);
	/* struct os_unwinding: entered */
	bool (*entered)(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
	                enum step *step, enum unwind_end *end);
	/* What user space had in its registers, from the struct pt_regs at `at`. */
	bool (*call_read)(struct page_walk *walk, uint64_t at, struct os_call *call);
	/* Bytes behind the struct pt_regs of user space at the end of a task's stack. NULL: none. */
	uint32_t (*stack_padding)(const struct symtab *symtab);
	/* The same of a task that is in futex(2), by where its struct pt_regs ends. NULL: not known. */
	bool (*futex_read)(struct page_walk *walk, uint64_t regs_end, struct os_call *call);
};
extern const struct linux_processor linux_x86, linux_arm64;

static inline const struct linux_processor *linux_processor_of(enum guest_processor processor)
{
	return processor == GUEST_ARM64 ? &linux_arm64 : &linux_x86;
}

/* That an image is for. */
static inline const struct linux_processor *linux_processor_of_image(const struct image *image)
{
	return image_arch(image) == ARCH_ARM64 ? &linux_arm64 : &linux_x86;
}

#endif
