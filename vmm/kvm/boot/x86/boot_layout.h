// SPDX-License-Identifier: BSD-2-Clause
/*
 * The layout of guest memory before the kernel runs.
 *
 *   0x000000   unused: the real-mode vectors and the BIOS data area, zero
 *   0x001000   GDT                                  \
 *   0x002000   PVH start info, modules, memory map   |  RAM in the kernel's map: it copies what it keeps
 *   0x003000   boot_params                           |  before it hands these pages out
 *   0x004000   stack, grows down from 0x5000         |
 *   0x005000   page tables: PML4, PDPT, four PDs     |
 *   0x00b000   command line                         /
 *   0x00c000   free RAM; a host quirk's reserved pages lie here or above
 *   0x09f000   reserved: where an EBDA, the VGA window and the BIOS ROM are on a PC
 *   0x0e0000     RSDP and the other ACPI tables: firmware's search range for the RSDP begins here
 *   0x0f0000     MP table: the floating pointer is searched for from here
 *   0x100000   RAM up to the hole; kernel segments where their program headers say, initramfs at the top
 *   4 GiB      RAM
 *
 * Everything is claimed before it is written, so that a kernel segment that would cover one of these, or another
 * segment, is refused.
 */
#ifndef VPROF_KVM_BOOT_X86_BOOT_LAYOUT_H
#define VPROF_KVM_BOOT_X86_BOOT_LAYOUT_H

#include <asm/bootparam.h>

#include "kvm/boot/boot_claims.h"

#define BOOT_STRUCTURES_GPA 0x1000u
#define BOOT_GDT_GPA 0x1000u
#define BOOT_PVH_INFO_GPA 0x2000u
#define BOOT_PARAMS_GPA 0x3000u
#define BOOT_STACK_GPA 0x4000u
#define BOOT_PAGE_TABLES_GPA 0x5000u
#define BOOT_PAGE_TABLES_BYTES 0x6000u
#define BOOT_COMMAND_LINE_GPA 0xb000u
#define BOOT_STRUCTURES_END 0xc000u

#define BOOT_COMMAND_LINE_BYTES_MAX 2048u /* with the NUL: COMMAND_LINE_SIZE of x86 Linux */

/* Linux takes 0x9f000 for the end of low RAM when no BIOS data area says otherwise (arch/x86/kernel/ebda.c). */
#define BOOT_BIOS_GPA 0x9f000u
#define BOOT_ACPI_GPA 0xe0000u
#define BOOT_MPTABLE_GPA 0xf0000u
#define BOOT_BIOS_END 0x100000u

_Static_assert(BOOT_PAGE_TABLES_GPA + BOOT_PAGE_TABLES_BYTES <= BOOT_COMMAND_LINE_GPA, "the page tables fit");

/* Low RAM below and above a reserved range in it, that range, the BIOS area, the rest of low RAM, high RAM. */
#define BOOT_MEMORY_MAP_MAX 6u

/*
 * The guest's memory map: sorted, without overlap or gap but the hole below 4 GiB. Returns the number of entries.
 * The types of an E820 entry are those of PVH's memory map, too.
 */
unsigned boot_memory_map(const struct memory *memory, uint64_t reserved_start, uint64_t reserved_bytes,
                         struct boot_e820_entry map[BOOT_MEMORY_MAP_MAX]);

/* The value for a checksum byte, which is still zero, that makes all bytes of the table add up to zero. */
uint8_t boot_checksum(const void *table, size_t bytes);

#endif
