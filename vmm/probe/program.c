// SPDX-License-Identifier: BSD-2-Clause
#include "probe/program.h"

#include <stdlib.h>
#include <string.h>

/* What an operand is, and what the constant means: the words of VPROF_PROGRAM_OPERATIONS. */
enum class {
	NONE,
	NUMBER,
	TEXT,
	STACK,
	KEY,
	VALUE,
	SENT,
	ANY,
	TARGET,
	BUILTIN,
	FRAMES,
	ARGUMENT,
	FIELD,
	FIELD_TEXT,
	BYTES,
	TEXT_BYTES,
	ACTION
};

static const struct {
	const char *name;
	enum class dst, a, b, constant;
} operations[] = {
#define X(id, dst, a, b, constant) {#id, dst, a, b, constant},
	VPROF_PROGRAM_OPERATIONS(X)
#undef X
};

/* ---- check ---- */

struct checking {
	const struct vprof_instruction *all;
	size_t n, at;
	const struct program_facts *facts;
	GError **error;
};

static bool fail(const struct checking *checking, const char *why)
{
	g_set_error(checking->error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID, "instruction %zu of the program %s",
	            checking->at, why);
	return false;
}

static const struct program_map_spec *map_of(const struct checking *checking)
{
	return program_map_spec(checking->facts->maps[checking->all[checking->at].map]);
}

static bool check_operand(const struct checking *checking, enum class class, unsigned first)
{
	const struct vprof_instruction *instruction = &checking->all[checking->at];
	unsigned words = 0;

	switch (class) {
	case NUMBER:
		words = 1;
		break;
	case TEXT:
		words = VPROF_PROGRAM_TEXT_WORDS;
		break;
	case STACK:
		words = VPROF_PROGRAM_STACK_WORDS;
		break;
	case KEY:
		words = map_of(checking)->key_words;
		break;
	case VALUE:
		words = map_of(checking)->kind == VPROF_MAP_TEXT ? VPROF_PROGRAM_TEXT_WORDS : 1;
		break;
	case SENT:
		words = instruction->b;
		break;
	case NONE:
		return first == 0 || fail(checking, "has an operand too many");
	default:
		return true;
	}
	if (class == SENT && words > VPROF_PROGRAM_SENT_WORDS)
		return fail(checking, "sends too many words");
	return first + words <= VPROF_PROGRAM_FRAME_WORDS || fail(checking, "has an operand beyond the frame");
}

static bool check_constant(const struct checking *checking, enum class class, int64_t constant)
{
	const struct program_facts *facts = checking->facts;
	const bool is_field = constant >= 0 && constant < facts->n_fields;

	switch (class) {
	case TARGET:
		return (constant > (int64_t)checking->at && constant <= (int64_t)checking->n) ||
		       fail(checking, "jumps backward, or too far");
	case BUILTIN:
		return (constant >= 0 && constant < VPROF_PROGRAM_NUMBER_COUNT) || fail(checking, "has no such number");
	case FRAMES:
		return (constant >= 1 && constant < VPROF_PROGRAM_STACK_WORDS) ||
		       fail(checking, "asks for too many frames");
	case ARGUMENT:
		return (constant >= 0 && constant < facts->n_arguments) || fail(checking, "has no such argument");
	case FIELD:
		return (is_field && !(facts->texts >> constant & 1)) || fail(checking, "has no such field");
	case FIELD_TEXT:
		return (is_field && facts->texts >> constant & 1) || fail(checking, "has no such text");
	case BYTES:
		return constant == 8 || constant == 4 || constant == 2 || constant == 1 || constant == -4 ||
		       constant == -2 || constant == -1 || fail(checking, "reads a number of no size that there is");
	case TEXT_BYTES:
		return (constant >= 1 && constant <= (int64_t)VPROF_PROGRAM_TEXT_BYTES) ||
		       fail(checking, "has a text that is too long");
	case ACTION:
		return (constant >= 0 && constant <= VPROF_PROGRAM_ACTION_MAX) || fail(checking, "has no action");
	default:
		return true;
	}
}

static bool check_map(const struct checking *checking, unsigned operation)
{
	const enum vprof_map_kind kind = map_of(checking)->kind;

	switch (operation) {
	case VPROF_PROGRAM_MAP_GET:
		return (kind != VPROF_MAP_STATS && kind != VPROF_MAP_HIST && kind != VPROF_MAP_LHIST) ||
		       fail(checking, "gets what is no number and no text");
	case VPROF_PROGRAM_MAP_SET:
		return kind == VPROF_MAP_NUMBER || kind == VPROF_MAP_TEXT ||
		       fail(checking, "sets what is no number and no text");
	case VPROF_PROGRAM_MAP_ADD:
		return kind != VPROF_MAP_TEXT || fail(checking, "adds to a text");
	default:
		return true;
	}
}

