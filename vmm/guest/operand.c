// SPDX-License-Identifier: BSD-2-Clause
#include "guest/operand.h"

#include <string.h>

#include "guest/processor.h"

/* "4@", "-8@"; without a size, it is that of an address. False: it is no size. */
static bool parse_size(const char **text, struct guest_operand *operand)
{
	const char *at = strchr(*text, '@'), *digit = *text;

	operand->bytes = sizeof(uint64_t);
	if (!at)
		return true;
	operand->is_signed = digit[0] == '-';
	digit += operand->is_signed;
	operand->bytes = (uint8_t)(digit[0] - '0');
	*text = at + 1;
	return digit + 1 == at && (digit[0] == '1' || digit[0] == '2' || digit[0] == '4' || digit[0] == '8');
}

size_t guest_operands_parse(enum guest_processor processor, const char *text,
                            struct guest_operand operands[GUEST_OPERANDS_MAX])
{
	bool (*const parse)(const char *word, struct guest_operand *operand) =
		processor_of(processor)->gprs->operand_parse;
	g_auto(GStrv) words = g_strsplit_set(text, " \t", -1);
	size_t n = 0;

	for (char **word = words; *word && n < GUEST_OPERANDS_MAX; word++) {
		struct guest_operand *operand = &operands[n];
		const char *what = *word;

		if (what[0] == '\0')
			continue;
		*operand = (struct guest_operand){.base = -1, .index = -1, .scale = 1};
		if (!parse || !parse_size(&what, operand) || !parse(what, operand))
			operand->kind = GUEST_OPERAND_UNKNOWN;
		n++;
	}
	return n;
}

static uint64_t value_of(const struct guest_gprs *gprs, int8_t number)
{
	return number < 0 ? 0 : guest_gprs_value(gprs, (unsigned)number);
}

static uint64_t extended(const struct guest_operand *operand, uint64_t value)
{
	const unsigned unused = 64 - 8u * operand->bytes;

	return operand->is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value << unused >> unused;
}

bool guest_operand_read(const struct guest_operand *operand, struct page_walk *walk, const struct guest_gprs *gprs,
                        uint64_t *value)
{
	const uint64_t base = value_of(gprs, operand->base),
		       offset = value_of(gprs, operand->index) * operand->scale + (uint64_t)operand->constant;
	uint64_t found = 0;

	switch (operand->kind) {
	case GUEST_OPERAND_CONSTANT:
		found = (uint64_t)operand->constant;
		break;
	case GUEST_OPERAND_REGISTER:
		found = base >> operand->shift;
		break;
	case GUEST_OPERAND_MEMORY:
		/* Little-endian: the low bytes come first. */
		if (!page_walk_read(walk, (gva_t){base + offset}, &found, operand->bytes))
			return false;
		break;
	default:
		return false;
	}
	*value = extended(operand, found);
	return true;
}
