// SPDX-License-Identifier: BSD-2-Clause
/* Runs the programs of CIEs and FDEs (DWARF 5, 6.4.2 and 7.24; LSB Core, 10.5.1 and 10.6). */
#include "lib/symbol/cfi_priv.h"

#define STATES_MAX 8u /* that DW_CFA_remember_state puts aside; compilers use one */

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_NEGATE_RA_STATE = 0x2d, /* return addresses are signed from here on, or no longer */
	CFA_NEGATE_RA_STATE_WITH_PC = 0x2c,
	/* With an operand in the lower six bits. */
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};
#define OPERAND_MASK 0x3fu

struct runner {
	const struct cfi_run *run;
	const struct cfi_cie *cie;
	struct cfi_cursor cursor;
	uint64_t location;
	struct cfi_state state;
	struct cfi_state remembered[STATES_MAX];
	unsigned n_remembered;
};

static void row_end(struct runner *runner, uint64_t location)
{
	if (runner->run && location > runner->location)
		runner->run->row(runner->location, location, &runner->state, runner->run->data);
	runner->location = location;
}

/* Addresses only grow, and stay in the code of the FDE. */
static bool advance_to(struct runner *runner, uint64_t location)
{
	if (!runner->run || location < runner->location || location > runner->run->to)
		return false;
	row_end(runner, location);
	return true;
}

static bool advance(struct runner *runner, uint64_t units)
{
	uint64_t bytes, location;

	return !__builtin_mul_overflow(units, runner->cie->code_alignment, &bytes) &&
	       !__builtin_add_overflow(runner->location, bytes, &location) && advance_to(runner, location);
}

static uint64_t register_of(const struct runner *runner, uint64_t dwarf)
{
	return runner->cie->arch->place(dwarf);
}

static uint64_t register_take(struct runner *runner)
{
	return register_of(runner, cfi_uleb(&runner->cursor));
}

static void rule_set(struct runner *runner, uint64_t target, struct cfi_rule rule)
{
	/* Vector registers have no part in a walk. */
	if (target < CFI_REGISTERS)
		runner->state.registers[target] = rule;
}

/* Something that no cell holds: from here on, until the next complete definition of a CFA. */
static void give_up(struct runner *runner)
{
	runner->state.known = false;
}

static void rule_offset(struct runner *runner, uint8_t how, uint64_t target, int64_t offset)
{
	if (offset == (int32_t)offset)
		rule_set(runner, target, (struct cfi_rule){.how = how, .base = CFI_CFA, .offset = (int32_t)offset});
	else
		give_up(runner);
}

static int64_t factored(const struct runner *runner, int64_t n)
{
	int64_t offset;

	/* One beyond what a rule holds. */
	return __builtin_mul_overflow(n, runner->cie->data_alignment, &offset) ? INT64_MAX : offset;
}

static int64_t factored_uleb(struct runner *runner)
{
	return factored(runner, (int64_t)cfi_uleb(&runner->cursor));
}

static void rule_expression(struct runner *runner, bool is_value)
{
	uint64_t target = register_take(runner);
	struct span expression = cfi_slice(&runner->cursor, cfi_uleb(&runner->cursor));
	struct cfi_rule rule;

	if (target >= CFI_REGISTERS)
		return;
	if (runner->cie->arch->links || !cfi_expression(expression, &rule) || (!is_value && rule.how != CFI_VALUE)) {
		give_up(runner);
		return;
	}
	/* DW_CFA_expression computes where the register was saved. */
	if (!is_value)
		rule.how = CFI_MEMORY;
	rule_set(runner, target, rule);
}

static void rule_register(struct runner *runner)
{
	uint64_t target = register_take(runner), base = register_take(runner);

	if (base < CFI_REGISTERS)
		rule_set(runner, target, (struct cfi_rule){.how = CFI_VALUE, .base = (uint8_t)base});
	else if (target < CFI_REGISTERS)
		give_up(runner);
}

static void rule_restore(struct runner *runner, uint64_t target)
{
	if (target < CFI_REGISTERS)
		runner->state.registers[target] = runner->cie->initial.registers[target];
}

static void cfa_set(struct runner *runner, uint64_t base, int64_t offset)
{
	if (base >= CFI_RETURN || offset != (int32_t)offset) {
		give_up(runner);
		return;
	}
	runner->state.is_plt = false;
	runner->state.known = true;
	runner->state.cfa = (struct cfi_rule){.how = CFI_VALUE, .base = (uint8_t)base, .offset = (int32_t)offset};
}

static void cfa_set_base(struct runner *runner, uint64_t base)
{
	if (runner->state.cfa.how == CFI_VALUE && !runner->state.is_plt)
		cfa_set(runner, base, runner->state.cfa.offset);
	else
		give_up(runner);
}

static void cfa_set_offset(struct runner *runner, int64_t offset)
{
	if (runner->state.cfa.how == CFI_VALUE && !runner->state.is_plt)
		cfa_set(runner, runner->state.cfa.base, offset);
	else
		give_up(runner);
}

