// SPDX-License-Identifier: BSD-2-Clause
#include "guest/x86/interpreter.h"

#include <glib.h>
#include <string.h>

#include "lib/code/x86/instruction.h"

/* RFLAGS (SDM Vol. 1, 3.4.3.1) */
#define FLAG_CF UINT64_C(0x1)
#define FLAG_PF UINT64_C(0x4)
#define FLAG_AF UINT64_C(0x10)
#define FLAG_ZF UINT64_C(0x40)
#define FLAG_SF UINT64_C(0x80)
#define FLAG_OF UINT64_C(0x800)

#define PREFIX_OPERAND_SIZE 0x66u
#define PREFIX_GS 0x65u
#define PREFIX_LOCK 0xf0u
#define TWO_BYTES 0x100u /* opcodes behind 0f */

/* The eight operations of opcodes 00 to 3b and of group 1 (SDM Vol. 2D, table A-6). */
enum { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

/* An instruction, taken apart. */
struct decoded {
	uint8_t code[2 * INSTRUCTION_LENGTH_MAX]; /* 0 behind the instruction, so that nothing is read behind it */
	size_t length;
	unsigned opcode;
	bool operand_size, wide, rex, gs;
	uint8_t rex_bits;
	uint8_t mod, reg, rm; /* reg and rm with REX's bits */
	bool is_memory, rip_relative;
	uint8_t base, index, scale; /* 16: none */
	int64_t displacement, immediate;
};
#define NO_REGISTER 16u

/* ---- decoding ---- */

static int64_t signed_at(const uint8_t *code, unsigned bytes)
{
	uint64_t value = 0;
	const unsigned unused = 64 - 8 * bytes;

	memcpy(&value, code, bytes);
	return bytes == 0 ? 0 : (int64_t)(value << unused) >> unused;
}

static bool prefixes_decode(struct decoded *in, size_t *at)
{
	const size_t opcode = instruction_opcode(in->code, in->length);

	for (; *at < opcode; ++*at) {
		const uint8_t byte = in->code[*at];

		in->rex = (byte & 0xf0) == 0x40;
		in->rex_bits = in->rex ? byte & 0xf : 0;
		switch (byte) {
		case PREFIX_OPERAND_SIZE:
			in->operand_size = true;
			break;
		case PREFIX_GS:
			in->gs = true;
			break;
		case PREFIX_LOCK:
		case 0x2e: /* CS, DS, ES, SS: nothing in 64-bit mode */
		case 0x36:
		case 0x3e:
		case 0x26:
			break;
		default: /* FS, REP, REPNE and 32-bit addresses */
			if (!in->rex)
				return false;
		}
	}
	in->wide = in->rex_bits & 8;
	return true;
}

/* SDM Vol. 2, tables 2-2 and 2-3. Returns how many bytes it has. */
static size_t modrm_decode(struct decoded *in, size_t at)
{
	const size_t start = at;
	const uint8_t byte = in->code[at++];
	unsigned bytes = 0;

	in->mod = byte >> 6;
	in->reg = (uint8_t)((byte >> 3 & 7) | (in->rex_bits & 4) << 1);
	in->rm = (uint8_t)((byte & 7) | (in->rex_bits & 1) << 3);
	in->is_memory = in->mod != 3;
	in->base = in->rm;
	in->index = NO_REGISTER;
	if (!in->is_memory)
		return at - start;
	if ((byte & 7) == 4) {
		const uint8_t sib = in->code[at++];

		in->scale = sib >> 6;
		in->index = (uint8_t)((sib >> 3 & 7) | (in->rex_bits & 2) << 2);
		in->base = (uint8_t)((sib & 7) | (in->rex_bits & 1) << 3);
		if (in->index == 4)
			in->index = NO_REGISTER;
	}
	if (in->mod == 0 && (in->base & 7) == 5) {
		in->rip_relative = (byte & 7) == 5;
		in->base = NO_REGISTER;
		bytes = 4;
	} else if (in->mod != 0) {
		bytes = in->mod == 1 ? 1 : 4;
	}
	in->displacement = signed_at(in->code + at, bytes);
	return at + bytes - start;
}

/* Which of the opcodes below have ModRM; the others have not. */
static bool has_modrm(unsigned opcode)
{
	if (opcode >= TWO_BYTES) {
		const unsigned byte = opcode - TWO_BYTES;

		return !(byte >= 0x80 && byte <= 0x8f);
	}
	return (opcode < 0x40 && (opcode & 7) < 4) || opcode == 0x63 || opcode == 0x69 || opcode == 0x6b ||
	       (opcode >= 0x80 && opcode <= 0x8d) || opcode == 0xc0 || opcode == 0xc1 || opcode == 0xc6 ||
	       opcode == 0xc7 || (opcode >= 0xd0 && opcode <= 0xd3) || opcode == 0xf6 || opcode == 0xf7 ||
	       opcode == 0xfe || opcode == 0xff;
}

/* Whether there is code for the opcode in execute(). */
static bool is_known(const struct decoded *in)
{
	const unsigned opcode = in->opcode, byte = opcode & 0xff, group = in->reg & 7;

	if (opcode >= TWO_BYTES)
		return byte == 0x1f || byte == 0x18 || (byte & 0xf0) == 0x40 || (byte & 0xf0) == 0x80 ||
		       (byte & 0xf0) == 0x90 || byte == 0xa3 || byte == 0xab || byte == 0xb3 || byte == 0xaf ||
		       byte == 0xb6 || byte == 0xb7 || byte == 0xbe || byte == 0xbf || (byte == 0xba && group >= 4);
	if (opcode < 0x40)
		return (opcode & 7) < 6;
	if (opcode == 0xf6 || opcode == 0xf7)
		return group < 4;
	if (opcode == 0xfe)
		return group < 2;
	if (opcode == 0xff)
		return group < 2 || group == 6;
	if (opcode == 0xc0 || opcode == 0xc1 || (opcode >= 0xd0 && opcode <= 0xd3))
		return group >= 4;
	return (opcode >= 0x50 && opcode <= 0x5f) || opcode == 0x63 || (opcode >= 0x68 && opcode <= 0x6b) ||
	       (opcode >= 0x70 && opcode <= 0x81) || (opcode >= 0x83 && opcode <= 0x8b) ||
	       (opcode == 0x8d && in->is_memory) || (opcode >= 0x90 && opcode <= 0x97) || opcode == 0x98 ||
	       opcode == 0x99 || opcode == 0xa8 || opcode == 0xa9 || (opcode >= 0xb0 && opcode <= 0xbf) ||
	       opcode == 0xc6 || opcode == 0xc7 || opcode == 0xe9 || opcode == 0xeb;
}

/* Jcc has opcodes 70 to 7f and 0f 80 to 8f. */
static bool is_conditional(const struct decoded *in)
{
	return (in->opcode & ~0xfu) == 0x70 || (in->opcode & ~0xfu) == (TWO_BYTES | 0x80);
}

static bool is_jump(const struct decoded *in)
{
	return is_conditional(in) || in->opcode == 0xe9 || in->opcode == 0xeb;
}

/* PUSH and POP of a register, and PUSH of an immediate: with 16 bits, compilers have no use for them. */
static bool is_stack(const struct decoded *in)
{
	return (in->opcode & ~0xfu) == 0x50 || in->opcode == 0x68 || in->opcode == 0x6a;
}

static bool decode(struct decoded *in, const uint8_t *code, size_t n)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;

