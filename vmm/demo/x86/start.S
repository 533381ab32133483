// SPDX-License-Identifier: BSD-2-Clause
/*
 * From the PVH entry (32-bit, no paging; xen/include/public/arch-x86/hvm/start_info.h) and from a SIPI to kernel_main
 * in long mode, the way into the kernel and back, and the tables the processor reads.
 */
#include "demo/demo.h"
#include "demo/x86/layout.h"

#define PHYSICAL(symbol) ((symbol) - KERNEL_BASE)

#define CR0_PE 0x00000001
#define CR0_LONG_MODE 0x80010033 /* PG, WP, NE, ET, MP, PE */
#define CR4_PAE 0x20
#define MSR_EFER 0xc0000080
#define EFER_LONG_MODE 0x901 /* NXE, LME, SCE */

#define RFLAGS_TASK 0x202 /* IF and the bit that is always set */

#define PAGE_KERNEL 0x03 /* present, writable */
#define PAGE_USER 0x07
#define PAGE_2M 0x80
#define PAGE_UNCACHED 0x18

	.section .note.pvh, "a", @note
	.align 4
	.long 4, 8, 18 /* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad PHYSICAL(pvh_start)

	.text
	.code32
	.globl pvh_start
	.type pvh_start, @function
pvh_start:
	mov %ebx, PHYSICAL(start_info_gpa)
	jmp enter_long_mode
	.size pvh_start, . - pvh_start

/* A processor starts here in real mode: copied to AP_TRAMPOLINE_GPA, so that CS is that and IP 0. */
	.code16
	.globl ap_trampoline, ap_trampoline_end
	.type ap_trampoline, @function
ap_trampoline:
	cli
	lgdtl %cs:ap_gdt_pointer - ap_trampoline
	mov %cr0, %eax
	or $CR0_PE, %eax
	mov %eax, %cr0
	ljmpl $KERNEL_CS32, $PHYSICAL(ap_start32)
	.align 4
ap_gdt_pointer:
	.word gdt_end - gdt - 1
	.long PHYSICAL(gdt)
ap_trampoline_end:
	.size ap_trampoline, . - ap_trampoline

	.code32
	.type ap_start32, @function
ap_start32:
	mov $KERNEL_DS, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	/* falls through */
	.type enter_long_mode, @function
enter_long_mode:
	lgdt PHYSICAL(gdt_pointer32)
	mov $CR4_PAE, %eax
	mov %eax, %cr4
	mov $PHYSICAL(pml4), %eax
	mov %eax, %cr3
	mov $MSR_EFER, %ecx
	mov $EFER_LONG_MODE, %eax
	xor %edx, %edx
	wrmsr
	mov $CR0_LONG_MODE, %eax
	mov %eax, %cr0
	ljmp $KERNEL_CS, $PHYSICAL(start64)
	.size enter_long_mode, . - enter_long_mode

	.code64
	.type start64, @function
start64:
	mov $start64_high, %rax
	jmp *%rax
start64_high:
	lgdt gdt_pointer(%rip)
	mov $KERNEL_DS, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $1, %edi
	lock xadd %edi, vcpus_started(%rip)
	cmp $VCPUS_MAX, %edi
	jae 1f
	mov %edi, %eax
	inc %eax
	imul $STACK_BYTES, %rax, %rax
	lea kernel_stacks(%rip), %rsp
	add %rax, %rsp
	xor %ebp, %ebp
	call kernel_main
1:	cli
	hlt
	jmp 1b
	.size start64, . - start64

/* enter_user(rip, rsp, argument, argument, argument): leaves the kernel, with interrupts on as every task has them. */
	.globl enter_user
	.type enter_user, @function
enter_user:
	pushq $USER_DS
	push %rsi
	pushq $RFLAGS_TASK
	pushq $USER_CS
	push %rdi
	mov %rdx, %rdi
	mov %rcx, %rsi
	mov %r8, %rdx
	xor %ebp, %ebp
	iretq
	.size enter_user, . - enter_user

