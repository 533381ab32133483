// SPDX-License-Identifier: BSD-2-Clause
#include "linux/call_sites.h"

#include <elf.h>
#include <string.h>

#include "lib/code/x86/instruction.h"

G_DEFINE_QUARK(vprof_call_sites_error, call_sites_error)

#define ENDBR_BYTES 4u
#define INT3 0xccu /* fills what lies between functions, and up to 4 MiB before the entry code */
#define TARGET_INDIRECT UINT32_MAX

/* Where modules are, and with them thunks and trampolines that the kernel makes at boot (MODULES_VADDR). */
#define MODULES_START UINT64_C(0xffffffff80000000)

enum {
	FUNCTION_THUNK = 1,   /* jumps where a register says: a call of it is an indirect one */
	FUNCTION_TAKEN = 2,   /* its address is in use */
	FUNCTION_FOLLOWS = 4, /* the same of one that jumps to it */
	FUNCTION_THROUGH = 8, /* jumps where a register or memory says, or jumps to one that does */
	FUNCTION_SWITCHES = 16,
	FUNCTION_RETURNS = 32, /* a return thunk: a jump there is a RET */
	FUNCTION_STARTS = 64,  /* calls the first function of a processor, indirectly */
	FUNCTION_FIRST = 128,  /* is that */
	FUNCTION_LED_TO = 256, /* called or jumped to by another */
};

struct function {
	uint32_t start; /* from the text's */
	uint32_t whole; /* the function that this is a part of, or its own number */
	uint16_t flags; /* of the whole */
};

struct site {
	uint32_t after;  /* the call, from the text's start */
	uint32_t target; /* function, or TARGET_INDIRECT */
};

struct jump {
	uint32_t from, to;
};

struct call_sites {
	uint64_t text, text_end;
	uint64_t init, init_end;
	struct function *functions; /* by start */
	uint32_t n_functions;
	struct site *sites; /* by `after` */
	size_t n_sites;
	uint32_t *jumpers;    /* functions with a jump to another */
	uint32_t *jumpers_of; /* n_functions + 1: where those to a function begin */
};

/* What is needed while the tables are made. */
struct making {
	struct call_sites *made;
	const uint8_t *code; /* of the text */
	uint8_t *starts;     /* a bit for each byte of text */
	GArray *sites, *jumps;
};

static bool in_text(const struct call_sites *sites, uint64_t address)
{
	return address - sites->text < sites->text_end - sites->text;
}

/* ---- functions ---- */