	*in = (struct decoded){.length = instruction_length(code, n)};
	memcpy(in->code, code, in->length);
	if (in->length == sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0) {
		in->opcode = 0x90;
		return true;
	}
	if (in->length == 0 || !prefixes_decode(in, &at))
		return false;
	in->opcode = in->code[at++];
	if (in->opcode == 0x0f)
		in->opcode = TWO_BYTES | in->code[at++];
	if (has_modrm(in->opcode))
		at += modrm_decode(in, at);
	/* What is left is an immediate; instruction_length has checked that all is there. */
	const size_t left = in->length - MIN(at, in->length);
	if (at > in->length || left > 8)
		return false;
	in->immediate = signed_at(in->code + at, (unsigned)left);
	return is_known(in) && !(in->operand_size && (is_jump(in) || is_stack(in)));
}

/* ---- memory and registers ---- */

bool interpreter_load(struct interpreter *self, uint64_t address, unsigned bytes, uint64_t *value)
{
	uint8_t data[8] = {0};

	if (!self->read(self->data, address, data, bytes))
		return false;
	for (unsigned i = 0; i < self->n_writes; i++) {
		const struct interpreter_write *write = &self->writes[i];

		for (unsigned j = 0; j < bytes; j++)
			if (address + j - write->address < write->bytes)
				data[j] = (uint8_t)(write->value >> 8 * (address + j - write->address));
	}
	memcpy(value, data, sizeof(*value));
	return true;
}

