// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs every register of an architectural PMU (SDM vol. 3B, chapter 20), provokes the #GP of each reserved bit, and
 * takes overflow interrupts as a vector and as an NMI, in the kernel and in user mode. Ends with the exit port: 1 when
 * everything was as the SDM says, else the number of the check that failed first.
 */
#include <stdbool.h>

#include "demo/x86/descriptors.h"
#include "guests/apic.h"
#include "guests/guest.h"

#define KERNEL_CS 0x10u
#define USER_DS 0x2bu
#define USER_CS 0x33u
#define TSS_SELECTOR 0x40u
#define RFLAGS_IF 0x200u
#define VECTOR_NMI 2u
#define VECTOR_GP 13u
#define VECTOR_PMI 0x40u
#define VECTORS 0x41u
#define STACK_BYTES 8192u

/* Local APIC (SDM vol. 3A, 11.5.1). */
#define APIC_LVTPC 0x340u
#define LVT_NMI 0x400u
#define LVT_MASKED 0x10000u

#define PMC0 0xc1u
#define PERFEVTSEL0 0x186u
#define DEBUGCTL 0x1d9u
#define FIXED_CTR0 0x309u
#define FIXED_CTR_CTRL 0x38du
#define GLOBAL_STATUS 0x38eu
#define GLOBAL_CTRL 0x38fu
#define GLOBAL_OVF_CTRL 0x390u
#define FREEZE_ON_PMI (UINT64_C(1) << 12)

#define CYCLES 0x3cu
#define INSTRUCTIONS 0xc0u
#define SELECT_USER (1u << 16)
#define SELECT_KERNEL (1u << 17)
#define SELECT_INTERRUPT (1u << 20)
#define SELECT_ENABLE (1u << 22)
#define WIDTH_MASK ((UINT64_C(1) << 48) - 1)
#define FIXED_1 (UINT64_C(1) << 33)
#define FIXED_2 (UINT64_C(1) << 34)

#define PERIOD UINT64_C(5000000)  /* cycles: a few milliseconds */
#define PATIENCE (PERIOD * 20000) /* of the TSC; on a busy host much of it is not ours */
#define SERIES 20u

/* Overflows that come faster than they are handled. A step is the same loop in the handler and outside. */
#define STORM_PERIOD UINT64_C(10000)
#define STORM_STEPS 50000u
#define STORM_HANDLER_STEPS 500u

#define USER_GVA UINT64_C(0x8000000000)
#define USER_STACK_GVA (USER_GVA + 0x1000)
#define PTE_USER UINT64_C(0x7)

enum check {
	PASSED = 1,
	CPUID_LEAF,
	READ_BACK,
	SIGN_EXTENSION,
	RESERVED_BITS,
	READ_ONLY,
	RDPMC_VALUE,
	STOPPED_COUNTS,
	ABSENT_COUNTS,
	NO_INTERRUPT,
	WRONG_VECTOR,
	WRONG_MODE,
	STATUS_NOT_SET,
	STATUS_NOT_CLEARED,
	NOT_WRAPPED,
	NOT_FROZEN,
	MASKED_CAME,
	MODES_MIXED,
	STARVED,
	UNEXPECTED,
};

