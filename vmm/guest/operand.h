// SPDX-License-Identifier: BSD-2-Clause
/*
 * The arguments of a program's static probes (lib/symbol/usdt.h): where each is while a vCPU is at the probe, as the
 * assembler writes an operand, with its size in front: on x86-64 "-4@%edi", "8@-16(%rbp)", "4@$5".
 */
#ifndef VPROF_GUEST_OPERAND_H
#define VPROF_GUEST_OPERAND_H

#include "guest/gprs.h"
#include "guest/page_walk.h"

#define GUEST_OPERANDS_MAX 12u

enum guest_operand_kind {
	GUEST_OPERAND_UNKNOWN, /* of another form: a floating-point number, an address by a symbol */
	GUEST_OPERAND_CONSTANT,
	GUEST_OPERAND_REGISTER, /* `base` */
	GUEST_OPERAND_MEMORY,   /* at base + index * scale + constant */
};

struct guest_operand {
	enum guest_operand_kind kind;
	uint8_t bytes; /* 1, 2, 4 or 8 */
	bool is_signed;
	int8_t base, index; /* of guest_gpr_name; -1: none */
	uint8_t scale;
	uint8_t shift; /* the bits of the register below the value */
	int64_t constant;
};

/* Any text; what is beyond GUEST_OPERANDS_MAX is left out. Returns how many there are. */
size_t guest_operands_parse(enum guest_processor processor, const char *text,
                            struct guest_operand operands[GUEST_OPERANDS_MAX]);

/* In the address space of `walk`, extended to 64 bits. False: it is unknown, or not in memory. */
bool guest_operand_read(const struct guest_operand *operand, struct page_walk *walk, const struct guest_gprs *gprs,
                        uint64_t *value);

#endif