static enum interpreter_step store(struct interpreter *self, uint64_t address, unsigned bytes, uint64_t value)
{
	if (self->n_writes == INTERPRETER_WRITES_MAX)
		return INTERPRETER_UNKNOWN;
	self->writes[self->n_writes++] = (struct interpreter_write){address, value, bytes};
	return INTERPRETER_NEXT;
}

static uint64_t truncated(uint64_t value, unsigned bytes)
{
	return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

static uint64_t extended(uint64_t value, unsigned bytes)
{
	const unsigned unused = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(value << unused) >> unused);
}

/* Without REX, the byte registers 4 to 7 are AH, CH, DH and BH. */
static uint64_t register_get(const struct interpreter *self, const struct decoded *in, unsigned number, unsigned bytes)
{
	if (bytes == 1 && !in->rex && number >= 4)
		return self->registers[number - 4] >> 8 & 0xff;
	return truncated(self->registers[number], bytes);
}

/* 32-bit results clear the upper half; smaller ones leave the rest (SDM Vol. 1, 3.4.1.1). */
static void register_set(struct interpreter *self, const struct decoded *in, unsigned number, unsigned bytes,
                         uint64_t value)
{
	uint64_t mask = bytes >= 4 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;

	value = truncated(value, bytes);
	if (bytes == 1 && !in->rex && number >= 4) {
		number -= 4;
		mask <<= 8;
		value <<= 8;
	}
	self->registers[number] = (self->registers[number] & ~mask) | value;
}

static uint64_t address_of(const struct interpreter *self, const struct decoded *in)
{
	uint64_t address = (uint64_t)in->displacement;

	if (in->rip_relative)
		address += self->rip + in->length;
	if (in->base != NO_REGISTER)
		address += self->registers[in->base];
	if (in->index != NO_REGISTER)
		address += self->registers[in->index] << in->scale;
	return address;
}

static bool rm_get(struct interpreter *self, const struct decoded *in, unsigned bytes, uint64_t *value)
{
	if (!in->is_memory) {
		*value = register_get(self, in, in->rm, bytes);
		return true;
	}
	return interpreter_load(self, address_of(self, in) + (in->gs ? self->gs_base : 0), bytes, value);
}

static enum interpreter_step rm_set(struct interpreter *self, const struct decoded *in, unsigned bytes, uint64_t value)
{
	if (in->is_memory)
		return store(self, address_of(self, in) + (in->gs ? self->gs_base : 0), bytes, value);
	register_set(self, in, in->rm, bytes, value);
	return INTERPRETER_NEXT;
}

/* Of the general operand: 8 bytes with REX.W, 2 with the prefix. */
static unsigned operand_bytes(const struct decoded *in)
{
	return in->wide ? 8 : in->operand_size ? 2 : 4;
}

/* The same where bit 0 of the opcode tells it from a byte. */
static unsigned sized_bytes(const struct decoded *in)
{
	return in->opcode & 1 ? operand_bytes(in) : 1;
}

/* ---- flags ---- */

static void flags_set(struct interpreter *self, uint64_t result, unsigned bytes, bool carry, bool overflow)
{
	const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);

	self->flags = (carry ? FLAG_CF : 0) | (overflow ? FLAG_OF : 0) | (truncated(result, bytes) == 0 ? FLAG_ZF : 0) |
	              (result & sign ? FLAG_SF : 0) | (__builtin_parity((unsigned)result & 0xff) ? 0 : FLAG_PF);
}