static uint32_t function_part(const struct call_sites *sites, uint64_t address)
{
	uint64_t offset = address - sites->text;
	uint32_t low = 0, high = sites->n_functions;

	if (!in_text(sites, address))
		return CALL_SITES_NO_FUNCTION;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sites->functions[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? low - 1 : CALL_SITES_NO_FUNCTION;
}

uint32_t call_sites_function(const struct call_sites *sites, uint64_t address)
{
	uint32_t part = function_part(sites, address);

	return part != CALL_SITES_NO_FUNCTION ? sites->functions[part].whole : part;
}

static uint16_t flags_by_name(const char *name)
{
	if (g_str_has_prefix(name, "__x86_indirect_"))
		return FUNCTION_THUNK;
	if (g_str_has_prefix(name, "__switch_to"))
		return FUNCTION_SWITCHES;
	/* Their code has names of its own (arch/x86/lib/retpoline.S). */
	if (strstr(name, "return_thunk") || g_str_has_prefix(name, "srso_") || g_str_has_prefix(name, "retbleed_"))
		return FUNCTION_RETURNS;
	if (strstr(name, "startup_64") || g_str_equal(name, "start_cpu0"))
		return FUNCTION_STARTS;
	return g_str_equal(name, "start_secondary") || g_str_equal(name, "x86_64_start_kernel") ? FUNCTION_FIRST : 0;
}

static bool is_code(const struct symbol *symbol)
{
	return symbol->type == 't' || symbol->type == 'T' || symbol->type == 'w' || symbol->type == 'W';
}

/* Names at one address are those of one function. The parts of others have their own number until they are joined. */
static void functions_fill(struct making *making, const struct symbol *symbols, size_t n, GArray *parts)
{
	struct call_sites *made = making->made;
	GArray *functions = g_array_new(FALSE, FALSE, sizeof(struct function));

	for (size_t i = 0; i < n; i++) {
		if (!is_code(&symbols[i]) || !in_text(made, symbols[i].address))
			continue;
		uint32_t start = (uint32_t)(symbols[i].address - made->text);
		struct function *last =
			functions->len > 0 ? &g_array_index(functions, struct function, functions->len - 1) : NULL;

		if (last && last->start == start) {
			last->flags |= flags_by_name(symbols[i].name);
			continue;
		}
		const struct function function = {start, functions->len, flags_by_name(symbols[i].name)};
		const bool part = strstr(symbols[i].name, ".cold") != NULL;

		g_array_append_val(functions, function);
		g_array_append_val(parts, part);
		making->starts[start / 8] |= (uint8_t)(1u << (start % 8));
	}
	made->n_functions = functions->len;
	made->functions = (struct function *)(void *)g_array_free(functions, FALSE);
}

/* ---- instructions ---- */

enum kind { KIND_OTHER, KIND_CALL, KIND_JUMP, KIND_CALL_INDIRECT, KIND_JUMP_INDIRECT, KIND_FAR_RETURN };

struct instruction {
	enum kind kind;
	int64_t target; /* of KIND_CALL and KIND_JUMP, from the end of the instruction */
	int64_t value;  /* its last four bytes, which may be an address */
	bool relative;  /* `value` counts from the end of the instruction (LEA) */
};

/* CALL and JMP by a register or memory. A table's jump has an index, and stays in its function. */
static enum kind kind_by_operand(uint8_t modrm)
{
	if ((modrm >> 3 & 7) == 2)
		return KIND_CALL_INDIRECT;
	return (modrm >> 3 & 7) == 4 && (modrm >> 6 == 3 || (modrm & 7) != 4) ? KIND_JUMP_INDIRECT : KIND_OTHER;
}

/* Of the `n` bytes of an instruction from its opcode on. */
static struct instruction instruction_decode(const uint8_t *code, size_t n)
{
	struct instruction instruction = {0};
	uint8_t opcode = code[0], next = n > 1 ? code[1] : 0;
	int32_t last = 0;

	if (n >= 1 + sizeof(last))
		memcpy(&last, code + n - sizeof(last), sizeof(last));
	instruction.value = instruction.target = last;
	if (opcode == 0xe8)
		instruction.kind = KIND_CALL;
	else if (opcode == 0xe9 || (opcode == 0x0f && (next & 0xf0) == 0x80))
		instruction.kind = KIND_JUMP;
	else if (opcode == 0xff)
		instruction.kind = kind_by_operand(next);
	else if (opcode == 0xcb)
		instruction.kind = KIND_FAR_RETURN;
	else if (opcode == 0xeb || (opcode & 0xf0) == 0x70)
		instruction = (struct instruction){.kind = KIND_JUMP, .target = (int8_t)code[n - 1]};
	instruction.relative = opcode == 0x8d && (next & 0xc7) == 0x05;
	return instruction;
}

/* ---- calls and jumps ---- */

/* The function that begins at `address`, or has its ENDBR64 there; CALL_SITES_NO_FUNCTION. */
static uint32_t function_at(const struct making *making, uint64_t address)
{
	const struct call_sites *made = making->made;

	for (unsigned before = 0; before <= ENDBR_BYTES; before += ENDBR_BYTES) {
		uint64_t offset = address - before - made->text;

		if (in_text(made, address - before) && (making->starts[offset / 8] >> (offset % 8) & 1))
			return function_part(made, address - before);
	}
	return CALL_SITES_NO_FUNCTION;
}

static void take_address(struct making *making, uint64_t address)
{
	uint32_t function = function_at(making, address);

	if (function != CALL_SITES_NO_FUNCTION)
		making->made->functions[function].flags |= FUNCTION_TAKEN;
}

static bool is_thunk(const struct making *making, uint32_t function)
{
	return making->made->functions[function].flags & FUNCTION_THUNK;
}

static void site_add(struct making *making, uint64_t after, uint32_t target)
{
	const struct site site = {(uint32_t)(after - making->made->text), target};

	g_array_append_val(making->sites, site);
}

/* A call of what is not in the text is one of a thunk or a trampoline that was made later. */
static void call_add(struct making *making, uint64_t after, uint64_t to)
{
	uint32_t target = function_at(making, to);

	if (target != CALL_SITES_NO_FUNCTION) {
		making->made->functions[target].flags |= FUNCTION_LED_TO;
		site_add(making, after, is_thunk(making, target) ? TARGET_INDIRECT : target);
	} else if (!in_text(making->made, to) && to >= MODULES_START) {
		site_add(making, after, TARGET_INDIRECT);
	}
}

static void jump_add(struct making *making, const GArray *parts, uint32_t from, uint64_t to)
{
	struct call_sites *made = making->made;
	uint32_t target = function_at(making, to), within = function_part(made, to);

	if (target != CALL_SITES_NO_FUNCTION && is_thunk(making, target)) {
		made->functions[from].flags |= FUNCTION_THROUGH;
	} else if (within != CALL_SITES_NO_FUNCTION && g_array_index(parts, bool, within)) {
		/* The first function that jumps into a part of one is the one that it is a part of. */
		if (made->functions[within].whole == within && !g_array_index(parts, bool, from))
			made->functions[within].whole = from;
	} else if (target != CALL_SITES_NO_FUNCTION && (made->functions[target].flags & FUNCTION_RETURNS)) {
		return;
	} else if (target != CALL_SITES_NO_FUNCTION && target != from) {
		const struct jump jump = {from, target};

		made->functions[target].flags |= FUNCTION_LED_TO;
		g_array_append_val(making->jumps, jump);
	} else if (!in_text(made, to) && to >= MODULES_START) {
		made->functions[from].flags |= FUNCTION_THROUGH;
	}
}

static void instruction_add(struct making *making, const GArray *parts, uint32_t function, uint64_t after,
                            const struct instruction *instruction)
{
	uint64_t to = after + (uint64_t)instruction->target;

	switch (instruction->kind) {
	case KIND_CALL:
		call_add(making, after, to);
		break;
	case KIND_JUMP:
		jump_add(making, parts, function, to);
		break;
	case KIND_CALL_INDIRECT:
		site_add(making, after, TARGET_INDIRECT);
		break;
	case KIND_JUMP_INDIRECT:
		making->made->functions[function].flags |= FUNCTION_THROUGH;
		break;
	case KIND_FAR_RETURN:
		/* Linux 6.1 begins a processor so, with the address behind it on the stack (arch/x86/kernel/head_64.S).
		 */
		if (making->made->functions[function].flags & FUNCTION_STARTS)
			site_add(making, after, TARGET_INDIRECT);
		break;
	default:
		take_address(making, (instruction->relative ? after : 0) + (uint64_t)instruction->value);
		break;
	}
}

/* Most jumps: to what lies behind the function's start, and its ENDBR64. They say nothing. */
static bool stays_within(const struct call_sites *made, uint32_t function, uint64_t end, uint64_t after,
                         const struct instruction *instruction)
{
	const uint64_t first = made->functions[function].start + ENDBR_BYTES + 1;

	return instruction->kind == KIND_JUMP && end > first &&
	       after + (uint64_t)instruction->target - first < end - first;
}

/*
 * From one function's start to the next; INT3 and what is no instruction is skipped by the byte. Code that runs into
 * the next function (__put_user_4 and __put_user_nocheck_4) is as good as a jump there.
 */
static void function_scan(struct making *making, const GArray *parts, uint32_t function)
{
	const struct call_sites *made = making->made;
	const bool is_last = function + 1 == made->n_functions;
	const uint64_t end = is_last ? made->text_end - made->text : made->functions[function + 1].start;
	bool goes_on = false;

	for (uint64_t at = made->functions[function].start; at < end;) {
		const uint8_t *code = making->code + at;
		size_t bytes = *code != INT3 ? instruction_length(code, end - at) : 0;

		if (bytes == 0) {
			goes_on = false;
			at++;
			continue;
		}
		at += bytes;
		/* The prefixes are no longer of interest. */
		const size_t prefixes = instruction_opcode(code, bytes);

		code += prefixes;
		bytes -= prefixes;
		if (instruction_is_nop(code, bytes))
			continue;
		const struct instruction instruction = instruction_decode(code, bytes);

		goes_on = !instruction_may_end(code, bytes);
		if (!stays_within(made, function, end, at, &instruction))
			instruction_add(making, parts, function, made->text + at, &instruction);
	}
	if (goes_on && !is_last)
		jump_add(making, parts, function, made->text + end);
}

/* What a part does, its function does. */
static void parts_join(struct making *making)
{
	struct call_sites *made = making->made;

	for (uint32_t i = 0; i < made->n_functions; i++)
		made->functions[made->functions[i].whole].flags |= made->functions[i].flags;
	for (size_t i = 0; i < making->sites->len; i++) {
		struct site *site = &g_array_index(making->sites, struct site, i);

		if (site->target != TARGET_INDIRECT)
			site->target = made->functions[site->target].whole;
	}
	for (size_t i = 0; i < making->jumps->len; i++) {
		struct jump *jump = &g_array_index(making->jumps, struct jump, i);

		jump->from = made->functions[jump->from].whole;
		jump->to = made->functions[jump->to].whole;
	}
}

/* ---- addresses in use ---- */

/* Aligned words of the data, as the running kernel has them. What it has freed may be anything, or every function's
 * address. */
static void data_scan(struct making *making, const struct image *image, const struct symtab *symtab)
{
	const uint64_t freed = symtab_address(symtab, "__init_begin"), freed_end = symtab_address(symtab, "__init_end");
	size_t n, file_bytes;
	const struct image_segment *segments = image_segments(image, &n);
	const uint8_t *file = image_bytes(image, &file_bytes);

	for (size_t i = 0; i < n; i++) {
		if (segments[i].flags & PF_X)
			continue;
		const uint8_t *bytes = file + segments[i].file_offset;

		for (uint64_t at = 0; at + sizeof(uint64_t) <= segments[i].file_bytes; at += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, bytes + at, sizeof(word));
			if (in_text(making->made, word) && segments[i].gva + at - freed >= freed_end - freed)
				take_address(making, word);
		}
	}
}

