// SPDX-License-Identifier: BSD-2-Clause
/*
 * User mode as a kernel has it: every system call, page fault and timer interrupt that leaves it must arrive on the
 * kernel's stack, from CPL 3, with the kernel's GS base one SWAPGS away, and in the kernel proper with interrupts off.
 * Ends with the exit port: 1 when ROUNDS rounds did, else the check that failed first.
 */
#include <stdbool.h>

#include "demo/x86/descriptors.h"
#include "guests/apic.h"
#include "guests/guest.h"

#define ROUNDS 300u
#define KERNEL_CS 0x10u
#define KERNEL_DS 0x18u
#define USER_DS 0x2bu
#define USER_CS 0x33u
#define TSS_SELECTOR 0x40u
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_FMASK 0xc0000084u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define RFLAGS_FIXED 0x2u
#define RFLAGS_IF 0x200u
#define FMASK 0x47700u
#define VECTOR_PAGE_FAULT 14u
#define VECTOR_TIMER 0x20u
#define VECTORS 0x21u
#define STACK_BYTES 8192u
#define PERCPU_MAGIC UINT64_C(0x5ca1ab1e)

#define APIC_TICKS 1000000u /* of the bus clock, 1 GHz under KVM: 1 ms */

/* The user program: PML4 slot 1, its code in page 0, which the kernel takes away in every round. */
#define USER_GVA UINT64_C(0x8000000000)
#define USER_STACK_GVA (USER_GVA + 0x1000)
#define PTE_KERNEL UINT64_C(0x3)
#define PTE_USER UINT64_C(0x7)

enum failure {
	PASSED = 1,
	BAD_CS,
	BAD_STACK,
	BAD_GS,
	BAD_FLAGS,
	BAD_RIP,
	BAD_VECTOR,
	BAD_ADDRESS,
};

struct percpu {
	uint64_t magic, user_rsp;
};