/* SDM Vol. 1, appendix B. Parity is not known behind every instruction: *known is false. */
static bool condition(const struct interpreter *self, unsigned code, bool *known)
{
	const bool less = !(self->flags & FLAG_SF) != !(self->flags & FLAG_OF);
	const bool conditions[] = {self->flags & FLAG_OF,
	                           self->flags & FLAG_CF,
	                           self->flags & FLAG_ZF,
	                           self->flags & (FLAG_CF | FLAG_ZF),
	                           self->flags & FLAG_SF,
	                           false,
	                           less,
	                           less || (self->flags & FLAG_ZF)};

	*known = code >> 1 != 5;
	return conditions[code >> 1 & 7] != (code & 1);
}

static uint64_t arithmetic(struct interpreter *self, unsigned operation, uint64_t a, uint64_t b, unsigned bytes)
{
	const uint64_t sign = UINT64_C(1) << (8 * bytes - 1), carry = self->flags & FLAG_CF;
	uint64_t result;

	switch (operation) {
	case ADD:
	case ADC:
		result = truncated(a + b + (operation == ADC ? carry : 0), bytes);
		flags_set(self, result, bytes, result < a || (operation == ADC && carry && result == a),
		          (a ^ result) & (b ^ result) & sign);
		self->flags |= (a ^ b ^ result) & FLAG_AF;
		return result;
	case SUB:
	case SBB:
	case CMP:
		result = truncated(a - b - (operation == SBB ? carry : 0), bytes);
		flags_set(self, result, bytes, a < b || (operation == SBB && carry && a == b),
		          (a ^ b) & (a ^ result) & sign);
		self->flags |= (a ^ b ^ result) & FLAG_AF;
		return result;
	case OR:
		result = a | b;
		break;
	case AND:
		result = a & b;
		break;
	default:
		result = a ^ b;
		break;
	}
	flags_set(self, result, bytes, false, false);
	return result;
}

/* ---- execution ---- */

static enum interpreter_step run_arithmetic(struct interpreter *self, const struct decoded *in)
{
	const unsigned operation = in->opcode >> 3, form = in->opcode & 7, bytes = sized_bytes(in);
	const uint64_t from = register_get(self, in, in->reg, bytes);
	uint64_t value;

	if (form >= 4) {
		value = arithmetic(self, operation, truncated(self->registers[INTERPRETER_RAX], bytes),
		                   truncated((uint64_t)in->immediate, bytes), bytes);
		if (operation != CMP)
			register_set(self, in, INTERPRETER_RAX, bytes, value);
		return INTERPRETER_NEXT;
	}
	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	value = form < 2 ? arithmetic(self, operation, value, from, bytes)
	                 : arithmetic(self, operation, from, value, bytes);
	if (operation == CMP)
		return INTERPRETER_NEXT;
	if (form < 2)
		return rm_set(self, in, bytes, value);
	register_set(self, in, in->reg, bytes, value);
	return INTERPRETER_NEXT;
}

/* Groups 1 (80, 81, 83), and TEST, NOT and NEG of group 3, INC and DEC of groups 4 and 5. */
static enum interpreter_step run_group(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = sized_bytes(in), group = in->reg & 7;
	const uint64_t immediate = truncated((uint64_t)in->immediate, bytes), carry = self->flags & FLAG_CF;
	uint64_t value;

	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	switch (in->opcode) {
	case 0xf6:
	case 0xf7:
		if (group < 2) {
			arithmetic(self, AND, value, immediate, bytes);
			return INTERPRETER_NEXT;
		}
		value = group == 2 ? truncated(~value, bytes) : arithmetic(self, SUB, 0, value, bytes);
		break;
	case 0xfe:
	case 0xff:
		value = arithmetic(self, group == 0 ? ADD : SUB, value, 1, bytes);
		self->flags = (self->flags & ~FLAG_CF) | carry;
		break;
	default:
		value = arithmetic(self, group, value, immediate, bytes);
		if (group == CMP)
			return INTERPRETER_NEXT;
		break;
	}
	return rm_set(self, in, bytes, value);
}