struct frame {
	uint64_t rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11;
	uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

extern const uint8_t stub_nmi[], stub_gp[], stub_pmi[], user_code[], user_code_end[], after_user[];
void run_user(uint64_t rip, uint64_t rsp);
void event(struct frame *frame);

uint8_t kernel_stack[STACK_BYTES] __attribute__((aligned(16)));
uint64_t resume_rsp; /* where run_user was called */
static uint64_t gdt[10] = {0,
                           0,
                           UINT64_C(0x00af9b000000ffff),
                           UINT64_C(0x00cf93000000ffff),
                           0,
                           UINT64_C(0x00cff3000000ffff),
                           UINT64_C(0x00affb000000ffff)};
static struct idt_gate idt[VECTORS];
static struct tss tss;
static uint64_t pages[3][512] __attribute__((aligned(4096)));
static uint8_t user_pages[2][4096] __attribute__((aligned(4096)));

/* What the handlers saw. */
static volatile unsigned interrupts, faults;
static volatile uint64_t last_vector, last_cs, last_status, last_control;
static volatile bool acknowledge = true, leave_user, storm;
static volatile uint64_t storm_steps; /* that the handlers took */

/* The user's loop is left by an interrupt that goes on at after_user instead, on the kernel's stack. */
__asm__(".globl stub_nmi, stub_gp, stub_pmi, run_user, after_user, user_code, user_code_end\n"
        "stub_nmi: pushq $0; pushq $2; jmp common\n"
        "stub_gp: pushq $13; jmp common\n"
        "stub_pmi: pushq $0; pushq $0x40\n"
        "common: push %r11; push %r10; push %r9; push %r8; push %rdi; push %rsi; push %rdx; push %rcx; push %rax\n"
        "	mov %rsp, %rdi\n"
        "	cld\n"
        "	call event\n"
        "	pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %r8; pop %r9; pop %r10; pop %r11\n"
        "	add $16, %rsp\n"
        "	iretq\n"
        "run_user:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, resume_rsp(%rip)\n"
        "	pushq $0x2b; push %rsi; pushq $0x202; pushq $0x33; push %rdi; iretq\n"
        "after_user:\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"
        "user_code: mov $2000, %ecx\n"
        "1:	dec %ecx; jnz 1b\n"
        "	jmp user_code\n"
        "user_code_end:\n");

static _Noreturn void end(enum check check, uint64_t detail)
{
	console_print("pmu: check ");
	console_print_number(check, 10);
	console_print(", value 0x");
	console_print_number(detail, 16);
	console_print("\n");
	outb(EXIT_PORT, (uint8_t)check);
	halt();
	__builtin_unreachable();
}

static void check(bool holds, enum check which, uint64_t detail)
{
	if (!holds)
		end(which, detail);
}

static void steps(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		;
}

static void on_storm(void)
{
	wrmsr(PMC0, -STORM_PERIOD);
	steps(STORM_HANDLER_STEPS);
	storm_steps += STORM_HANDLER_STEPS;
}

static void on_overflow(struct frame *frame)
{
	interrupts++;
	last_vector = frame->vector;
	last_cs = frame->cs;
	last_control = rdmsr(GLOBAL_CTRL);
	last_status = rdmsr(GLOBAL_STATUS);
	if (acknowledge) {
		wrmsr(GLOBAL_OVF_CTRL, last_status);
		APIC(APIC_LVTPC) &= ~LVT_MASKED;
	}
	if (storm)
		on_storm();
	if (frame->vector == VECTOR_PMI)
		APIC(APIC_EOI) = 0;
	if (frame->cs == USER_CS && leave_user) {
		frame->rip = (uint64_t)after_user;
		frame->cs = KERNEL_CS;
		frame->ss = 0x18;
		frame->rsp = resume_rsp;
		frame->rflags &= ~(uint64_t)RFLAGS_IF;
	}
}

void event(struct frame *frame)
{
	switch (frame->vector) {
	case VECTOR_GP: /* a WRMSR or RDMSR, of two bytes both */
		faults++;
		frame->rip += 2;
		break;
	case VECTOR_NMI:
	case VECTOR_PMI:
		on_overflow(frame);
		break;
	default:
		end(UNEXPECTED, frame->vector);
	}
}

static void tables_load(void)
{
	tss.rsp0 = (uint64_t)(kernel_stack + STACK_BYTES);
	tss_describe(&gdt[TSS_SELECTOR / 8], &tss);
	const struct table_pointer gdtr = {.limit = sizeof gdt - 1, .base = (uint64_t)gdt};
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};
	idt[VECTOR_NMI] = idt_gate_to(stub_nmi, KERNEL_CS);
	idt[VECTOR_GP] = idt_gate_to(stub_gp, KERNEL_CS);
	idt[VECTOR_PMI] = idt_gate_to(stub_pmi, KERNEL_CS);
	__asm__ volatile("lgdt %0; lidt %1; ltr %w2" : : "m"(gdtr), "m"(idtr), "r"(TSS_SELECTOR) : "memory");
}

static void user_map(void)
{
	uint64_t *pml4;

	__asm__ volatile("mov %%cr3, %0" : "=r"(pml4));
	pml4[1] = (uint64_t)pages[0] | PTE_USER;
	pages[0][0] = (uint64_t)pages[1] | PTE_USER;
	pages[1][0] = (uint64_t)pages[2] | PTE_USER;
	pages[2][0] = (uint64_t)user_pages[0] | PTE_USER;
	pages[2][1] = (uint64_t)user_pages[1] | PTE_USER;
	for (unsigned i = 0; user_code + i < user_code_end; i++)
		user_pages[0][i] = user_code[i];
}

