// SPDX-License-Identifier: BSD-2-Clause
#include "lib/code/function_returns.h"

#include <glib.h>
#include <string.h>

#define PARTS_MAX 8u
#define PART_BYTES_MAX (64u << 10) /* Debian's longest functions have 40 KiB */

/* Code that is decoded as a whole. */
struct part {
	const struct symbol *symbol;
	uint64_t start, bytes;
};

struct finding {
	const struct processor_code *of;
	const struct function_code *code;
	struct function_returns *returns;
	struct part parts[PARTS_MAX];
	size_t n_parts;
};

static bool is_in(const struct finding *finding, uint64_t address)
{
	for (size_t i = 0; i < finding->n_parts; i++)
		if (address - finding->parts[i].start < finding->parts[i].bytes)
			return true;
	return false;
}

/* arch/x86/lib/retpoline.S: __x86_return_thunk, retbleed_return_thunk, srso_return_thunk, ... */
static bool is_return_thunk(const struct symbol *symbol)
{
	return g_str_has_suffix(symbol->name, "_return_thunk");
}

/* Decodes from `address`, in the middle of a function too, to the function's end. */
static char *part_add(struct finding *finding, uint64_t from, uint64_t address)
{
	const struct symbol *symbol = finding->code->find(finding->code->data, address);

	if (!symbol || !strchr("tTwW", symbol->type) || symbol->size == 0 || symbol->size > PART_BYTES_MAX)
		return g_strdup_printf("goes on at 0x%" G_GINT64_MODIFIER "x, where no function is known", address);
	if (g_str_has_prefix(symbol->name, "__x86_indirect_"))
		return g_strdup_printf("ends by a jump through a pointer, at 0x%" G_GINT64_MODIFIER "x", from);
	if (finding->n_parts == PARTS_MAX)
		return g_strdup_printf("may end in more than %u functions, of which the last is %s", PARTS_MAX,
		                       symbol->name);
	finding->parts[finding->n_parts++] = (struct part){symbol, symbol->address, symbol->size};
	return NULL;
}

static char *return_add(struct function_returns *returns, uint64_t at)
{
	if (returns->n == FUNCTION_RETURNS_MAX)
		return g_strdup_printf("returns in more than %u places", FUNCTION_RETURNS_MAX);
	returns->at[returns->n++] = at;
	return NULL;
}

static char *jump_follow(struct finding *finding, uint64_t at, uint64_t target)
{
	if (is_in(finding, target))
		return NULL;
	const struct symbol *symbol = finding->code->find(finding->code->data, target);

	return symbol && is_return_thunk(symbol) ? return_add(finding->returns, at) : part_add(finding, at, target);
}

static char *through_pointer(uint64_t at)
{
	return g_strdup_printf("ends by a jump through a pointer, at 0x%" G_GINT64_MODIFIER "x", at);
}

static char *instruction_look(struct finding *finding, uint64_t at, const uint8_t *code, size_t n)
{
	uint64_t target;

	switch (finding->of->flow(code, n, at, &target)) {
	case FLOW_RETURN:
		return return_add(finding->returns, at);
	case FLOW_JUMP:
		return jump_follow(finding, at, target);
	case FLOW_JUMP_THROUGH:
		return through_pointer(at);
	case FLOW_ON:
		break;
	}
	return NULL;
}

static char *part_look(struct finding *finding, const struct part *part)
{
	g_autofree uint8_t *code = g_malloc(part->bytes);
	size_t length;

	if (!finding->code->read(finding->code->data, part->start, code, part->bytes))
		return g_strdup_printf("is in %s, which cannot be read now", part->symbol->name);
	for (size_t at = 0; at < part->bytes; at += length) {
		length = finding->of->length(code + at, part->bytes - at);
		if (length == 0)
			return g_strdup_printf("is in %s, which is not code only", part->symbol->name);
		char *why = instruction_look(finding, part->start + at, code + at, length);

		if (why)
			return why;
	}
	return NULL;
}

char *function_returns_find(const struct processor_code *of, uint64_t address, const struct function_code *code,
                            struct function_returns *returns)
{
	struct finding finding = {.of = of, .code = code, .returns = returns};
	char *why;

	returns->n = 0;
	why = part_add(&finding, address, address);
	for (size_t i = 0; !why && i < finding.n_parts; i++) {
		const struct part part = finding.parts[i];

		why = part_look(&finding, &part);
	}
	return why || returns->n > 0 ? why : g_strdup("never returns");
}
