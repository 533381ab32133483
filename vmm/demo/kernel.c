// SPDX-License-Identifier: BSD-2-Clause
/* The demonstration guest's kernel: starts the other vCPUs, runs the program on each, ends when all have. */
#include "demo/console.h"
#include "demo/demo.h"
#include "demo/descriptors.h"
#include "demo/machine.h"
#include "demo/spend.h"

#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_SFMASK 0xc0000084u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define RFLAGS_CLEARED_BY_SYSCALL 0x47700u /* AC, NT, IOPL, DF, IF, TF */

#define PHASE_PORT 0x80
#define PHASE_KERNEL 0x40
#define PHASE_USER 0x60

#define SECONDS_DEFAULT 5u
#define SECONDS_MAX 86400u

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
extern uint8_t kernel_stacks[VCPUS_MAX][STACK_BYTES];
extern const uint8_t exception_stubs[EXCEPTIONS][EXCEPTION_STUB_BYTES];
void syscall_entry(void);
_Noreturn void enter_user(uint64_t rip, uint64_t rsp, uint64_t slice_ticks, uint64_t run_ticks, uint64_t seed);

static uint8_t user_stacks[VCPUS_MAX][STACK_BYTES] __attribute__((section(".user_stacks"), aligned(16)));
static struct vcpu vcpus[VCPUS_MAX];
static struct idt_gate idt[EXCEPTIONS];
static unsigned vcpus_present; /* written by vCPU 0 before it starts the others, as are the two below */
static uint64_t slice_ticks;
static uint64_t run_ticks;
static unsigned vcpus_done;
static uint64_t user_looks; /* at the clock, by all programs that are done */

_Noreturn void kernel_main(unsigned vcpu);
_Noreturn void exception(const struct exception_frame *frame);
uint64_t system_call(uint64_t argument, enum system_call number);
void tcp_checksum(uint64_t ticks);
void copy_page(uint64_t ticks);

__attribute__((noinline)) void tcp_checksum(uint64_t ticks)
{
	spend(ticks);
}

__attribute__((noinline)) void copy_page(uint64_t ticks)
{
	spend(ticks);
}

static uint64_t kernel_work(const uint8_t *order)
{
	uint64_t n = 0;

	for (; workload_in_kernel(order[n]); n++) {
		if (order[n] == TCP_CHECKSUM)
			tcp_checksum(slice_ticks);
		else
			copy_page(slice_ticks);
	}
	return n;
}

static _Noreturn void vcpu_done(uint64_t looks)
{
	__atomic_add_fetch(&user_looks, looks, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&vcpus_done, 1, __ATOMIC_ACQ_REL) == vcpus_present) {
		console_print("demo: done, ");
		console_print_number(user_looks, 10);
		console_print(" looks at the clock in user space\n");
		machine_power_off();
	}
	halt();
}

uint64_t system_call(uint64_t argument, enum system_call number)
{
	if (number == SYSTEM_CALL_DONE)
		vcpu_done(argument);
	return kernel_work((const uint8_t *)argument);
}

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

static void vcpu_set_up(unsigned vcpu)
{
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};

	vcpus[vcpu].kernel_rsp = (uint64_t)&kernel_stacks[vcpu + 1];
	tss_load(vcpu);
	__asm__ volatile("lidt %0" : : "m"(idtr));
	wrmsr(MSR_STAR, (uint64_t)USER_CS32 << 48 | (uint64_t)KERNEL_CS << 32);
	wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
	wrmsr(MSR_SFMASK, RFLAGS_CLEARED_BY_SYSCALL);
	wrmsr(MSR_KERNEL_GS_BASE, (uint64_t)&vcpus[vcpu]);
}

static void machine_set_up(void)
{
	outb(PHASE_PORT, PHASE_KERNEL);
	idt_fill();
	const uint64_t seconds = machine_option("seconds=", SECONDS_DEFAULT, SECONDS_MAX);
	const uint64_t hz = machine_tsc_hz();
	slice_ticks = hz / SLICES_A_SECOND;
	run_ticks = hz * seconds;
	struct machine_vcpus found;
	machine_vcpus_find(&found);
	vcpus_present = found.n;
	console_print("demo: ");
	console_print_number(found.n, 10);
	console_print(found.n == 1 ? " vCPU for " : " vCPUs for ");
	console_print_number(seconds, 10);
	console_print(" s: 50 % render_page, 30 % tcp_checksum, 15 % parse_request, 5 % copy_page\n");
	machine_vcpus_start(&found);
	outb(PHASE_PORT, PHASE_USER);
}

void kernel_main(unsigned vcpu)
{
	vcpu_set_up(vcpu);
	if (vcpu == 0)
		machine_set_up();
	enter_user((uint64_t)user_main, (uint64_t)&user_stacks[vcpu + 1], slice_ticks, run_ticks, vcpu);
}