/* As Linux has it, since the loader looks for these bytes. */
static uint64_t rdpmc(uint32_t index)
{
	uint64_t low, high;

	__asm__ volatile("rdpmc; shl $32, %1" : "=a"(low), "=d"(high) : "c"(index));
	return high | low;
}

static void registers_stop(void)
{
	wrmsr(GLOBAL_CTRL, 0);
	for (unsigned i = 0; i < 4; i++)
		wrmsr(PERFEVTSEL0 + i, 0);
	wrmsr(FIXED_CTR_CTRL, 0);
	wrmsr(GLOBAL_OVF_CTRL, rdmsr(GLOBAL_STATUS));
	wrmsr(DEBUGCTL, 0);
	interrupts = 0;
}

static void read_back(uint32_t msr, uint64_t value)
{
	wrmsr(msr, value);
	check(rdmsr(msr) == value, READ_BACK, msr);
}

static void faults_with(uint32_t msr, uint64_t value)
{
	const uint64_t before = rdmsr(msr);
	const unsigned had = faults;

	wrmsr(msr, value);
	check(faults == had + 1, RESERVED_BITS, msr);
	check(rdmsr(msr) == before, RESERVED_BITS, msr);
}

static void check_registers(void)
{
	const struct cpuid leaf = cpuid(0xa);

	check(leaf.eax == 0x07300402, CPUID_LEAF, leaf.eax);
	check((leaf.ebx & 5) == 0, CPUID_LEAF, leaf.ebx); /* cycles and reference cycles */
	check(leaf.edx == 0x603, CPUID_LEAF, leaf.edx);
	check(rdmsr(GLOBAL_CTRL) == 0xf, READ_BACK, GLOBAL_CTRL); /* after power-up */
	registers_stop();
	for (unsigned i = 0; i < 4; i++) {
		read_back(PERFEVTSEL0 + i, 0xff9fffffu & ~SELECT_ENABLE);
		faults_with(PERFEVTSEL0 + i, UINT64_C(1) << 32);
		faults_with(PERFEVTSEL0 + i, 1u << 21);
		read_back(PERFEVTSEL0 + i, 0);
		read_back(PMC0 + i, 0x12345678 + i);
		wrmsr(PMC0 + i, 0x80000000u + i);
		check(rdmsr(PMC0 + i) == (0xffff80000000u + i), SIGN_EXTENSION, rdmsr(PMC0 + i));
	}
	for (unsigned i = 0; i < 3; i++) {
		read_back(FIXED_CTR0 + i, WIDTH_MASK - i);
		faults_with(FIXED_CTR0 + i, UINT64_C(1) << 48);
	}
	read_back(FIXED_CTR_CTRL, 0xbbb);
	faults_with(FIXED_CTR_CTRL, 0x4);
	faults_with(FIXED_CTR_CTRL, 0x1000);
	read_back(FIXED_CTR_CTRL, 0);
	read_back(GLOBAL_CTRL, UINT64_C(0x70000000f));
	faults_with(GLOBAL_CTRL, 0x10);
	faults_with(GLOBAL_CTRL, UINT64_C(1) << 35);
	faults_with(GLOBAL_OVF_CTRL, 0x10);
	faults_with(GLOBAL_STATUS, 0);
	check(rdmsr(GLOBAL_OVF_CTRL) == 0, READ_ONLY, rdmsr(GLOBAL_OVF_CTRL));
	read_back(DEBUGCTL, FREEZE_ON_PMI);
	faults_with(DEBUGCTL, UINT64_C(1) << 63);
	faults_with(DEBUGCTL, 1u << 6); /* trace messages */
	registers_stop();
}

static void spin_until(unsigned wanted)
{
	const uint64_t begin = rdtsc();

	while (interrupts < wanted && rdtsc() - begin < PATIENCE)
		cpu_relax();
}

static void spin_for(uint64_t cycles)
{
	const uint64_t begin = rdtsc();

	while (rdtsc() - begin < cycles)
		cpu_relax();
}

