// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/symtab_packed.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_NAMES 16u      /* the first is whole */
#define NAMES_MAX (1u << 24) /* in packed_symbol.name */
#define SHARED_MAX UINT8_MAX /* of a name with the one before */
#define CODE_TYPES "TtWw"

struct packed_symbol {
	uint32_t offset, size;
	uint32_t name : 24, type : 8; /* name: its place in the alphabet */
};

struct packed_range {
	uint32_t offset, symbol;
};

_Static_assert(sizeof(struct packed_symbol) == 12 && sizeof(struct packed_range) == 8, "they are packed");

struct symtab_packed {
	uint64_t base;
	struct packed_symbol *symbols; /* [n_symbols] */
	uint32_t n_symbols;
	struct packed_range *ranges; /* [n_ranges] */
	uint32_t n_ranges;
	uint8_t *names;   /* of each: how many bytes it shares with the one before, and the others with a NUL */
	uint32_t *blocks; /* [n_blocks] where they begin in `names` */
	uint32_t n_blocks, n_names;
	GHashTable *unpacked; /* number of a symbol, plus 1 -> struct symbol with its name behind it */
};

/* ---- names ---- */

struct named {
	const char *name;
	uint32_t symbol;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static size_t shared_bytes(const char *before, const char *name)
{
	size_t n = 0;

	while (n < SHARED_MAX && before[n] != '\0' && before[n] == name[n])
		n++;
	return n;
}

/* Writes the names in their order, each once, and their numbers into the symbols. */
static void names_pack(struct symtab_packed *packed, struct named *named)
{
	GByteArray *names = g_byte_array_new();
	const char *before = NULL;

	qsort(named, packed->n_symbols, sizeof(*named), compare_names);
	packed->blocks = g_new(uint32_t, packed->n_symbols / BLOCK_NAMES + 1);
	for (uint32_t i = 0; i < packed->n_symbols; i++) {
		const char *name = named[i].name;

		if (!before || strcmp(before, name) != 0) {
			const bool whole = packed->n_names++ % BLOCK_NAMES == 0;
			const uint8_t shared = whole ? 0 : (uint8_t)shared_bytes(before, name);

			if (whole)
				packed->blocks[packed->n_blocks++] = names->len;
			g_byte_array_append(names, &shared, 1);
			g_byte_array_append(names, (const guint8 *)name + shared, (guint)strlen(name + shared) + 1);
		}
		before = name;
		packed->symbols[named[i].symbol].name = (packed->n_names - 1) & (NAMES_MAX - 1);
	}
	const gsize bytes = names->len;

	packed->names = g_realloc(g_byte_array_free(names, FALSE), bytes);
}

/* The name at *at in the place of the one before; *at moves on. */
static void name_next(const uint8_t **at, GString *name)
{
	const char *rest = (const char *)*at + 1;

	g_string_truncate(name, **at);
	g_string_append(name, rest);
	*at += 1 + strlen(rest) + 1;
}

static void name_get(const struct symtab_packed *packed, uint32_t number, GString *name)
{
	const uint8_t *at = packed->names + packed->blocks[number / BLOCK_NAMES];

	for (uint32_t i = 0; i <= number % BLOCK_NAMES; i++)
		name_next(&at, name);
}

/* The number of a name; false: there is none such. */
static bool name_find(const struct symtab_packed *packed, const char *wanted, uint32_t *number)
{
	g_autoptr(GString) name = g_string_new(NULL);
	uint32_t low = 0, high = packed->n_blocks;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (strcmp((const char *)packed->names + packed->blocks[middle] + 1, wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;

	const uint8_t *at = packed->names + packed->blocks[low - 1];

	for (uint32_t i = (low - 1) * BLOCK_NAMES; i < MIN(low * BLOCK_NAMES, packed->n_names); i++) {
		name_next(&at, name);
		*number = i;
		if (strcmp(name->str, wanted) == 0)
			return true;
	}
	return false;
}

/* ---- packing ---- */

/* Where the symbols that ranges name begin and end; false: further than 4 GiB apart, or there are none. */
static bool extent(const struct symbol *symbols, const struct symtab_range *ranges, size_t n_ranges, uint64_t *start,
                   uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (size_t i = 0; i < n_ranges; i++) {
		if (ranges[i].symbol == SYMTAB_NO_SYMBOL)
			continue;
		const struct symbol *symbol = &symbols[ranges[i].symbol];

		*start = MIN(*start, symbol->address);
		*end = MAX(*end, symbol->address + symbol->size);
	}
	return *end > *start && *end - *start <= UINT32_MAX;
}

/* Code without a range, as _text. */
static bool is_code(const struct symbol *symbol, uint64_t start, uint64_t end)
{
	return strchr(CODE_TYPES, symbol->type) && symbol->address >= start && symbol->address < end &&
	       symbol->size <= end - symbol->address;
}

/* The numbers that symbols have from now on, SYMTAB_NO_SYMBOL for what is left out; *kept: how many there are. */
static uint32_t *numbers_new(const struct symbol *symbols, size_t n, const struct symtab_range *ranges, size_t n_ranges,
                             uint64_t start, uint64_t end, uint32_t *kept)
{
	uint32_t *numbers = g_new(uint32_t, n);

	for (size_t i = 0; i < n; i++)
		numbers[i] = is_code(&symbols[i], start, end) ? 0 : SYMTAB_NO_SYMBOL;
	for (size_t i = 0; i < n_ranges; i++)
		if (ranges[i].symbol != SYMTAB_NO_SYMBOL)
			numbers[ranges[i].symbol] = 0;
	*kept = 0;
	for (size_t i = 0; i < n; i++)
		if (numbers[i] != SYMTAB_NO_SYMBOL)
			numbers[i] = (*kept)++;
	return numbers;
}

static void symbols_pack(struct symtab_packed *packed, const struct symbol *symbols, size_t n, const uint32_t *numbers)
{
	g_autofree struct named *named = g_new(struct named, packed->n_symbols);

	packed->symbols = g_new(struct packed_symbol, packed->n_symbols);
	for (size_t i = 0; i < n; i++) {
		if (numbers[i] == SYMTAB_NO_SYMBOL)
			continue;
		packed->symbols[numbers[i]] = (struct packed_symbol){
			.offset = (uint32_t)(symbols[i].address - packed->base),
			.size = (uint32_t)symbols[i].size,
			.type = (uint8_t)symbols[i].type,
		};
		named[numbers[i]] = (struct named){symbols[i].name, numbers[i]};
	}
	names_pack(packed, named);
}

static void ranges_pack(struct symtab_packed *packed, const struct symtab_range *ranges, const uint32_t *numbers)
{
	packed->ranges = g_new(struct packed_range, packed->n_ranges);
	for (uint32_t i = 0; i < packed->n_ranges; i++)
		packed->ranges[i] = (struct packed_range){
			.offset = (uint32_t)(ranges[i].start - packed->base),
			.symbol = ranges[i].symbol == SYMTAB_NO_SYMBOL ? SYMTAB_NO_SYMBOL : numbers[ranges[i].symbol],
		};
}

struct symtab_packed *symtab_packed_new(const struct symbol *symbols, size_t n, const struct symtab_range *ranges,
                                        size_t n_ranges)
{
	uint64_t start, end;

	if (n > NAMES_MAX || n_ranges > UINT32_MAX || !extent(symbols, ranges, n_ranges, &start, &end))
		return NULL;
	struct symtab_packed *packed = g_new0(struct symtab_packed, 1);
	g_autofree uint32_t *numbers = numbers_new(symbols, n, ranges, n_ranges, start, end, &packed->n_symbols);

	packed->base = start;
	packed->n_ranges = (uint32_t)n_ranges;
	packed->unpacked = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	symbols_pack(packed, symbols, n, numbers);
	ranges_pack(packed, ranges, numbers);
	return packed;
}

void symtab_packed_free(struct symtab_packed *packed)
{
	if (!packed)
		return;
	g_free(packed->symbols);
	g_free(packed->ranges);
	g_free(packed->names);
	g_free(packed->blocks);
	g_hash_table_unref(packed->unpacked);
	g_free(packed);
}

/* ---- asking ---- */

static const struct symbol *unpack(const struct symtab_packed *packed, uint32_t number)
{
	struct symbol *symbol = g_hash_table_lookup(packed->unpacked, GUINT_TO_POINTER(number + 1));

	if (symbol)
		return symbol;
	const struct packed_symbol *from = &packed->symbols[number];
	g_autoptr(GString) name = g_string_new(NULL);

	name_get(packed, from->name, name);
	symbol = g_malloc(sizeof(*symbol) + name->len + 1);
	memcpy(symbol + 1, name->str, name->len + 1);
	*symbol =
		(struct symbol){packed->base + from->offset, from->size, (const char *)(symbol + 1), (char)from->type};
	g_hash_table_insert(packed->unpacked, GUINT_TO_POINTER(number + 1), symbol);
	return symbol;
}

const struct symbol *symtab_packed_find(const struct symtab_packed *packed, uint64_t address)
{
	uint32_t low = 0, high = packed->n_ranges;

	if (address < packed->base || address - packed->base > UINT32_MAX)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (packed->ranges[middle].offset <= address - packed->base)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || packed->ranges[low - 1].symbol == SYMTAB_NO_SYMBOL)
		return NULL;
	return unpack(packed, packed->ranges[low - 1].symbol);
}

const struct symbol *symtab_packed_find_name(const struct symtab_packed *packed, const char *name)
{
	uint32_t number;

	if (!name_find(packed, name, &number))
		return NULL;
	for (uint32_t i = 0; i < packed->n_symbols; i++)
		if (packed->symbols[i].name == number)
			return unpack(packed, i);
	return NULL;
}