/* system_call(rdi): rax is the number and the result. */
	.globl syscall_entry
	.type syscall_entry, @function
syscall_entry:
	swapgs
	mov %rsp, %gs:VCPU_USER_RSP
	mov %gs:VCPU_KERNEL_RSP, %rsp
	pushq $USER_DS
	pushq %gs:VCPU_USER_RSP
	push %r11
	pushq $USER_CS
	push %rcx
	swapgs
	sti
	push %rbp
	xor %ebp, %ebp /* the kernel's call chains end here */
	mov %rax, %rsi
	call system_call
	pop %rbp
	iretq
	.size syscall_entry, . - syscall_entry

/* Each leaves the error code (0 where the processor pushes none) and the vector on the stack. */
	.globl exception_stubs
	.type exception_stubs, @function
	.align EXCEPTION_STUB_BYTES
exception_stubs:
	.set .Lvector, 0
	.rept EXCEPTIONS
	.align EXCEPTION_STUB_BYTES
	.if .Lvector != 8 && (.Lvector < 10 || .Lvector > 14) && .Lvector != 17 && .Lvector != 21 && .Lvector != 29 && .Lvector != 30
	pushq $0
	.endif
	pushq $.Lvector
	jmp exception_common
	.set .Lvector, .Lvector + 1
	.endr
exception_common:
	mov %rsp, %rdi
	cld
	call exception
	.size exception_stubs, . - exception_stubs

	.data
	.align 8
	.globl gdt
gdt:
	.quad 0
	.quad 0x00cf9b000000ffff /* KERNEL_CS32 */
	.quad 0x00af9b000000ffff /* KERNEL_CS */
	.quad 0x00cf93000000ffff /* KERNEL_DS */
	.quad 0x00cffb000000ffff /* USER_CS32 */
	.quad 0x00cff3000000ffff /* USER_DS */
	.quad 0x00affb000000ffff /* USER_CS */
	.quad 0
	.fill 2 * VCPUS_MAX, 8, 0 /* TSS_SELECTOR */
gdt_end:
gdt_pointer32:
	.word gdt_end - gdt - 1
	.long PHYSICAL(gdt)
gdt_pointer:
	.word gdt_end - gdt - 1
	.quad gdt

	.globl start_info_gpa
	.align 4
start_info_gpa:
	.long 0
	.globl vcpus_started
vcpus_started:
	.long 0

/*
 * Four-level paging: the first GiB at 0 and at KERNEL_BASE, and the LAPIC's 2 MiB at the end. Everything is the kernel's
 * but the 2 MiB at USER_BASE.
 */
	.align 4096
pml4:
	.quad PHYSICAL(pdpt_low) + PAGE_USER
	.fill 510, 8, 0
	.quad PHYSICAL(pdpt_high) + PAGE_KERNEL
pdpt_low:
	.quad PHYSICAL(pd_memory) + PAGE_USER
	.fill 511, 8, 0
pdpt_high:
	.fill 510, 8, 0
	.quad PHYSICAL(pd_memory) + PAGE_KERNEL
	.quad PHYSICAL(pd_lapic) + PAGE_KERNEL
pd_memory:
	.set .Lpage, 0
	.rept 512
	.if .Lpage == USER_BASE
	.quad .Lpage + PAGE_2M + PAGE_USER
	.else
	.quad .Lpage + PAGE_2M + PAGE_KERNEL
	.endif
	.set .Lpage, .Lpage + 0x200000
	.endr
pd_lapic:
	.fill 503, 8, 0
	.quad 0xfee00000 + PAGE_2M + PAGE_UNCACHED + PAGE_KERNEL
	.fill 8, 8, 0

	.bss
	.align 4096
	.globl kernel_stacks
kernel_stacks:
	.fill VCPUS_MAX * STACK_BYTES, 1, 0

	.section .note.GNU-stack, "", @progbits