/* By what they come from, or by what they lead to. The array of where each begins is returned, too. */
static uint32_t *jumps_sort(const GArray *jumps, uint32_t n, bool by_target, uint32_t **first)
{
	uint32_t *begin = g_new0(uint32_t, n + 2), *sorted = g_new(uint32_t, jumps->len + 1);

	for (size_t i = 0; i < jumps->len; i++) {
		const struct jump *jump = &g_array_index(jumps, struct jump, i);

		begin[(by_target ? jump->to : jump->from) + 2]++;
	}
	for (uint32_t i = 2; i < n + 2; i++)
		begin[i] += begin[i - 1];
	for (size_t i = 0; i < jumps->len; i++) {
		const struct jump *jump = &g_array_index(jumps, struct jump, i);

		sorted[begin[(by_target ? jump->to : jump->from) + 1]++] = by_target ? jump->from : jump->to;
	}
	*first = begin;
	return sorted;
}

/* Gives a flag to all functions that can be come to from those that have one of `sources`. */
static void flag_spread(struct call_sites *made, const uint32_t *next, const uint32_t *first, uint16_t sources,
                        uint16_t flag)
{
	GArray *open = g_array_new(FALSE, FALSE, sizeof(uint32_t));

	for (uint32_t i = 0; i < made->n_functions; i++)
		if (made->functions[i].whole == i && (made->functions[i].flags & sources))
			g_array_append_val(open, i);
	while (open->len > 0) {
		uint32_t from = g_array_index(open, uint32_t, open->len - 1);

		g_array_set_size(open, open->len - 1);
		for (uint32_t k = first[from]; k < first[from + 1]; k++) {
			uint32_t to = next[k];

			if (made->functions[to].flags & (sources | flag))
				continue;
			made->functions[to].flags |= flag;
			g_array_append_val(open, to);
		}
	}
	g_array_unref(open);
}

