// SPDX-License-Identifier: BSD-2-Clause
#include "guest/x86/frame_x86.h"

#include "guest/processor.h"
#include "lib/symbol/x86/cfi_x86.h"

#define CS_RPL_MASK 3u

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
	frame->known = regs->all ? FRAME_ALL_KNOWN : FEW_KNOWN;
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

void frame_from_pushed(const struct frame_pushed *pushed, uint64_t at, struct frame *frame)
{
	frame->pushed = at;
	frame->callee = 0;
	frame->ip = pushed->ip;
	frame->sp = pushed->sp;
	frame->exact = true;
	frame->registers[CFI_RIP] = pushed->ip;
	frame->registers[CFI_RSP] = pushed->sp;
	frame->user = (pushed->cs & CS_RPL_MASK) == 3;
}

bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct frame_pushed pushed;

	if (!page_walk_read(memory, (gva_t){at}, &pushed, sizeof(pushed)))
		return false;
	frame_from_pushed(&pushed, at, frame);
	/* The entry code saves registers before it uses them. */
	frame->known = (frame->scratch ? frame->known : 0) | FEW_KNOWN;
	frame->scratch = false;
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
	return config->tables ? config->system->step(config, memory, frame, end)
	                      : unwind_frame_pointer_step(config, memory, frame, end);
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
	.from_registers = frame_from_registers,
	.registers = registers,
	.kernel_step = kernel_step,
	.user_step = unwind_start_step,
	.leave = leave,
};