static bool check_instruction(const struct checking *checking)
{
	const struct vprof_instruction *instruction = &checking->all[checking->at];
	const unsigned operation = instruction->operation;

	if (operation >= VPROF_PROGRAM_OPERATION_COUNT)
		return fail(checking, "is none that there is");
	const bool has_map = operations[operation].a == KEY;
	if (has_map && instruction->map >= checking->facts->n_maps)
		return fail(checking, "has no such map");
	return (!has_map || check_map(checking, operation)) &&
	       check_operand(checking, operations[operation].dst, instruction->dst) &&
	       check_operand(checking, operations[operation].a, instruction->a) &&
	       check_operand(checking, operations[operation].b, instruction->b) &&
	       check_constant(checking, operations[operation].constant, instruction->constant);
}

bool program_check(const struct vprof_instruction *instructions, size_t n, const struct program_facts *facts,
                   GError **error)
{
	struct checking checking = {.all = instructions, .n = n, .facts = facts, .error = error};

	if (n > VPROF_PROGRAM_INSTRUCTIONS_MAX) {
		g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_LIMIT,
		            "the program has %zu instructions; it may have %u", n, VPROF_PROGRAM_INSTRUCTIONS_MAX);
		return false;
	}
	for (; checking.at < n; checking.at++)
		if (!check_instruction(&checking))
			return false;
	return true;
}

bool program_needs_mappings(const struct vprof_instruction *instructions, size_t n)
{
	bool needs = false;

	for (size_t i = 0; i < n; i++)
		needs |= operations[instructions[i].operation].dst == STACK ||
		         (instructions[i].operation == VPROF_PROGRAM_BUILTIN &&
		          instructions[i].constant == VPROF_PROGRAM_MAPPED_PID);
	return needs;
}

/* ---- run ---- */

/* Division by zero gives zero, and the one that overflows the dividend, as in BPF. */
static uint64_t divide(int64_t a, int64_t b)
{
	return b == 0 ? 0 : b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
}

static uint64_t modulo(int64_t a, int64_t b)
{
	return b == 0 || b == -1 ? 0 : (uint64_t)(a % b);
}

static uint64_t arithmetic(unsigned operation, uint64_t a, uint64_t b)
{
	switch (operation) {
	case VPROF_PROGRAM_COPY:
		return a;
	case VPROF_PROGRAM_NEGATE:
		return -a;
	case VPROF_PROGRAM_NOT:
		return a == 0;
	case VPROF_PROGRAM_COMPLEMENT:
		return ~a;
	case VPROF_PROGRAM_ADD:
		return a + b;
	case VPROF_PROGRAM_SUBTRACT:
		return a - b;
	case VPROF_PROGRAM_MULTIPLY:
		return a * b;
	case VPROF_PROGRAM_DIVIDE:
		return divide((int64_t)a, (int64_t)b);
	case VPROF_PROGRAM_DIVIDE_UNSIGNED:
		return b == 0 ? 0 : a / b;
	case VPROF_PROGRAM_MODULO:
		return modulo((int64_t)a, (int64_t)b);
	case VPROF_PROGRAM_MODULO_UNSIGNED:
		return b == 0 ? 0 : a % b;
	case VPROF_PROGRAM_AND:
		return a & b;
	case VPROF_PROGRAM_OR:
		return a | b;
	case VPROF_PROGRAM_XOR:
		return a ^ b;
	case VPROF_PROGRAM_SHIFT_LEFT:
		return a << (b & 63);
	case VPROF_PROGRAM_SHIFT_RIGHT:
		return (uint64_t)((int64_t)a >> (b & 63));
	case VPROF_PROGRAM_SHIFT_RIGHT_UNSIGNED:
		return a >> (b & 63);
	case VPROF_PROGRAM_EQUAL:
		return a == b;
	case VPROF_PROGRAM_LESS:
		return (int64_t)a < (int64_t)b;
	default: /* VPROF_PROGRAM_LESS_UNSIGNED */
		return a < b;
	}
}

static uint64_t read_number(struct program_place *place, uint64_t address, int64_t bytes)
{
	const unsigned n = (unsigned)llabs(bytes);
	uint64_t value = 0;

	if (!place->calls->read(place, address, &value, n)) {
		place->faults++;
		return 0;
	}
	return bytes < 0 ? (uint64_t)((int64_t)(value << (64 - 8 * n)) >> (64 - 8 * n)) : value;
}

#define PIECE 16u /* of a text at once, so that the page behind it need not be there */

/* Up to its end; the rest stays zeros. */
static void read_text(struct program_place *place, uint64_t address, size_t bytes, uint64_t *words)
{
	char text[VPROF_PROGRAM_TEXT_BYTES] = {0};
	const size_t most = MIN(bytes, sizeof(text) - 1);

	for (size_t at = 0, n; at < most; at += n) {
		n = MIN(PIECE - (size_t)((address + at) % PIECE), most - at);
		if (!place->calls->read(place, address + at, text + at, (unsigned)n)) {
			place->faults++;
			break;
		}
		const char *end = memchr(text + at, '\0', n);

		if (end) {
			memset(text + (end - text), 0, sizeof(text) - (size_t)(end - text));
			break;
		}
	}
	memcpy(words, text, sizeof(text));
}