/* SHL, SHR and SAR by an immediate, by 1 and by CL. OF is defined for shifts by 1 only. */
static enum interpreter_step run_shift(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = sized_bytes(in), bits = 8 * bytes, group = in->reg & 7;
	const unsigned by = (in->opcode < 0xd0   ? (unsigned)in->immediate
	                     : in->opcode < 0xd2 ? 1
	                                         : (unsigned)self->registers[INTERPRETER_RCX]) &
	                    (bytes == 8 ? 63 : 31);
	uint64_t value;

	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	if (by == 0)
		return INTERPRETER_NEXT;
	const uint64_t before = group == 7 ? extended(value, bytes) : value;
	const bool left = group == 4 || group == 6;
	const bool carry = left ? by <= bits && (before >> (bits - by) & 1)
	                        : (group == 7 ? (uint64_t)((int64_t)before >> (by - 1)) : before >> (by - 1)) & 1;

	value = truncated(left ? before << by : group == 7 ? (uint64_t)((int64_t)before >> by) : before >> by, bytes);
	const bool top = value >> (bits - 1) & 1;
	flags_set(self, value, bytes, carry,
	          by == 1 && (left ? top != carry : group == 5 && (before >> (bits - 1) & 1)));
	return rm_set(self, in, bytes, value);
}

static enum interpreter_step run_push(struct interpreter *self, uint64_t value)
{
	self->registers[INTERPRETER_RSP] -= 8;
	return store(self, self->registers[INTERPRETER_RSP], 8, value);
}

static enum interpreter_step run_pop(struct interpreter *self, unsigned number)
{
	uint64_t value;

	if (!interpreter_load(self, self->registers[INTERPRETER_RSP], 8, &value))
		return INTERPRETER_FAULT;
	self->registers[INTERPRETER_RSP] += 8;
	self->registers[number] = value;
	return INTERPRETER_NEXT;
}

/* MOVZX, MOVSX, MOVSXD: `from` bytes become as many as the operand has. */
static enum interpreter_step run_extend(struct interpreter *self, const struct decoded *in, unsigned from, bool sign)
{
	uint64_t value;

	if (!rm_get(self, in, from, &value))
		return INTERPRETER_FAULT;
	register_set(self, in, in->reg, operand_bytes(in), sign ? extended(value, from) : value);
	return INTERPRETER_NEXT;
}

static enum interpreter_step run_multiply(struct interpreter *self, const struct decoded *in, bool immediate)
{
	const unsigned bytes = operand_bytes(in);
	uint64_t value;
	__int128 product;

	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	product = (__int128)(int64_t)extended(value, bytes) *
	          (immediate ? in->immediate : (int64_t)extended(register_get(self, in, in->reg, bytes), bytes));
	value = truncated((uint64_t)product, bytes);
	const bool overflow = product != (int64_t)extended(value, bytes);
	flags_set(self, value, bytes, overflow, overflow);
	register_set(self, in, in->reg, bytes, value);
	return INTERPRETER_NEXT;
}

/* BT, BTS, BTR and BTC: with a register for the number, it may be of a bit far behind the address. */
static enum interpreter_step run_bit(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = operand_bytes(in), byte = in->opcode & 0xff;
	const unsigned operation = byte == 0xba ? in->reg & 3 : byte == 0xa3 ? 0 : byte == 0xab ? 1 : 2;
	const int64_t number =
		byte == 0xba ? in->immediate : (int64_t)extended(register_get(self, in, in->reg, bytes), bytes);
	const unsigned bit = (unsigned)number & (8 * bytes - 1);
	const uint64_t mask = UINT64_C(1) << bit;
	uint64_t address = 0, value;

	if (!in->is_memory) {
		value = register_get(self, in, in->rm, bytes);
	} else {
		address = address_of(self, in) + (in->gs ? self->gs_base : 0);
		if (byte != 0xba)
			address += (uint64_t)((number - bit) / 8);
		if (!interpreter_load(self, address, bytes, &value))
			return INTERPRETER_FAULT;
	}
	self->flags = (self->flags & ~FLAG_CF) | (value & mask ? FLAG_CF : 0);
	if (operation == 0)
		return INTERPRETER_NEXT;
	value = operation == 1 ? value | mask : operation == 2 ? value & ~mask : value ^ mask;
	if (in->is_memory)
		return store(self, address, bytes, value);
	register_set(self, in, in->rm, bytes, value);
	return INTERPRETER_NEXT;
}