/* Counters that stand, events that are not there, RDPMC beside RDMSR. */
static void check_counting(void)
{
	wrmsr(PMC0 + 1, 0);
	wrmsr(PERFEVTSEL0 + 1, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_ENABLE);
	spin_for(PERIOD);
	check(rdmsr(PMC0 + 1) == 0, STOPPED_COUNTS, rdmsr(PMC0 + 1)); /* not enabled globally */
	const uint64_t begin = rdtsc();
	wrmsr(GLOBAL_CTRL, 2);
	while (rdmsr(PMC0 + 1) < PERIOD && rdtsc() - begin < PATIENCE)
		cpu_relax();
	wrmsr(GLOBAL_CTRL, 0);
	const uint64_t counted = rdmsr(PMC0 + 1);
	check(counted >= PERIOD && counted <= rdtsc() - begin, STOPPED_COUNTS, counted);
	check(rdpmc(1) == counted, RDPMC_VALUE, counted);
	wrmsr(FIXED_CTR0 + 2, WIDTH_MASK - 4);
	check(rdpmc(0x40000002) == WIDTH_MASK - 4, RDPMC_VALUE, 2);
	if (cpuid(0xa).ebx & 2) {
		wrmsr(PMC0, 0);
		wrmsr(PERFEVTSEL0, INSTRUCTIONS | SELECT_KERNEL | SELECT_USER | SELECT_ENABLE);
		wrmsr(GLOBAL_CTRL, 1);
		spin_for(PERIOD);
		check(rdmsr(PMC0) == 0, ABSENT_COUNTS, rdmsr(PMC0));
	}
	registers_stop();
}

static void check_overflow(uint64_t vector, uint64_t cs, uint64_t status)
{
	check(interrupts >= 1, NO_INTERRUPT, status);
	check(last_vector == vector, WRONG_VECTOR, last_vector);
	check(last_cs == cs, WRONG_MODE, last_cs);
	check(last_status == status, STATUS_NOT_SET, last_status);
	check(rdmsr(GLOBAL_STATUS) == 0, STATUS_NOT_CLEARED, rdmsr(GLOBAL_STATUS));
}

/* A general counter and a vector. */
static void check_vector(void)
{
	APIC(APIC_LVTPC) = VECTOR_PMI;
	wrmsr(PMC0 + 3, -PERIOD);
	wrmsr(PERFEVTSEL0 + 3, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_INTERRUPT | SELECT_ENABLE);
	wrmsr(GLOBAL_CTRL, 8);
	__asm__ volatile("sti");
	spin_until(1);
	__asm__ volatile("cli");
	wrmsr(GLOBAL_CTRL, 0);
	check_overflow(VECTOR_PMI, KERNEL_CS, 8);
	check(rdmsr(PMC0 + 3) < WIDTH_MASK / 2, NOT_WRAPPED, rdmsr(PMC0 + 3));
	registers_stop();
}

/* A fixed counter, an NMI with interrupts off, and the freeze. */
static void check_nmi(void)
{
	APIC(APIC_LVTPC) = LVT_NMI;
	wrmsr(DEBUGCTL, FREEZE_ON_PMI);
	wrmsr(FIXED_CTR0 + 1, WIDTH_MASK + 1 - PERIOD);
	wrmsr(FIXED_CTR_CTRL, 0xb0);
	wrmsr(GLOBAL_CTRL, FIXED_1);
	spin_until(1);
	check_overflow(VECTOR_NMI, KERNEL_CS, FIXED_1);
	check(last_control == 0, NOT_FROZEN, last_control);
	const uint64_t frozen = rdmsr(FIXED_CTR0 + 1);
	spin_for(PERIOD);
	check(rdmsr(FIXED_CTR0 + 1) == frozen, NOT_FROZEN, frozen);
	registers_stop();
}

/* No interrupt comes through a masked entry, nor, before the first is acknowledged, a second one. */
static void check_masks(void)
{
	APIC(APIC_LVTPC) = LVT_NMI | LVT_MASKED;
	wrmsr(FIXED_CTR0 + 1, WIDTH_MASK + 1 - PERIOD);
	wrmsr(FIXED_CTR_CTRL, 0xb0);
	wrmsr(GLOBAL_CTRL, FIXED_1);
	spin_for(PERIOD);
	while (rdmsr(GLOBAL_STATUS) == 0)
		cpu_relax();
	check(interrupts == 0, MASKED_CAME, interrupts);
	registers_stop();

	acknowledge = false;
	APIC(APIC_LVTPC) = LVT_NMI;
	wrmsr(PMC0, -PERIOD);
	wrmsr(FIXED_CTR0 + 1, WIDTH_MASK + 1 - 2 * PERIOD);
	wrmsr(FIXED_CTR_CTRL, 0xb0);
	wrmsr(PERFEVTSEL0, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_INTERRUPT | SELECT_ENABLE);
	wrmsr(GLOBAL_CTRL, FIXED_1 | 1);
	while (rdmsr(GLOBAL_STATUS) != (FIXED_1 | 1))
		cpu_relax();
	check(interrupts == 1, MASKED_CAME, interrupts);
	acknowledge = true;
	registers_stop();
}

