// SPDX-License-Identifier: BSD-2-Clause
/* The entries of an unwind table of Linux (linux/orc.h). */
#ifndef VPROF_LINUX_X86_ORC_ENTRY_H
#define VPROF_LINUX_X86_ORC_ENTRY_H

#include "linux/orc.h"

enum orc_type {
	ORC_UNDEFINED, /* no way on from here */
	ORC_END_OF_STACK,
	ORC_CALL,
	ORC_REGS,         /* a struct pt_regs at the computed stack pointer */
	ORC_REGS_PARTIAL, /* only the hardware's interrupt frame */
};

enum orc_reg {
	ORC_REG_UNDEFINED,
	ORC_REG_PREV_SP, /* frame pointer rule only: the caller's stack pointer, just computed */
	ORC_REG_DX,
	ORC_REG_DI,
	ORC_REG_BP,
	ORC_REG_SP,
	ORC_REG_R10,
	ORC_REG_R13,
	ORC_REG_BP_INDIRECT, /* the word at bp + offset */
	ORC_REG_SP_INDIRECT, /* the word at sp, plus offset */
	ORC_REG_AX,
};

struct orc_entry {
	int16_t sp_offset; /* bytes */
	int16_t bp_offset;
	uint8_t sp_reg; /* enum orc_reg */
	uint8_t bp_reg;
	uint8_t type; /* enum orc_type */
};

/* The entry that covers `address`; NULL outside the table. No lock, no allocation. */
const struct orc_entry *orc_find(const struct unwind_tables *orc, uint64_t address);

#define ORC_ENTRY_BYTES 6u
/* An entry from the table of a module of the same kernel. No lock, no allocation. */
struct orc_entry orc_decode(const struct unwind_tables *orc, const uint8_t bytes[ORC_ENTRY_BYTES]);

/* The ORC rule for `address`, searched in the table of the module in guest memory. False: none. At most 32 reads. */
bool module_orc_find(const struct module_table *table, const struct unwind_tables *orc, struct page_walk *walk,
                     uint64_t address, struct orc_entry *entry);

/* The rule of a retpoline's CALL, or of the MOV behind it, where one of the two is at ip; ORC has none for them. */
bool unwind_orc_retpoline(struct page_walk *memory, uint64_t ip, struct orc_entry *entry);

#endif