/*
 * What no code leads to must be entered by its address, which the code that the kernel has freed may have taken. Where
 * an address leads, jumps lead on.
 */
static void jumps_follow(struct making *making)
{
	struct call_sites *made = making->made;
	uint32_t *first, *targets = jumps_sort(making->jumps, made->n_functions, false, &first);

	for (uint32_t i = 0; i < made->n_functions; i++)
		if (made->functions[i].whole == i && !(made->functions[i].flags & FUNCTION_LED_TO))
			made->functions[i].flags |= FUNCTION_TAKEN;
	flag_spread(made, targets, first, FUNCTION_TAKEN, FUNCTION_FOLLOWS);
	g_free(targets);
	g_free(first);
	made->jumpers = jumps_sort(making->jumps, made->n_functions, true, &made->jumpers_of);
	flag_spread(made, made->jumpers, made->jumpers_of, FUNCTION_THROUGH, FUNCTION_THROUGH);
}

/* ---- the tables ---- */

static bool text_find(struct making *making, const struct image *image, const struct symtab *symtab, GError **error)
{
	struct call_sites *made = making->made;
	size_t bytes = 0;

	made->text = symtab_address(symtab, "_text");
	made->text_end = symtab_address(symtab, "_etext");
	made->init = symtab_address(symtab, "_sinittext");
	made->init_end = symtab_address(symtab, "_einittext");
	making->code = made->text != 0 ? image_at(image, made->text, &bytes) : NULL;
	if (making->code && made->text_end > made->text && made->text_end - made->text <= CALL_SITES_TEXT_BYTES_MAX &&
	    made->text_end - made->text <= bytes)
		return true;
	g_set_error(error, CALL_SITES_ERROR, CALL_SITES_ERROR_NONE,
	            "%s has no text from _text to _etext in one piece, of at most 64 MiB", image_path(image));
	return false;
}

