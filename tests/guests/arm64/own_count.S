// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts a loop of known length by the PMU that the guest has itself (vprof run --pmu kvm), writes what it counted to the
 * first UART, "own: CYCLES INSTRUCTIONS" in hexadecimal, and powers off. MMU and caches stay off.
 */
#define UART 0xd0000000         /* as the device tree says */
#define PSCI_SYSTEM_OFF 0x84000008
#define TURNS 25000000          /* of two instructions */

/* Arm ARM, D19.5. */
#define PMCR_START 0x47         /* LC, C, P, E */
#define COUNTER_CYCLES 0x80000000
#define COUNTER_0 1
#define INST_RETIRED 8

	.text
	.globl start
start:
	ldr x20, =UART
	msr pmccfiltr_el0, xzr
	mov x0, #INST_RETIRED
	msr pmevtyper0_el0, x0
	ldr x0, =COUNTER_CYCLES + COUNTER_0
	msr pmcntenset_el0, x0
	mov x0, #PMCR_START
	msr pmcr_el0, x0
	isb
	ldr x1, =TURNS
	.globl counted_loop
counted_loop:
	subs x1, x1, #1
	b.ne counted_loop
	isb
	mrs x21, pmccntr_el0
	mrs x22, pmevcntr0_el0
	adr x1, said
	bl put_text
	mov x1, x21
	bl put_number
	mov x0, #' '
	strb w0, [x20]
	mov x1, x22
	bl put_number
	mov x0, #'\n'
	strb w0, [x20]
	ldr x0, =PSCI_SYSTEM_OFF
	hvc #0
1:	wfi
	b 1b

/* x1: the text, which a NUL ends. */
put_text:
	ldrb w0, [x1], #1
	cbz w0, 1f
	strb w0, [x20]
	b put_text
1:	ret

/* x1 in 16 digits. */
put_number:
	mov x2, #60
1:	lsr x0, x1, x2
	and x0, x0, #15
	add x0, x0, #'0'
	cmp x0, #'9'
	b.ls 2f
	add x0, x0, #'a' - '0' - 10
2:	strb w0, [x20]
	subs x2, x2, #4
	b.pl 1b
	ret

said:
	.asciz "own: "

	.section .note.GNU-stack, "", %progbits
