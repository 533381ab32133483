// SPDX-License-Identifier: BSD-2-Clause
/* From the PVH entry (32-bit, no paging) to guest_main in long mode, with the first 4 GiB mapped one to one. */
#define CR0_LONG_MODE 0x80010033 /* PG, WP, NE, ET, MP, PE */
#define CR4_PAE 0x20
#define MSR_EFER 0xc0000080
#define EFER_LONG_MODE 0x901 /* NXE, LME, SCE */
#define CODE_SELECTOR 0x10
#define DATA_SELECTOR 0x18
#define PAGE_WRITABLE 0x03
#define PAGE_2M 0x80

	.section .note.pvh, "a", @note
	.align 4
	.long 4, 8, 18 /* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad pvh_start

	.text
	.code32
	.globl pvh_start
	.type pvh_start, @function
pvh_start:
	lgdt gdt_pointer
	mov $CR4_PAE, %eax
	mov %eax, %cr4
	mov $pml4, %eax
	mov %eax, %cr3
	mov $MSR_EFER, %ecx
	mov $EFER_LONG_MODE, %eax
	xor %edx, %edx
	wrmsr
	mov $CR0_LONG_MODE, %eax
	mov %eax, %cr0
	ljmp $CODE_SELECTOR, $start64
	.size pvh_start, . - pvh_start

	.code64
	.type start64, @function
start64:
	mov $DATA_SELECTOR, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	lea stack_end(%rip), %rsp
	xor %ebp, %ebp
	call guest_main
1:	cli
	hlt
	jmp 1b
	.size start64, . - start64

	.globl gdt, pml4 /* for another vCPU */
	.data
	.align 8
gdt:
	.quad 0, 0
	.quad 0x00af9b000000ffff
	.quad 0x00cf93000000ffff
gdt_end:
gdt_pointer:
	.word gdt_end - gdt - 1
	.long gdt

	.align 4096
pml4:
	.quad pdpt + PAGE_WRITABLE
	.fill 511, 8, 0
pdpt:
	.quad pd + PAGE_WRITABLE, pd + 0x1000 + PAGE_WRITABLE, pd + 0x2000 + PAGE_WRITABLE, pd + 0x3000 + PAGE_WRITABLE
	.fill 508, 8, 0
pd:
	.set .Lpage, 0
	.rept 2048
	.quad .Lpage + PAGE_2M + PAGE_WRITABLE
	.set .Lpage, .Lpage + 0x200000
	.endr

	.bss
	.align 16
	.fill 4096, 1, 0
stack_end:

	.section .note.GNU-stack, "", @progbits
