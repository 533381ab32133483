// SPDX-License-Identifier: BSD-2-Clause
/* What the assembly and the kernel agree on. */
#ifndef VPROF_DEMO_X86_LAYOUT_H
#define VPROF_DEMO_X86_LAYOUT_H

/* Where it lies: the kernel at 1 MiB and, as Linux, in the last 2 GiB; the program at 4 MiB, mapped one to one. */
#define KERNEL_BASE 0xffffffff80000000
#define KERNEL_GPA 0x100000
#define USER_BASE 0x400000
#define LAPIC_BASE 0xfffffffffee00000 /* GPA 0xfee00000 */
#define MAPPED_BYTES 0x40000000       /* guest physical memory seen from KERNEL_BASE */
#define AP_TRAMPOLINE_GPA 0x8000      /* where a SIPI starts a processor: page-aligned, below 1 MiB */

/* Segment selectors, at Linux's places. STAR's arithmetic wants their order. */
#define KERNEL_CS32 0x08
#define KERNEL_CS 0x10
#define KERNEL_DS 0x18
#define USER_CS32 0x23
#define USER_DS 0x2b
#define USER_CS 0x33
#define TSS_SELECTOR 0x40 /* vCPU 0's; 16 bytes each */

#define EXCEPTIONS 32
#define EXCEPTION_STUB_BYTES 16

/* Offsets in struct vcpu. */
#define VCPU_KERNEL_RSP 0
#define VCPU_USER_RSP 8

#endif
