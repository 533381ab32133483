// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that begin with instructions of all sorts, called ROUNDS times by each of two vCPUs at once, which check
 * what they return: a wrong answer ends the guest through the exit port. Before that, vCPU 0 calls rewritten() ROUNDS
 * times, and writes over its first byte after half of them. The first byte of function_push goes to port 0x80 as the
 * first and as the last thing.
 */
#include "guests/guest.h"
#include "guests/apic.h"

#define ROUNDS 200u

extern const uint8_t second_cpu[], second_cpu_end[];
void second_cpu_main(void);

/* From real mode to long mode at once (SDM vol. 3A, 9.8.5), by the tables of start.S. */
__asm__("	.text\n"
        "	.code16\n"
        "	.globl second_cpu, second_cpu_end\n"
        "second_cpu:\n"
        "	lgdtl %cs:2f - second_cpu\n"
        "	mov $0x20, %eax\n"
        "	mov %eax, %cr4\n"
        "	mov $pml4, %eax\n"
        "	mov %eax, %cr3\n"
        "	mov $0xc0000080, %ecx\n"
        "	mov $0x901, %eax\n"
        "	xor %edx, %edx\n"
        "	wrmsr\n"
        "	mov $0x80010033, %eax\n"
        "	mov %eax, %cr0\n"
        "	ljmpl $0x10, $1f\n"
        "2:	.word 31\n"
        "	.long gdt\n"
        "second_cpu_end:\n"
        "	.code64\n"
        "1:	mov $0x18, %eax\n"
        "	mov %eax, %ds\n"
        "	mov %eax, %es\n"
        "	mov %eax, %ss\n"
        "	lea second_stack_end(%rip), %rsp\n"
        "	call second_cpu_main\n"
        "	.bss\n"
        "	.align 16\n"
        "	.fill 4096, 1, 0\n"
        "second_stack_end:\n"
        "	.text\n");

uint64_t function_push(uint64_t n);  /* n + 1 */
uint64_t function_load(uint64_t n);  /* n + 1000 */
uint64_t function_call(uint64_t n);  /* n + 2 */
uint64_t function_jump(uint64_t n);  /* n + 3 */
uint64_t function_flags(uint64_t n); /* 1 if n is odd, else 0 */
uint64_t function_port(uint64_t n);  /* n + 4 */
void function_counted(uint64_t *n);  /* adds 1 to it at once */
uint64_t rewritten(uint64_t n);      /* n */

#define BEGIN(name) ".type " name ", @function\n" name ":\n"
#define END(name) ".size " name ", . - " name "\n"

/* clang-format off */
__asm__(BEGIN("function_push")
        "	push %rbp\n"
        "	mov %rsp, %rbp\n"
        "	lea 1(%rdi), %rax\n"
        "	pop %rbp\n"
        "	ret\n"
        END("function_push")
        BEGIN("function_load")
        "	mov 1f(%rip), %rax\n"
        "	add %rdi, %rax\n"
        "	ret\n"
        "1:	.quad 1000\n"
        END("function_load")
        BEGIN("function_call")
        "	call 1f\n"
        "	inc %rax\n"
        "	ret\n"
        "1:	lea 1(%rdi), %rax\n"
        "	ret\n"
        END("function_call")
        BEGIN("function_jump")
        "	jmp 1f\n"
        "	ud2\n"
        "1:	lea 3(%rdi), %rax\n"
        "	ret\n"
        END("function_jump")
        BEGIN("function_flags")
        "	shr $1, %rdi\n"
        "	mov $0, %eax\n"
        "	adc $0, %eax\n"
        "	ret\n"
        END("function_flags")
        BEGIN("function_port")
        "	out %al, $0xed\n"
        "	lea 4(%rdi), %rax\n"
        "	ret\n"
        END("function_port")
        BEGIN("function_counted")
        "	lock incq (%rdi)\n"
        "	ret\n"
        END("function_counted")
        BEGIN("rewritten")
        "	nop\n"
        "	mov %rdi, %rax\n"
        "	ret\n"
        END("rewritten"));
/* clang-format on */

static uint64_t counted;
static volatile uint32_t second_done;

static void expect(uint64_t is, uint64_t should_be)
{
	if (is != should_be) {
		outb(EXIT_PORT, 1);
		halt();
	}
}

static void rounds(void)
{
	for (uint64_t n = 0; n < ROUNDS; n++) {
		expect(function_push(n), n + 1);
		expect(function_load(n), n + 1000);
		expect(function_call(n), n + 2);
		expect(function_jump(n), n + 3);
		expect(function_flags(n), n & 1);
		expect(function_port(n), n + 4);
		function_counted(&counted);
	}
}

void second_cpu_main(void)
{
	rounds();
	second_done = 1;
	halt();
}

static void start_second_cpu(void)
{
	volatile uint8_t *to = STARTUP_CODE;

	for (const uint8_t *from = second_cpu; from < second_cpu_end; from++)
		*to++ = *from;
	second_cpu_start();
}

static void rewrite(void)
{
	volatile uint8_t *first = (volatile uint8_t *)(uint64_t)rewritten;

	for (uint64_t n = 0; n < ROUNDS; n++) {
		expect(rewritten(n), n);
		if (n == ROUNDS / 2 - 1)
			*first = 0x90; /* NOP, which it was */
	}
}

void guest_main(void)
{
	const volatile uint8_t *first = (const volatile uint8_t *)(uint64_t)function_push;

	outb(PHASE_PORT, *first);
	rewrite();
	start_second_cpu();
	rounds();
	while (!second_done)
		cpu_relax();
	expect(counted, 2 * (uint64_t)ROUNDS);
	outb(PHASE_PORT, *first);
	power_off();
}
