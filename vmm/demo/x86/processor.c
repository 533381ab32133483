// SPDX-License-Identifier: BSD-2-Clause
/* Descriptor tables, exceptions, and the way into the kernel. */
#include "demo/console.h"
#include "demo/machine.h"
#include "demo/x86/descriptors.h"
#include "demo/x86/layout.h"

#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_SFMASK 0xc0000084u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define RFLAGS_CLEARED_BY_SYSCALL 0x47700u /* AC, NT, IOPL, DF, IF, TF */

struct vcpu {
	uint64_t kernel_rsp;
	uint64_t user_rsp;
	struct tss tss;
};
_Static_assert(__builtin_offsetof(struct vcpu, kernel_rsp) == VCPU_KERNEL_RSP, "start.S");
_Static_assert(__builtin_offsetof(struct vcpu, user_rsp) == VCPU_USER_RSP, "start.S");

/* What the processor and the stubs leave on the stack. */
struct exception_frame {
	uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

/* start.S */
extern uint64_t gdt[];
extern const uint8_t exception_stubs[EXCEPTIONS][EXCEPTION_STUB_BYTES];
void syscall_entry(void);

static struct vcpu vcpus[VCPUS_MAX];
static struct idt_gate idt[EXCEPTIONS];

_Noreturn void exception(const struct exception_frame *frame);

void exception(const struct exception_frame *frame)
{
	console_print("demo: exception ");
	console_print_number(frame->vector, 10);
	console_print(", error ");
	console_print_number(frame->error, 16);
	console_print(" at ");
	console_print_number(frame->rip, 16);
	console_print("\n");
	machine_fail();
}

static void idt_fill(void)
{
	for (unsigned vector = 0; vector < EXCEPTIONS; vector++)
		idt[vector] = idt_gate_to(exception_stubs[vector], KERNEL_CS);
}

static void tss_load(unsigned vcpu)
{
	const unsigned selector = TSS_SELECTOR + 16 * vcpu;

	vcpus[vcpu].tss.rsp0 = vcpus[vcpu].kernel_rsp;
	tss_describe(&gdt[selector / 8], &vcpus[vcpu].tss);
	__asm__ volatile("ltr %w0" : : "r"(selector) : "memory");
}

/* The first one has the table filled before it starts the others. */
void processor_set_up(unsigned vcpu, void *stack_end)
{
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};

	if (vcpu == 0)
		idt_fill();
	vcpus[vcpu].kernel_rsp = (uint64_t)stack_end;
	tss_load(vcpu);
	__asm__ volatile("lidt %0" : : "m"(idtr));
	wrmsr(MSR_STAR, (uint64_t)USER_CS32 << 48 | (uint64_t)KERNEL_CS << 32);
	wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
	wrmsr(MSR_SFMASK, RFLAGS_CLEARED_BY_SYSCALL);
	wrmsr(MSR_KERNEL_GS_BASE, (uint64_t)&vcpus[vcpu]);
}