static void run_map(const struct vprof_instruction *instruction, struct program_place *place, uint64_t *frame)
{
	struct program_map *map = place->maps[instruction->map];
	const uint64_t *key = &frame[instruction->a];

	switch (instruction->operation) {
	case VPROF_PROGRAM_MAP_GET:
		program_map_get(map, key, &frame[instruction->dst]);
		break;
	case VPROF_PROGRAM_MAP_SET:
		program_map_set(map, key, &frame[instruction->b]);
		break;
	case VPROF_PROGRAM_MAP_ADD:
		program_map_add(map, key, (int64_t)frame[instruction->b]);
		break;
	default: /* VPROF_PROGRAM_MAP_DELETE */
		program_map_delete(map, key);
	}
}

static void set_text(uint64_t *frame, unsigned at, const uint64_t *text)
{
	memmove(&frame[at], text, VPROF_PROGRAM_TEXT_BYTES);
}

static void run_place(const struct vprof_instruction *instruction, struct program_place *place, uint64_t *frame)
{
	const struct program_place_calls *calls = place->calls;
	uint64_t *dst = &frame[instruction->dst], words[VPROF_PROGRAM_TEXT_WORDS] = {0};
	const int64_t constant = instruction->constant;

	switch (instruction->operation) {
	case VPROF_PROGRAM_BUILTIN:
		*dst = constant == VPROF_PROGRAM_FAULTS ? place->faults
		                                        : calls->number(place, (enum vprof_program_number)constant);
		break;
	case VPROF_PROGRAM_COMM:
		calls->comm(place, words);
		set_text(frame, instruction->dst, words);
		break;
	case VPROF_PROGRAM_KERNEL_STACK:
	case VPROF_PROGRAM_USER_STACK:
		memset(dst, 0, VPROF_PROGRAM_STACK_WORDS * sizeof(*dst));
		calls->stack(place, instruction->operation == VPROF_PROGRAM_USER_STACK, (unsigned)constant, dst);
		break;
	case VPROF_PROGRAM_ARGUMENT:
		*dst = place->arguments[constant];
		place->faults += place->bare;
		break;
	case VPROF_PROGRAM_FIELD:
		place->faults += !calls->field(place, (unsigned)constant, words);
		*dst = words[0];
		break;
	case VPROF_PROGRAM_FIELD_TEXT:
		place->faults += !calls->field(place, (unsigned)constant, words);
		set_text(frame, instruction->dst, words);
		break;
	case VPROF_PROGRAM_READ:
		*dst = read_number(place, frame[instruction->a], constant);
		break;
	case VPROF_PROGRAM_READ_TEXT:
		read_text(place, frame[instruction->a], (size_t)constant, words);
		set_text(frame, instruction->dst, words);
		break;
	case VPROF_PROGRAM_EVENT:
		calls->event(place);
		break;
	case VPROF_PROGRAM_SEND:
		calls->send(place, (uint32_t)constant, &frame[instruction->a], instruction->b);
		break;
	default:
		run_map(instruction, place, frame);
	}
}

void program_run(const struct vprof_instruction *instructions, size_t n, struct program_place *place)
{
	uint64_t frame[VPROF_PROGRAM_FRAME_WORDS] = {0};

	for (size_t at = 0; at < n; at++) {
		const struct vprof_instruction *instruction = &instructions[at];

		switch (instruction->operation) {
		case VPROF_PROGRAM_CONSTANT:
			frame[instruction->dst] = (uint64_t)instruction->constant;
			break;
		case VPROF_PROGRAM_COPY_TEXT:
			set_text(frame, instruction->dst, &frame[instruction->a]);
			break;
		case VPROF_PROGRAM_DIFFERS:
			frame[instruction->dst] =
				strncmp((const char *)&frame[instruction->a], (const char *)&frame[instruction->b],
			                (size_t)instruction->constant) != 0;
			break;
		case VPROF_PROGRAM_JUMP:
			at = (size_t)instruction->constant - 1;
			break;
		case VPROF_PROGRAM_JUMP_IF_ZERO:
			if (frame[instruction->a] == 0)
				at = (size_t)instruction->constant - 1;
			break;
		case VPROF_PROGRAM_EXIT:
			place->calls->send(place, (uint32_t)instruction->constant, NULL, 0);
			place->calls->exit(place);
			return;
		default:
			if (operations[instruction->operation].constant == NONE &&
			    operations[instruction->operation].dst == NUMBER)
				frame[instruction->dst] = arithmetic(instruction->operation, frame[instruction->a],
				                                     frame[instruction->b]);
			else
				run_place(instruction, place, frame);
		}
	}
}