static enum interpreter_step run_move_if(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = operand_bytes(in);
	uint64_t value;
	bool known, is_true = condition(self, in->opcode & 0xf, &known);

	if (!known)
		return INTERPRETER_UNKNOWN;
	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	/* A 32-bit register is extended even if nothing is moved. */
	register_set(self, in, in->reg, bytes, is_true ? value : register_get(self, in, in->reg, bytes));
	return INTERPRETER_NEXT;
}

static enum interpreter_step run_two_bytes(struct interpreter *self, const struct decoded *in)
{
	const unsigned byte = in->opcode & 0xff;
	bool known, is_true;

	switch (byte & 0xf0) {
	case 0x40:
		return run_move_if(self, in);
	case 0x90:
		is_true = condition(self, byte & 0xf, &known);
		return known ? rm_set(self, in, 1, is_true) : INTERPRETER_UNKNOWN;
	default:
		break;
	}
	switch (byte) {
	case 0xaf:
		return run_multiply(self, in, false);
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return run_extend(self, in, byte & 1 ? 2 : 1, byte >= 0xbe);
	case 0xa3:
	case 0xab:
	case 0xb3:
	case 0xba:
		return run_bit(self, in);
	default: /* NOP and PREFETCH */
		return INTERPRETER_NEXT;
	}
}

static enum interpreter_step run_exchange(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = sized_bytes(in);
	const uint64_t before = register_get(self, in, in->reg, bytes);
	uint64_t value;

	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	register_set(self, in, in->reg, bytes, value);
	return rm_set(self, in, bytes, before);
}

/* MOV and LEA (88 to 8d), TEST (84, 85) and XCHG (86, 87). */
static enum interpreter_step run_move(struct interpreter *self, const struct decoded *in)
{
	const unsigned bytes = sized_bytes(in);
	const uint64_t from = register_get(self, in, in->reg, bytes);
	uint64_t value;

	switch (in->opcode) {
	case 0x88:
	case 0x89:
		return rm_set(self, in, bytes, from);
	case 0x8d:
		register_set(self, in, in->reg, operand_bytes(in), address_of(self, in));
		return INTERPRETER_NEXT;
	case 0x86:
	case 0x87:
		return run_exchange(self, in);
	default:
		break;
	}
	if (!rm_get(self, in, bytes, &value))
		return INTERPRETER_FAULT;
	if (in->opcode >= 0x8a)
		register_set(self, in, in->reg, bytes, value);
	else
		arithmetic(self, AND, value, from, bytes);
	return INTERPRETER_NEXT;
}

/* What has its register in the opcode, or none. */
static enum interpreter_step run_short(struct interpreter *self, const struct decoded *in)
{
	const unsigned number = (in->opcode & 7) | (in->rex_bits & 1u) << 3, bytes = operand_bytes(in);
	const uint64_t rax = self->registers[INTERPRETER_RAX];
	uint64_t value;

	switch (in->opcode & 0xf8) {
	case 0x50:
		return run_push(self, self->registers[number]);
	case 0x58:
		return run_pop(self, number);
	case 0x90: /* XCHG with rax, of which 90 itself is NOP */
		value = register_get(self, in, number, bytes);
		if (number != INTERPRETER_RAX) {
			register_set(self, in, number, bytes, rax);
			register_set(self, in, INTERPRETER_RAX, bytes, value);
		}
		return INTERPRETER_NEXT;
	case 0x68:
		return run_push(self, (uint64_t)in->immediate);
	case 0xb0:
		register_set(self, in, number, 1, (uint64_t)in->immediate);
		return INTERPRETER_NEXT;
	case 0xb8:
		register_set(self, in, number, bytes, (uint64_t)in->immediate);
		return INTERPRETER_NEXT;
	case 0xa8:
		arithmetic(self, AND, truncated(rax, sized_bytes(in)),
		           truncated((uint64_t)in->immediate, sized_bytes(in)), sized_bytes(in));
		return INTERPRETER_NEXT;
	default:
		break;
	}
	if (in->opcode == 0x98) /* CBW, CWDE, CDQE */
		register_set(self, in, INTERPRETER_RAX, bytes, extended(truncated(rax, bytes / 2), bytes / 2));
	else /* 99: CWD, CDQ, CQO */
		register_set(self, in, INTERPRETER_RDX, bytes, extended(rax, bytes) >> 63 ? UINT64_MAX : 0);
	return INTERPRETER_NEXT;
}