static void make(struct making *making, const struct image *image, const struct symtab *symtab)
{
	struct call_sites *made = making->made;
	GArray *parts = g_array_new(FALSE, FALSE, sizeof(bool));
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	making->starts = g_malloc0((made->text_end - made->text) / 8 + 1);
	making->sites = g_array_new(FALSE, FALSE, sizeof(struct site));
	making->jumps = g_array_new(FALSE, FALSE, sizeof(struct jump));
	functions_fill(making, symbols, n, parts);
	for (uint32_t i = 0; i < made->n_functions; i++)
		function_scan(making, parts, i);
	data_scan(making, image, symtab);
	parts_join(making);
	jumps_follow(making);
	made->n_sites = making->sites->len;
	made->sites = (struct site *)(void *)g_array_free(making->sites, FALSE);
	g_array_unref(making->jumps);
	g_array_unref(parts);
	g_free(making->starts);
}

struct call_sites *call_sites_load(const struct image *image, const struct symtab *symtab, GError **error)
{
	struct making making = {.made = g_new0(struct call_sites, 1)};

	if (text_find(&making, image, symtab, error)) {
		make(&making, image, symtab);
		if (making.made->n_functions > 0)
			return making.made;
		g_set_error(error, CALL_SITES_ERROR, CALL_SITES_ERROR_NONE, "%s: no function has a name",
		            image_path(image));
	}
	call_sites_free(making.made);
	return NULL;
}

void call_sites_free(struct call_sites *sites)
{
	if (!sites)
		return;
	g_free(sites->functions);
	g_free(sites->sites);
	g_free(sites->jumpers);
	g_free(sites->jumpers_of);
	g_free(sites);
}

/* ---- questions ---- */

static const struct site *site_find(const struct call_sites *sites, uint64_t return_address)
{
	uint64_t after = return_address - sites->text;
	size_t low = 0, high = sites->n_sites;

	/* The last function may end with a call. */
	if (after == 0 || after > sites->text_end - sites->text)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sites->sites[middle].after < after)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sites->n_sites && sites->sites[low].after == after ? &sites->sites[low] : NULL;
}

/* Does not touch what is filled in later. */
void callee_init(struct callee *callee, uint32_t function)
{
	callee->function = function;
	callee->has_jumpers = false;
}

static bool jumper_is_seen(const struct callee *callee, uint32_t function)
{
	uint32_t bit = function % CALL_SITES_SEEN_BITS;

	if (!(callee->seen[bit / 64] >> (bit % 64) & 1))
		return false;
	for (unsigned i = 0; i < callee->n_jumpers; i++)
		if (callee->jumpers[i] == function)
			return true;
	return false;
}