static void cfa_set_expression(struct runner *runner)
{
	struct span expression = cfi_slice(&runner->cursor, cfi_uleb(&runner->cursor));
	struct cfi_state *state = &runner->state;

	/* Their registers are by other numbers, and compilers for arm64 need none. */
	if (runner->cie->arch->links) {
		give_up(runner);
		return;
	}
	state->is_plt = cfi_expression_plt(expression, &state->plt);
	state->known = state->is_plt || cfi_expression(expression, &state->cfa);
	if (state->is_plt)
		state->cfa = (struct cfi_rule){.how = CFI_VALUE, .base = CFI_SP, .offset = state->plt.offset};
}

static bool state_remember(struct runner *runner)
{
	if (runner->n_remembered == STATES_MAX)
		return false;
	runner->remembered[runner->n_remembered++] = runner->state;
	return true;
}

static bool state_restore(struct runner *runner)
{
	if (runner->n_remembered == 0)
		return false;
	runner->state = runner->remembered[--runner->n_remembered];
	return true;
}

static bool location_set(struct runner *runner)
{
	uint64_t location;

	return runner->run && cfi_pointer(&runner->cursor, runner->cie->encoding, runner->run->address, &location) &&
	       advance_to(runner, location);
}

static bool extended(struct runner *runner, uint8_t operation)
{
	struct cfi_cursor *cursor = &runner->cursor;
	uint64_t target;

	switch (operation) {
	case CFA_NOP:
		return true;
	case CFA_SET_LOC:
		return location_set(runner);
	case CFA_ADVANCE_LOC1:
		return advance(runner, cfi_fixed(cursor, 1));
	case CFA_ADVANCE_LOC2:
		return advance(runner, cfi_fixed(cursor, 2));
	case CFA_ADVANCE_LOC4:
		return advance(runner, cfi_fixed(cursor, 4));
	case CFA_OFFSET_EXTENDED:
		target = register_take(runner);
		rule_offset(runner, CFI_MEMORY, target, factored_uleb(runner));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		target = register_take(runner);
		rule_offset(runner, CFI_MEMORY, target, factored(runner, cfi_sleb(cursor)));
		return true;
	case CFA_VAL_OFFSET:
		target = register_take(runner);
		rule_offset(runner, CFI_VALUE, target, factored_uleb(runner));
		return true;
	case CFA_VAL_OFFSET_SF:
		target = register_take(runner);
		rule_offset(runner, CFI_VALUE, target, factored(runner, cfi_sleb(cursor)));
		return true;
	case CFA_RESTORE_EXTENDED:
		rule_restore(runner, register_take(runner));
		return true;
	case CFA_UNDEFINED:
		rule_set(runner, register_take(runner), (struct cfi_rule){.how = CFI_UNDEFINED});
		return true;
	case CFA_SAME_VALUE:
		rule_set(runner, register_take(runner), (struct cfi_rule){.how = CFI_SAME});
		return true;
	case CFA_REGISTER:
		rule_register(runner);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		rule_expression(runner, operation == CFA_VAL_EXPRESSION);
		return true;
	case CFA_REMEMBER_STATE:
		return state_remember(runner);
	case CFA_RESTORE_STATE:
		return state_restore(runner);
	case CFA_DEF_CFA:
		target = register_take(runner);
		cfa_set(runner, target, (int64_t)cfi_uleb(cursor));
		return true;
	case CFA_DEF_CFA_SF:
		target = register_take(runner);
		cfa_set(runner, target, factored(runner, cfi_sleb(cursor)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		cfa_set_base(runner, register_take(runner));
		return true;
	case CFA_DEF_CFA_OFFSET:
		cfa_set_offset(runner, (int64_t)cfi_uleb(cursor));
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		cfa_set_offset(runner, factored(runner, cfi_sleb(cursor)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		cfa_set_expression(runner);
		return true;
	case CFA_GNU_ARGS_SIZE: /* of exceptions, not of a walk */
		cfi_uleb(cursor);
		return true;
	case CFA_NEGATE_RA_STATE: /* a walk takes signatures off anyway */
	case CFA_NEGATE_RA_STATE_WITH_PC:
		return runner->cie->arch->links;
	default:
		return false;
	}
}

static bool operate(struct runner *runner)
{
	uint8_t operation = (uint8_t)cfi_fixed(&runner->cursor, 1);
	uint8_t operand = operation & OPERAND_MASK;

	switch (operation & ~OPERAND_MASK) {
	case CFA_ADVANCE_LOC:
		return advance(runner, operand);
	case CFA_OFFSET:
		rule_offset(runner, CFI_MEMORY, register_of(runner, operand), factored_uleb(runner));
		return true;
	case CFA_RESTORE:
		rule_restore(runner, register_of(runner, operand));
		return true;
	default:
		return extended(runner, operation);
	}
}

static bool operate_all(struct runner *runner)
{
	while (runner->cursor.at < runner->cursor.span.n)
		if (!operate(runner) || runner->cursor.failed)
			return false;
	return true;
}

bool cfi_program_run(const struct cfi_run *run, struct span program)
{
	struct runner runner = {
		.run = run,
		.cie = run->cie,
		.cursor = {.span = program},
		.location = run->from,
		.state = run->cie->initial,
	};
	bool done = operate_all(&runner);

	/* What follows a mistake is not known. */
	runner.state.known &= done;
	row_end(&runner, run->to);
	return done;
}

bool cfi_program_start(struct cfi_cie *cie, struct span program)
{
	struct runner runner = {.cie = cie, .cursor = {.span = program}, .state = cie->initial};
	bool done = operate_all(&runner);

	cie->initial = runner.state;
	return done;
}
