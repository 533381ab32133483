// SPDX-License-Identifier: BSD-2-Clause
/*
 * From the entry (Documentation/arch/arm64/booting.rst: EL1, MMU off, X0 is the device tree) and from PSCI's CPU_ON to
 * kernel_main, the way into the kernel and back, and the tables the processor reads.
 */
#include "demo/arm64/layout.h"
#include "demo/demo.h"

/* Arm ARM, D19.2. */
#define MAIR 0x00ff            /* 0: normal memory, write-back; 1: device */
#define TCR_HALF 0x3510        /* 48 bits, 4 KiB pages, walks in write-back memory, inner shareable */
#define TCR_TG1_4K 0x80000000
#define TCR_IPS_40 0x200000000
#define SCTLR_RES1 0x30d00800  /* SPAN is among them: the kernel reads the program's memory */
#define SCTLR_ON 0x1005        /* I, C, M */
#define CNTKCTL_EL0VCTEN 2
#define ESR_CLASS_SHIFT 26
#define ESR_CLASS_SVC 0x15

/* Descriptors (Arm ARM, D8.3). */
#define TABLE 3
#define BLOCK_MEMORY 0x701     /* AF, inner shareable, attribute 0 */
#define BLOCK_DEVICE 0x60000000000405 /* UXN, PXN, AF, attribute 1 */
#define BLOCK_USER 0x40

	.text
	.globl start
	.type start, %function
start:
	mov x20, x0
	mov x19, #0
	b enable_mmu
	.size start, . - start

	.globl secondary_start
	.type secondary_start, %function
secondary_start:
	mov x20, #0
	mov x19, x0
	/* falls through */
	.type enable_mmu, %function
enable_mmu:
	ldr x1, =MAIR
	msr mair_el1, x1
	ldr x1, =TCR_HALF + (TCR_HALF << 16) + TCR_TG1_4K + TCR_IPS_40
	msr tcr_el1, x1
	adrp x1, table_low
	msr ttbr0_el1, x1
	adrp x1, table_high
	msr ttbr1_el1, x1
	isb
	tlbi vmalle1
	dsb nsh
	ic iallu
	dsb nsh
	isb
	ldr x1, =SCTLR_RES1 + SCTLR_ON
	msr sctlr_el1, x1
	isb
	ldr x1, =start_high
	br x1
	.size enable_mmu, . - enable_mmu

	.type start_high, %function
start_high:
	adrp x1, kernel_stacks
	add x1, x1, :lo12:kernel_stacks
	add x2, x19, #1
	mov x3, #STACK_BYTES
	madd x1, x2, x3, x1
	mov sp, x1
	adrp x1, vectors
	add x1, x1, :lo12:vectors
	msr vbar_el1, x1
	mov x1, #CNTKCTL_EL0VCTEN
	msr cntkctl_el1, x1
	isb
	mov x29, #0
	mov x30, #0
	cbnz x19, 1f
	adrp x1, device_tree_gpa
	str x20, [x1, :lo12:device_tree_gpa]
1:	mov x0, x19
	bl kernel_main
	.size start_high, . - start_high

/* enter_user(ip, sp, argument, argument, argument): leaves the kernel, with interrupts on as every task has them. */
	.globl enter_user
	.type enter_user, %function
enter_user:
	msr elr_el1, x0
	msr sp_el0, x1
	msr spsr_el1, xzr
	mov x0, x2
	mov x1, x3
	mov x2, x4
	mov x29, #0
	mov x30, #0
	eret
	.size enter_user, . - enter_user

/* system_call(x0): x8 is the number, x0 the result. The kernel's call chains end here. */
	.type syscall_entry, %function
syscall_entry:
	mrs x9, esr_el1
	lsr x9, x9, #ESR_CLASS_SHIFT
	cmp x9, #ESR_CLASS_SVC
	b.ne 1f
	mrs x10, elr_el1
	mrs x11, spsr_el1
	stp x29, x30, [sp, #-32]!
	stp x10, x11, [sp, #16]
	mov x29, #0
	mov x1, x8
	bl system_call
	ldp x10, x11, [sp, #16]
	ldp x29, x30, [sp], #32
	msr elr_el1, x10
	msr spsr_el1, x11
	eret
1:	mov x0, #8 /* of the vectors: synchronous, from EL0 */
	b exception
	.size syscall_entry, . - syscall_entry

/* Arm ARM, D1.3.6: 16 vectors of 128 bytes each; the ninth is for exceptions of EL0. */
	.type vectors, %function
	.align 11
vectors:
	.set .Lvector, 0
	.rept 16
	.align 7
	.if .Lvector == 8
	b syscall_entry
	.else
	mov x0, #.Lvector
	b exception
	.endif
	.set .Lvector, .Lvector + 1
	.endr
	.size vectors, . - vectors

	.data
	.globl device_tree_gpa
	.align 3
device_tree_gpa:
	.quad 0

/*
 * The lower half: the kernel's first 2 MiB, where the MMU is turned on, and the program's. The upper half: the first
 * 4 GiB of physical memory, the last of them with devices. The linker puts the address of a table into its entry.
 */
	.align 12
table_low:
	.quad table_low_1_gpa + TABLE
	.fill 511, 8, 0
table_low_1:
	.quad table_low_2_gpa + TABLE
	.fill 511, 8, 0
table_low_2:
	.quad 0
	.quad 0x200000 + BLOCK_MEMORY
	.quad USER_BASE + BLOCK_MEMORY + BLOCK_USER
	.fill 509, 8, 0
table_high:
	.fill 256, 8, 0
	.quad table_high_1_gpa + TABLE
	.fill 255, 8, 0
table_high_1:
	.quad 0, 0
	.quad 0x00000000 + BLOCK_MEMORY
	.quad 0x40000000 + BLOCK_MEMORY
	.quad 0x80000000 + BLOCK_MEMORY
	.quad 0xc0000000 + BLOCK_DEVICE
	.fill 506, 8, 0

	.bss
	.align 12
	.globl kernel_stacks
kernel_stacks:
	.fill VCPUS_MAX * STACK_BYTES, 1, 0

	.globl table_low_1, table_low_2, table_high_1
	.section .note.GNU-stack, "", %progbits
