// SPDX-License-Identifier: BSD-2-Clause
#include "guest/x86/frame_x86.h"

#include <stddef.h>

#include "guest/processor.h"
#include "lib/symbol/x86/cfi_x86.h"

/* struct pt_regs of x86-64 (arch/x86/include/asm/ptrace.h), as the kernel saves it on its stacks. */
struct kernel_pt_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	uint64_t ip, cs, flags, sp, ss; /* pushed by the processor */
};

#define PT_REGS_HARDWARE_OFFSET offsetof(struct kernel_pt_regs, ip)
#define CS_RPL_MASK 3u

#define ALL_KNOWN ((1u << CFI_REGISTERS) - 1)
/* Without the others: by frame pointers, and by rules that name no others. */
#define FEW_KNOWN (1u << CFI_RIP | 1u << CFI_RSP | 1u << CFI_RBP)

/* Each member by itself: to clear them all first takes longer than that. */
void frame_from_registers(const struct guest_regs *regs, struct frame *frame)
{
	frame->ip = frame->registers[CFI_RIP] = regs->rip;
	frame->sp = frame->registers[CFI_RSP] = regs->rsp;
	frame->bp = frame->registers[CFI_RBP] = regs->rbp;
	frame->registers[CFI_RAX] = regs->rax;
	frame->registers[CFI_RDX] = regs->rdx;
	frame->registers[CFI_RCX] = regs->rcx;
	frame->registers[CFI_RBX] = regs->rbx;
	frame->registers[CFI_RSI] = regs->rsi;
	frame->registers[CFI_RDI] = regs->rdi;
	frame->registers[CFI_R8] = regs->r8;
	frame->registers[CFI_R9] = regs->r9;
	frame->registers[CFI_R10] = regs->r10;
	frame->registers[CFI_R11] = regs->r11;
	frame->registers[CFI_R12] = regs->r12;
	frame->registers[CFI_R13] = regs->r13;
	frame->registers[CFI_R14] = regs->r14;
	frame->registers[CFI_R15] = regs->r15;
	frame->known = regs->all ? ALL_KNOWN : FEW_KNOWN;
	frame->callee = frame->pushed = frame->lr = frame->return_mask = 0;
	frame->scratch = frame->exact = true;
	frame->user = regs->cpl == 3;
	frame->processor = regs->processor;
}

void frame_return(struct frame *frame, uint64_t ip, uint64_t sp, uint64_t bp)
{
	frame->callee = frame->ip;
	frame->pushed = 0;
	frame->ip = ip;
	frame->sp = sp;
	frame->bp = bp;
	frame->scratch = false;
	frame->exact = false;
}

static void frame_from_hardware(const struct kernel_pt_regs *regs, uint64_t at, struct frame *frame)
{
	frame->pushed = at;
	frame->callee = 0;
	frame->ip = regs->ip;
	frame->sp = regs->sp;
	frame->exact = true;
	frame->registers[CFI_RIP] = regs->ip;
	frame->registers[CFI_RSP] = regs->sp;
	frame->user = (regs->cs & CS_RPL_MASK) == 3;
}

bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct kernel_pt_regs regs;

	if (!page_walk_read(memory, (gva_t){at}, &regs, sizeof(regs)))
		return false;
	frame_from_hardware(&regs, at + PT_REGS_HARDWARE_OFFSET, frame);
	frame->bp = regs.bp;
	frame->scratch = true;
	frame->registers[CFI_RAX] = regs.ax;
	frame->registers[CFI_RDX] = regs.dx;
	frame->registers[CFI_RCX] = regs.cx;
	frame->registers[CFI_RBX] = regs.bx;
	frame->registers[CFI_RSI] = regs.si;
	frame->registers[CFI_RDI] = regs.di;
	frame->registers[CFI_RBP] = regs.bp;
	frame->registers[CFI_R8] = regs.r8;
	frame->registers[CFI_R9] = regs.r9;
	frame->registers[CFI_R10] = regs.r10;
	frame->registers[CFI_R11] = regs.r11;
	frame->registers[CFI_R12] = regs.r12;
	frame->registers[CFI_R13] = regs.r13;
	frame->registers[CFI_R14] = regs.r14;
	frame->registers[CFI_R15] = regs.r15;
	frame->known = ALL_KNOWN;
	return true;
}

bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct kernel_pt_regs regs;

	if (!page_walk_read(memory, (gva_t){at}, &regs.ip, sizeof(regs) - PT_REGS_HARDWARE_OFFSET))
		return false;
	frame_from_hardware(&regs, at, frame);
	/* The entry code saves registers before it uses them. */
	frame->known = (frame->scratch ? frame->known : 0) | FEW_KNOWN;
	frame->scratch = false;
	return true;
}

/* struct inactive_task_frame of x86-64 (arch/x86/include/asm/switch_to.h). */
struct switch_frame {
	uint64_t r15, r14, r13, r12, bx, bp, ip;
};

/* What __switch_to_asm has left at the saved stack pointer. `fork_return`: ret_from_fork_asm. */
static bool from_switch(struct page_walk *memory, const struct listed_task *task, uint64_t fork_return,
                        struct frame *frame)
{
	struct switch_frame saved;

	if (!page_walk_read_kernel(memory, (gva_t){task->stack_pointer}, &saved, sizeof(saved)) || saved.ip >> 63 == 0)
		return false;
	*frame = (struct frame){
		.ip = saved.ip,
		.sp = task->stack_pointer + sizeof(saved),
		.bp = saved.bp,
		.exact = saved.ip == fork_return,
	};
	return true;
}

static struct guest_regs registers(const struct frame *frame, const struct page_walk *memory)
{
	return (struct guest_regs){.rip = frame->ip,
	                           .rsp = frame->sp,
	                           .rbp = frame->bp,
	                           .cr3 = memory->tables.cr3,
	                           .la57 = memory->tables.la57,
	                           .valid = true};
}

static enum step kernel_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                             enum unwind_end *end)
{
	return config->orc ? unwind_orc_step(config->orc, config->modules, memory, frame, end)
	                   : unwind_frame_pointer_step(memory, frame, end);
}

static bool leave(struct guest *guest, struct guest_regs *regs)
{
	struct page_walk walk;
	uint64_t ip;

	page_walk_init_regs(&walk, guest, regs);
	if (!page_walk_read(&walk, (gva_t){regs->rsp}, &ip, sizeof(ip)))
		return false;
	regs->rip = ip;
	regs->rsp += sizeof(ip);
	return true;
}

const struct processor_frames frames_x86 = {
	.cfi = &cfi_x86_64,
	.orc = true,
	.from_registers = frame_from_registers,
	.registers = registers,
	.kernel_step = kernel_step,
	.user_step = unwind_start_step,
	.leave = leave,
	.from_switch = from_switch,
};