static enum interpreter_step execute(struct interpreter *self, const struct decoded *in)
{
	uint64_t value;

	if (in->opcode >= TWO_BYTES)
		return run_two_bytes(self, in);
	if (in->opcode < 0x40)
		return run_arithmetic(self, in);
	switch (in->opcode) {
	case 0x63:
		return run_extend(self, in, in->wide ? 4 : operand_bytes(in), true);
	case 0x69:
	case 0x6b:
		return run_multiply(self, in, true);
	case 0x80:
	case 0x81:
	case 0x83:
	case 0xf6:
	case 0xf7:
	case 0xfe:
		return run_group(self, in);
	case 0xff:
		if ((in->reg & 7) != 6)
			return run_group(self, in);
		return rm_get(self, in, 8, &value) ? run_push(self, value) : INTERPRETER_FAULT;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return run_shift(self, in);
	case 0xc6:
	case 0xc7:
		return rm_set(self, in, sized_bytes(in), (uint64_t)in->immediate);
	default:
		return in->opcode >= 0x84 && in->opcode <= 0x8d ? run_move(self, in) : run_short(self, in);
	}
}

enum interpreter_step interpreter_step(struct interpreter *self, const uint8_t *code, size_t n)
{
	enum interpreter_step step = INTERPRETER_NEXT;
	struct decoded in;
	bool jumps, known = true;

	if (!decode(&in, code, n))
		return INTERPRETER_UNKNOWN;
	jumps = is_jump(&in);
	if (is_conditional(&in))
		jumps = condition(self, in.opcode & 0xf, &known);
	else if (!jumps)
		step = execute(self, &in);
	if (step != INTERPRETER_NEXT || !known)
		return known ? step : INTERPRETER_UNKNOWN;
	self->rip += in.length + (jumps ? (uint64_t)in.immediate : 0);
	return INTERPRETER_NEXT;
}

bool interpreter_knows(const uint8_t *code, size_t n)
{
	struct decoded in;

	return decode(&in, code, n);
}

static bool is_locked(const struct decoded *in)
{
	const size_t opcode = instruction_opcode(in->code, in->length);

	return memchr(in->code, PREFIX_LOCK, opcode) != NULL;
}

bool interpreter_is_exact(const uint8_t *code, size_t n)
{
	struct decoded in;

	if (!decode(&in, code, n) || is_locked(&in))
		return false;
	const unsigned opcode = in.opcode, group = in.reg & 7;

	if (opcode >= TWO_BYTES) /* NOP, and MOVZX and MOVSX */
		return opcode == (TWO_BYTES | 0x1f) || (opcode & ~0x9u) == (TWO_BYTES | 0xb6);
	if (opcode < 0x40)
		return opcode >> 3 == CMP || (opcode & 7) >= 2 || !in.is_memory;
	if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83)
		return group == CMP || !in.is_memory;
	if (opcode == 0x88 || opcode == 0x89 || opcode == 0xc6 || opcode == 0xc7)
		return !in.is_memory;
	return (opcode & ~0x7u) == 0x50 || opcode == 0x63 || opcode == 0x84 || opcode == 0x85 || opcode == 0x8a ||
	       opcode == 0x8b || opcode == 0x8d || opcode == 0x90 || opcode == 0xa8 || opcode == 0xa9 ||
	       (opcode & ~0xfu) == 0xb0;
}
