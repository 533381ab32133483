// SPDX-License-Identifier: BSD-2-Clause
/*
 * DWARF expressions in call frame information, evaluated without a frame: values are "register + offset" and "the word
 * there + offset". What needs more is refused.
 */
#include "lib/symbol/cfi_priv.h"

/* DWARF 5, table 7.9. libdw's dwarf.h has them, too, but this file has to be built where libdw is absent. */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

#define LEB_BYTES_MAX 10u
#define VALUES_MAX 4u

/* The value without a sign, and how many bytes it had. */
static uint64_t leb(struct cfi_cursor *cursor, unsigned *bytes)
{
	uint64_t value = 0;

	for (*bytes = 1; *bytes <= LEB_BYTES_MAX; (*bytes)++) {
		uint8_t byte = (uint8_t)cfi_fixed(cursor, 1);

		value |= (uint64_t)(byte & 0x7f) << (7 * (*bytes - 1));
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

uint64_t cfi_uleb(struct cfi_cursor *cursor)
{
	unsigned bytes;

	return leb(cursor, &bytes);
}

int64_t cfi_sleb(struct cfi_cursor *cursor)
{
	unsigned bytes;
	uint64_t value = leb(cursor, &bytes);

	if (bytes < LEB_BYTES_MAX && value >> (7 * bytes - 1) != 0)
		value |= UINT64_MAX << (7 * bytes);
	return (int64_t)value;
}

struct span cfi_slice(struct cfi_cursor *cursor, uint64_t n)
{
	struct span slice = {NULL, 0};

	if (cursor->failed || !span_slice(cursor->span, cursor->at, n, &slice))
		cursor->failed = true;
	else
		cursor->at += n;
	return slice;
}

/* CFI_SAME in `how`: a constant, in `offset`. */
struct evaluation {
	struct cfi_rule values[VALUES_MAX];
	unsigned n;
};

static bool push(struct evaluation *evaluation, uint8_t how, uint64_t base, int64_t offset)
{
	if (evaluation->n == VALUES_MAX || base >= CFI_RETURN || offset != (int32_t)offset)
		return false;
	evaluation->values[evaluation->n++] =
		(struct cfi_rule){.how = how, .base = (uint8_t)base, .offset = (int32_t)offset};
	return true;
}

static bool push_constant(struct evaluation *evaluation, int64_t value)
{
	return push(evaluation, CFI_SAME, 0, value);
}

/* The value on top becomes the word at it. */
static bool dereference(struct evaluation *evaluation)
{
	struct cfi_rule *top = evaluation->n > 0 ? &evaluation->values[evaluation->n - 1] : NULL;

	if (!top || top->how != CFI_VALUE)
		return false;
	top->how = CFI_MEMORY;
	return true;
}

static bool add_constant(struct evaluation *evaluation, int64_t n)
{
	struct cfi_rule *top = evaluation->n > 0 ? &evaluation->values[evaluation->n - 1] : NULL;
	int32_t *sum = top && top->how == CFI_MEMORY ? &top->add : top ? &top->offset : NULL;

	return sum && n == (int32_t)n && !__builtin_add_overflow(*sum, (int32_t)n, sum);
}

/* The constant on top, once it is taken off. */
static bool pop_constant(struct evaluation *evaluation, int64_t *value)
{
	if (evaluation->n < 2 || evaluation->values[evaluation->n - 1].how != CFI_SAME)
		return false;
	*value = evaluation->values[--evaluation->n].offset;
	return true;
}

static bool operate(struct evaluation *evaluation, struct cfi_cursor *cursor)
{
	uint8_t operation = (uint8_t)cfi_fixed(cursor, 1);
	uint64_t base;
	int64_t value;

	if (operation >= OP_BREG0 && operation <= OP_BREG31)
		return push(evaluation, CFI_VALUE, operation - OP_BREG0, cfi_sleb(cursor));
	if (operation >= OP_LIT0 && operation <= OP_LIT31)
		return push_constant(evaluation, operation - OP_LIT0);
	switch (operation) {
	case OP_BREGX:
		base = cfi_uleb(cursor);
		return push(evaluation, CFI_VALUE, base, cfi_sleb(cursor));
	case OP_CONST1U:
		return push_constant(evaluation, (int64_t)cfi_fixed(cursor, 1));
	case OP_CONST1S:
		return push_constant(evaluation, (int8_t)cfi_fixed(cursor, 1));
	case OP_CONST2U:
		return push_constant(evaluation, (int64_t)cfi_fixed(cursor, 2));
	case OP_CONST2S:
		return push_constant(evaluation, (int16_t)cfi_fixed(cursor, 2));
	case OP_CONST4U:
		return push_constant(evaluation, (int64_t)cfi_fixed(cursor, 4));
	case OP_CONST4S:
		return push_constant(evaluation, (int32_t)cfi_fixed(cursor, 4));
	case OP_CONSTU:
		return push_constant(evaluation, (int64_t)cfi_uleb(cursor));
	case OP_CONSTS:
		return push_constant(evaluation, cfi_sleb(cursor));
	case OP_PLUS_UCONST:
		return add_constant(evaluation, (int64_t)cfi_uleb(cursor));
	case OP_PLUS:
		return pop_constant(evaluation, &value) && add_constant(evaluation, value);
	case OP_MINUS:
		return pop_constant(evaluation, &value) && add_constant(evaluation, -value);
	case OP_DEREF:
		return dereference(evaluation);
	case OP_NOP:
		return true;
	default:
		return false;
	}
}

bool cfi_expression(struct span expression, struct cfi_rule *rule)
{
	struct cfi_cursor cursor = {.span = expression};
	struct evaluation evaluation = {.n = 0};

	while (cursor.at < expression.n)
		if (!operate(&evaluation, &cursor) || cursor.failed)
			return false;
	if (evaluation.n != 1 || evaluation.values[0].how == CFI_SAME)
		return false;
	*rule = evaluation.values[0];
	return true;
}

/* As GNU ld writes it (elf_x86_64_eh_frame_plt in bfd/elf64-x86-64.c): sp + 8 + ((ip & 15) >= 11) * 8. */
bool cfi_expression_plt(struct span expression, struct cfi_plt *plt)
{
	struct cfi_cursor cursor = {.span = expression};
	bool is_stack = cfi_fixed(&cursor, 1) == OP_BREG0 + CFI_SP;
	int64_t offset = cfi_sleb(&cursor);
	bool is_place = cfi_fixed(&cursor, 1) == OP_BREG0 + CFI_RETURN && cfi_sleb(&cursor) == 0 &&
	                cfi_fixed(&cursor, 1) == OP_LIT0 + 15 && cfi_fixed(&cursor, 1) == OP_AND;
	uint64_t pushed = cfi_fixed(&cursor, 1) - OP_LIT0;
	bool is_word = cfi_fixed(&cursor, 1) == OP_GE && cfi_fixed(&cursor, 1) == OP_LIT0 + 3 &&
	               cfi_fixed(&cursor, 1) == OP_SHL && cfi_fixed(&cursor, 1) == OP_PLUS;

	if (cursor.failed || cursor.at != expression.n || !is_stack || !is_place || !is_word || pushed > 15 ||
	    offset != (int8_t)offset)
		return false;
	*plt = (struct cfi_plt){(int32_t)offset, (uint8_t)pushed};
	return true;
}