struct frame {
	uint64_t rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11;
	uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

extern const uint8_t stub_page_fault[], stub_timer[], syscall_entry[];
extern const uint8_t user_code[], user_code_end[];
_Noreturn void enter_user(uint64_t rip, uint64_t rsp);
void event(struct frame *frame, uint64_t gs_magic);
void system_call(uint64_t rip, uint64_t rflags, uint64_t gs_magic);

uint8_t kernel_stack[STACK_BYTES] __attribute__((aligned(16)));
struct percpu percpu = {.magic = PERCPU_MAGIC};
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
static unsigned rounds, faults, ticks;

__asm__(".globl stub_page_fault, stub_timer, syscall_entry, enter_user, user_code, user_code_end\n"
        "stub_page_fault: pushq $14; jmp common\n"
        "stub_timer: pushq $0; pushq $0x20\n"
        "common: push %r11; push %r10; push %r9; push %r8; push %rdi; push %rsi; push %rdx; push %rcx; push %rax\n"
        "	xor %esi, %esi\n"
        "	testb $3, 96(%rsp)\n" /* CS */
        "	jz 1f\n"
        "	swapgs\n"
        "	mov %gs:0, %rsi\n"
        "	swapgs\n"
        "1:	mov %rsp, %rdi\n"
        "	cld\n"
        "	call event\n"
        "	pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %r8; pop %r9; pop %r10; pop %r11\n"
        "	add $16, %rsp\n"
        "	iretq\n"
        "syscall_entry:\n"
        "	swapgs\n"
        "	mov %rsp, %gs:8\n"
        "	lea kernel_stack+8192(%rip), %rsp\n"
        "	pushq $0x2b\n"
        "	pushq %gs:8\n"
        "	push %r11\n"
        "	pushq $0x33\n"
        "	push %rcx\n"
        "	mov %rcx, %rdi\n"
        "	pushfq\n"
        "	pop %rsi\n"
        "	mov %gs:0, %rdx\n"
        "	swapgs\n"
        "	call system_call\n"
        "	iretq\n"
        "enter_user:\n"
        "	pushq $0x2b; push %rsi; pushq $0x202; pushq $0x33; push %rdi; iretq\n"
        "user_code: mov $2000, %ecx\n"
        "1:	dec %ecx; jnz 1b\n"
        "	push %rcx; pop %rcx\n"
        "	syscall\n"
        "	jmp user_code\n"
        "user_code_end:\n");

static _Noreturn void end(enum failure failure)
{
	console_print("user_mode: ");
	console_print_number(rounds, 10);
	console_print(" rounds, ");
	console_print_number(faults, 10);
	console_print(" faults, ");
	console_print_number(ticks, 10);
	console_print(" ticks in user mode\n");
	outb(EXIT_PORT, (uint8_t)failure);
	halt();
	__builtin_unreachable();
}

static bool on_kernel_stack(const void *at)
{
	return (const uint8_t *)at >= kernel_stack && (const uint8_t *)at < kernel_stack + STACK_BYTES;
}

static void check_user_frame(const struct frame *frame, uint64_t gs_magic)
{
	if (frame->cs != USER_CS || frame->ss != USER_DS)
		end(BAD_CS);
	if (!on_kernel_stack(frame))
		end(BAD_STACK);
	if (gs_magic != PERCPU_MAGIC)
		end(BAD_GS);
	if (!(frame->rflags & RFLAGS_IF))
		end(BAD_FLAGS);
}

/* Interrupts are off in this kernel, so nothing but user mode is ever interrupted. */
void event(struct frame *frame, uint64_t gs_magic)
{
	check_user_frame(frame, gs_magic);
	if (frame->vector == VECTOR_TIMER) {
		ticks++;
		APIC(APIC_EOI) = 0;
		return;
	}
	if (frame->vector != VECTOR_PAGE_FAULT)
		end(BAD_VECTOR);
	uint64_t address;
	__asm__ volatile("mov %%cr2, %0" : "=r"(address));
	if (address >> 12 != USER_GVA >> 12)
		end(BAD_ADDRESS);
	faults++;
	pages[2][0] = (uint64_t)user_pages[0] | PTE_USER;
}

void system_call(uint64_t rip, uint64_t rflags, uint64_t gs_magic)
{
	if (gs_magic != PERCPU_MAGIC)
		end(BAD_GS);
	if (rflags & RFLAGS_IF)
		end(BAD_FLAGS);
	if (rip - USER_GVA > (uint64_t)(user_code_end - user_code))
		end(BAD_RIP);
	if (++rounds == ROUNDS)
		end(PASSED);
	pages[2][0] = 0;
	__asm__ volatile("invlpg (%0)" : : "r"(USER_GVA) : "memory");
}

static void tables_load(void)
{
	tss.rsp0 = (uint64_t)(kernel_stack + STACK_BYTES);
	tss_describe(&gdt[TSS_SELECTOR / 8], &tss);
	const struct table_pointer gdtr = {.limit = sizeof gdt - 1, .base = (uint64_t)gdt};
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};
	idt[VECTOR_PAGE_FAULT] = idt_gate_to(stub_page_fault, KERNEL_CS);
	idt[VECTOR_TIMER] = idt_gate_to(stub_timer, KERNEL_CS);
	__asm__ volatile("lgdt %0; lidt %1; ltr %w2" : : "m"(gdtr), "m"(idtr), "r"(TSS_SELECTOR) : "memory");
}

static void user_map(void)
{
	uint64_t *pml4;

	__asm__ volatile("mov %%cr3, %0" : "=r"(pml4));
	pml4[1] = (uint64_t)pages[0] | PTE_USER;
	pages[0][0] = (uint64_t)pages[1] | PTE_USER;
	pages[1][0] = (uint64_t)pages[2] | PTE_USER;
	pages[2][1] = (uint64_t)user_pages[1] | PTE_USER;
	for (unsigned i = 0; user_code + i < user_code_end; i++)
		user_pages[0][i] = user_code[i];
}

void guest_main(void)
{
	console_print("user_mode: in and out\n");
	tables_load();
	user_map();
	wrmsr(MSR_STAR, (uint64_t)KERNEL_CS << 32);
	wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
	wrmsr(MSR_FMASK, FMASK);
	wrmsr(MSR_KERNEL_GS_BASE, (uint64_t)&percpu);
	APIC(APIC_SPURIOUS) = APIC_ENABLE;
	APIC(APIC_DIVIDE) = 0xb; /* by 1 */
	APIC(APIC_LVT_TIMER) = APIC_PERIODIC | VECTOR_TIMER;
	APIC(APIC_INITIAL_COUNT) = APIC_TICKS;
	enter_user(USER_GVA, USER_STACK_GVA + 4096);
}