static void jumper_add(struct callee *callee, uint32_t function)
{
	uint32_t bit = function % CALL_SITES_SEEN_BITS;

	if (callee->n_jumpers == CALL_SITES_JUMPERS_MAX || jumper_is_seen(callee, function))
		return;
	callee->jumpers[callee->n_jumpers++] = function;
	callee->seen[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static void jumpers_find(const struct call_sites *sites, struct callee *callee)
{
	unsigned left = CALL_SITES_JUMPS_MAX;

	callee->has_jumpers = true;
	callee->n_jumpers = 0;
	memset(callee->seen, 0, sizeof(callee->seen));
	jumper_add(callee, callee->function);
	for (unsigned i = 0; i < callee->n_jumpers; i++) {
		uint32_t end = sites->jumpers_of[callee->jumpers[i] + 1];

		for (uint32_t k = sites->jumpers_of[callee->jumpers[i]]; k < end && left > 0; k++, left--)
			jumper_add(callee, sites->jumpers[k]);
	}
}

static bool jumps_to(const struct call_sites *sites, uint32_t from, struct callee *callee)
{
	if (callee->function == CALL_SITES_NO_FUNCTION)
		return false;
	if (!callee->has_jumpers)
		jumpers_find(sites, callee);
	return jumper_is_seen(callee, from);
}

/* Whether the address of a function is in use, or one that it is come to from. A module's may be anywhere. */
static uint16_t taken(const struct call_sites *sites, uint32_t function)
{
	return function == CALL_SITES_NO_FUNCTION
	               ? FUNCTION_TAKEN
	               : sites->functions[function].flags & (FUNCTION_TAKEN | FUNCTION_FOLLOWS);
}

static enum call_link link_direct(const struct call_sites *sites, uint32_t target, struct callee *callee)
{
	if (target == callee->function)
		return CALL_LINK_DIRECT;
	if (jumps_to(sites, target, callee))
		return CALL_LINK_TAIL;
	return (sites->functions[target].flags & FUNCTION_THROUGH) && taken(sites, callee->function) ? CALL_LINK_THROUGH
	                                                                                             : CALL_LINK_NONE;
}

enum call_link call_sites_link_indirect(const struct call_sites *sites, uint32_t function)
{
	const uint16_t flags = taken(sites, function);

	if (flags & FUNCTION_TAKEN)
		return CALL_LINK_INDIRECT;
	return flags & FUNCTION_FOLLOWS ? CALL_LINK_INDIRECT_TAIL : CALL_LINK_NONE;
}

/* The first function of a processor is the only one that the code which starts it calls indirectly. */
static bool starts_other(const struct call_sites *sites, uint64_t return_address, uint32_t function)
{
	uint32_t caller = call_sites_function(sites, return_address - 1);

	return caller != CALL_SITES_NO_FUNCTION && (sites->functions[caller].flags & FUNCTION_STARTS) &&
	       (function == CALL_SITES_NO_FUNCTION || !(sites->functions[function].flags & FUNCTION_FIRST));
}

enum call_link call_sites_link(const struct call_sites *sites, uint64_t return_address, struct callee *callee)
{
	const uint32_t function = callee->function;
	const struct site *site = site_find(sites, return_address);

	if (!site || (function >= sites->n_functions && function != CALL_SITES_NO_FUNCTION))
		return CALL_LINK_NONE;
	if (site->target != TARGET_INDIRECT)
		return link_direct(sites, site->target, callee);
	return starts_other(sites, return_address, function) ? CALL_LINK_NONE
	                                                     : call_sites_link_indirect(sites, function);
}

enum call_link call_sites_link_of(const struct call_sites *sites, uint64_t target, struct callee *callee)
{
	uint32_t called = call_sites_function(sites, target);

	if (called == CALL_SITES_NO_FUNCTION)
		return CALL_LINK_NONE;
	return sites->functions[called].flags & FUNCTION_THUNK ? call_sites_link_indirect(sites, callee->function)
	                                                       : link_direct(sites, called, callee);
}

bool call_sites_returns_into(const struct call_sites *sites, uint64_t address, uint32_t function)
{
	return site_find(sites, address) && call_sites_function(sites, address - 1) == function;
}

bool call_sites_switches(const struct call_sites *sites, uint32_t function)
{
	return function < sites->n_functions && (sites->functions[function].flags & FUNCTION_SWITCHES);
}

bool call_sites_returns(const struct call_sites *sites, uint32_t function)
{
	return function < sites->n_functions && (sites->functions[function].flags & FUNCTION_RETURNS);
}

bool call_sites_is_init(const struct call_sites *sites, uint64_t address)
{
	return address - sites->init < sites->init_end - sites->init;
}