/* User mode: interrupts leave it, and a counter of one mode does not count the other. */
static void check_user(void)
{
	APIC(APIC_LVTPC) = VECTOR_PMI;
	leave_user = true;
	wrmsr(FIXED_CTR0 + 1, 0);
	wrmsr(FIXED_CTR0 + 2, WIDTH_MASK + 1 - 8 * PERIOD);
	wrmsr(FIXED_CTR_CTRL, 0xa10); /* cycles in the kernel, reference cycles and their interrupt in user mode */
	wrmsr(GLOBAL_CTRL, FIXED_1 | FIXED_2);
	run_user(USER_GVA, USER_STACK_GVA + 4096);
	wrmsr(GLOBAL_CTRL, 0);
	check_overflow(VECTOR_PMI, USER_CS, FIXED_2);
	check(rdmsr(FIXED_CTR0 + 1) < 4 * PERIOD, MODES_MIXED, rdmsr(FIXED_CTR0 + 1));
	registers_stop();

	APIC(APIC_LVTPC) = LVT_NMI;
	wrmsr(PMC0 + 2, -PERIOD);
	wrmsr(PERFEVTSEL0 + 2, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_INTERRUPT | SELECT_ENABLE);
	wrmsr(GLOBAL_CTRL, 4);
	run_user(USER_GVA, USER_STACK_GVA + 4096);
	wrmsr(GLOBAL_CTRL, 0);
	check_overflow(VECTOR_NMI, USER_CS, 4);
	registers_stop();
}

/* Overflow after overflow without touching the counter: how far apart they are, for the reader. */
static void series(void)
{
	APIC(APIC_LVTPC) = LVT_NMI;
	uint64_t least = PATIENCE;
	for (unsigned i = 0; i < SERIES; i++) {
		interrupts = 0;
		wrmsr(PMC0, -PERIOD);
		wrmsr(PERFEVTSEL0, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_INTERRUPT | SELECT_ENABLE);
		wrmsr(GLOBAL_CTRL, 1);
		spin_until(1);
		wrmsr(GLOBAL_CTRL, 0);
		check(interrupts == 1, NO_INTERRUPT, i);
		const uint64_t late = rdmsr(PMC0);
		least = late < least ? late : least;
	}
	console_print("pmu: overflows of ");
	console_print_number(PERIOD, 10);
	console_print(" cycles, seen and stopped by the kernel at best ");
	console_print_number(least, 10);
	console_print(" cycles late\n");
}

/* A handler that takes longer than the period, and begins the next one itself, leaves half of the time to the rest. */
static void check_storm(void)
{
	APIC(APIC_LVTPC) = LVT_NMI;
	storm = true;
	wrmsr(PMC0, -STORM_PERIOD);
	wrmsr(PERFEVTSEL0, CYCLES | SELECT_KERNEL | SELECT_USER | SELECT_INTERRUPT | SELECT_ENABLE);
	wrmsr(GLOBAL_CTRL, 1);
	steps(STORM_STEPS);
	wrmsr(GLOBAL_CTRL, 0);
	storm = false;
	check(interrupts > 1, NO_INTERRUPT, interrupts);
	check(storm_steps <= STORM_STEPS + 2 * STORM_HANDLER_STEPS, STARVED, storm_steps);
	registers_stop();
}

void guest_main(void)
{
	console_print("pmu: registers\n");
	tables_load();
	user_map();
	APIC(APIC_SPURIOUS) = APIC_ENABLE;
	check_registers();
	console_print("pmu: counting\n");
	check_counting();
	console_print("pmu: interrupts\n");
	check_vector();
	check_nmi();
	check_masks();
	console_print("pmu: user mode\n");
	check_user();
	series();
	console_print("pmu: storm\n");
	check_storm();
	end(PASSED, 0);
}
