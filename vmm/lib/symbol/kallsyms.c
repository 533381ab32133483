// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/kallsyms.h"

#include <inttypes.h>
#include <string.h>

#include "lib/symbol/span_priv.h"
#include "lib/symbol/symtab.h"

#define TOKENS 256u
#define KSYM_NAME_LEN 512u /* with the type character's place as the NUL's; 128 up to 6.0 */
#define SYMBOLS_PER_MARKER 256u
/* Two markers at least make a find certain; the smallest kernels have some thousand symbols, allyesconfig a million. */
#define SYMBOLS_MIN (SYMBOLS_PER_MARKER + 1)
#define MARKERS_MAX 8192u
/* 256 names of two length bytes and, each character its own token, KSYM_NAME_LEN. */
#define MARKER_STEP_MAX (SYMBOLS_PER_MARKER * (2 + KSYM_NAME_LEN))
#define KERNEL_ADDRESS_MIN UINT64_C(0xffff800000000000)
struct token {
	const char *text;
	size_t length;
};

/* Where the parts are: offsets into `memory`. */
struct tables {
	struct span memory;
	uint64_t gva;
	struct token tokens[TOKENS];
	uint64_t token_table;
	uint64_t after_tokens; /* the end of token_index */
	uint32_t n;
	uint64_t num_syms;
	uint64_t names;
	uint64_t *addresses; /* [n] */
	uint64_t *steps;     /* left of the search */
};

/* Before each string, place and name that is looked at; false: there have been too many. */
static bool step(const struct tables *tables)
{
	*tables->steps -= *tables->steps > 0;
	return *tables->steps > 0;
}

static uint16_t read_u16(const struct tables *tables, uint64_t offset)
{
	uint16_t value;

	memcpy(&value, tables->memory.data + offset, sizeof(value));
	return value;
}

static uint32_t read_u32(const struct tables *tables, uint64_t offset)
{
	uint32_t value;

	memcpy(&value, tables->memory.data + offset, sizeof(value));
	return value;
}

static uint64_t read_u64(const struct tables *tables, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, tables->memory.data + offset, sizeof(value));
	return value;
}

/* Tables are aligned in the guest's address space. */
static uint64_t align_up(const struct tables *tables, uint64_t offset, uint64_t alignment)
{
	return offset + (-(tables->gva + offset) & (alignment - 1));
}

/* The offset after `n` strings from `from`, or 0 when one is longer than any symbol or not inside. */
static uint64_t skip_strings(const struct tables *tables, uint64_t from, unsigned n)
{
	const struct span memory = tables->memory;

	while (n-- > 0) {
		size_t window = MIN(memory.n - (size_t)from, (size_t)KSYM_NAME_LEN);
		const uint8_t *nul = step(tables) ? memchr(memory.data + from, 0, window) : NULL;

		if (!nul)
			return 0;
		from = (uint64_t)(nul - memory.data) + 1;
	}
	return from;
}

/* Whether token_index, at `index`, holds the offsets of the 256 strings at `table`. Takes them over if so. */
static bool take_tokens(struct tables *tables, uint64_t table, uint64_t index)
{
	uint64_t at = table;

	for (unsigned i = 0; i < TOKENS; i++) {
		if (read_u16(tables, index + 2 * (uint64_t)i) != at - table)
			return false;

		uint64_t next = skip_strings(tables, at, 1);

		if (next == 0)
			return false;
		tables->tokens[i] = (struct token){(const char *)tables->memory.data + at, (size_t)(next - at - 1)};
		at = next;
	}
	tables->token_table = table;
	tables->after_tokens = index + TOKENS * sizeof(uint16_t);
	return true;
}

/* Tries the token table with its string for '0' at `zero`; token_index follows it and confirms it. */
static bool try_tokens(struct tables *tables, uint64_t zero)
{
	uint64_t end = skip_strings(tables, zero, TOKENS - '0');

	if (end == 0)
		return false;
	for (uint64_t alignment = 4; alignment <= 8; alignment *= 2) {
		uint64_t index = align_up(tables, end, alignment);

		if (!span_holds(tables->memory, index, TOKENS * sizeof(uint16_t)))
			continue;

		uint16_t distance = read_u16(tables, index + 2 * '0');

		if (distance <= zero && take_tokens(tables, zero - distance, index))
			return true;
	}
	return false;
}

/*
 * token_table holds 256 strings, and characters that occur in symbols stand for themselves (scripts/kallsyms.c,
 * insert_real_symbols_in_table): every kernel has all ten digits.
 */
static bool find_tokens(struct tables *tables)
{
	static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
	const uint8_t *at = tables->memory.data;

	if (tables->memory.n == 0)
		return false;
	const uint8_t *end = at + tables->memory.n;

	while (at < end && step(tables) && (at = memmem(at, (size_t)(end - at), digits, sizeof(digits)))) {
		if (try_tokens(tables, (uint64_t)(at - tables->memory.data)))
			return true;
		at += sizeof(digits);
	}
	return false;
}

/*
 * One entry of kallsyms_names before `end`: its length in one byte or, from 6.1 on and from 128 on, two (ULEB128), then
 * so many token numbers. Returns the offset of those, 0 when they do not fit.
 */
static uint64_t name_tokens(const struct tables *tables, uint64_t at, uint64_t end, uint32_t *length)
{
	const uint8_t *data = tables->memory.data;

	if (at >= end)
		return 0;
	*length = data[at++];
	if (*length & 0x80) {
		if (at >= end)
			return 0;
		*length = (*length & 0x7f) | (uint32_t)data[at++] << 7;
	}
	return *length > 0 && *length <= end - at ? at : 0;
}

/* The first character of a name is nm's type letter. */
static bool has_type(const struct tables *tables, uint64_t tokens)
{
	const struct token *first = &tables->tokens[tables->memory.data[tokens]];

	return first->length > 0 && (g_ascii_isalpha(first->text[0]) || first->text[0] == '?');
}

/* kallsyms_markers: where in kallsyms_names every 256th name is; in 32 bits from 4.20 on, 64 before. */
struct markers {
	uint64_t at;
	unsigned width; /* 4 or 8 bytes */
	uint32_t n;     /* the last ones may be chance: what follows happens to continue the row */
};

static uint64_t read_marker(const struct tables *tables, const struct markers *markers, uint32_t i)
{
	uint64_t at = markers->at + (uint64_t)i * markers->width;

	return markers->width == 4 ? read_u32(tables, at) : read_u64(tables, at);
}

/* The row of marker-like numbers at markers->at: 0, then growing by what 256 names can have. */
static void count_markers(const struct tables *tables, struct markers *markers)
{
	uint64_t room = (tables->token_table - markers->at) / markers->width;
	uint64_t previous = 0;

	for (markers->n = 0; markers->n < MIN(room, MARKERS_MAX); markers->n++) {
		uint64_t marker = read_marker(tables, markers, markers->n);

		if (markers->n == 0 ? marker != 0 : marker <= previous || marker - previous > MARKER_STEP_MAX)
			return;
		previous = marker;
	}
}

/* Whether n names are at `names`, every 256th where its marker says, and the markers behind them. */
static bool check_names(const struct tables *tables, const struct markers *markers, uint64_t names, uint32_t n)
{
	uint64_t at = names;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t n_tokens;
		uint64_t tokens = name_tokens(tables, at, markers->at, &n_tokens);

		if (i % SYMBOLS_PER_MARKER == 0 && read_marker(tables, markers, i / SYMBOLS_PER_MARKER) != at - names)
			return false;
		if (!step(tables) || tokens == 0 || !has_type(tables, tokens))
			return false;
		at = tokens + n_tokens;
	}
	return align_up(tables, at, 8) == markers->at || align_up(tables, at, 4) == markers->at;
}

/* Whether the number at `num_syms` is kallsyms_num_syms, given the markers. */
static bool try_num_syms(struct tables *tables, const struct markers *markers, uint64_t num_syms)
{
	uint32_t n = read_u32(tables, num_syms);
	uint32_t n_markers = (uint32_t)((n + UINT64_C(255)) / SYMBOLS_PER_MARKER);

	if (n < SYMBOLS_MIN || n_markers > markers->n)
		return false;

	uint64_t last = read_marker(tables, markers, n_markers - 1);

	/* Tables are aligned to 8 bytes, and in the place-relative layout to 4. */
	for (uint64_t names = num_syms + 8; names > num_syms; names -= 4) {
		if (markers->at - num_syms < last + 8 || markers->at - names > last + MARKER_STEP_MAX + 8)
			continue;
		if (check_names(tables, markers, names, n)) {
			tables->n = n;
			tables->num_syms = num_syms;
			tables->names = names;
			return true;
		}
	}
	return false;
}

/* Backwards from the markers, since kallsyms_names, before them, begins nowhere in particular. */
static bool try_markers(struct tables *tables, const struct markers *markers)
{
	uint64_t reach = read_marker(tables, markers, markers->n - 1) + MARKER_STEP_MAX + 16;

	for (uint64_t back = 8; back <= MIN(reach, markers->at) && step(tables); back += 4)
		if (try_num_syms(tables, markers, markers->at - back))
			return true;
	return false;
}

/* Backwards from the token table to the markers: seqs_of_names, which may be between, has no length of its own. */
static bool find_names(struct tables *tables)
{
	for (uint64_t at = tables->token_table & ~UINT64_C(3); at >= 8 && step(tables); at -= 4) {
		for (unsigned width = 4; width <= 8; width *= 2) {
			struct markers markers = {.at = at - 8, .width = width};

			count_markers(tables, &markers);
			if (markers.n > 1 && try_markers(tables, &markers))
				return true;
		}
	}
	return false;
}

/* The addresses of a candidate table in order, as scripts/kallsyms.c sorts them; the last one the kernel's. */
static bool addresses_plausible(const struct tables *tables)
{
	for (uint32_t i = 1; i < tables->n; i++)
		if (tables->addresses[i] < tables->addresses[i - 1])
			return false;
	return tables->addresses[tables->n - 1] >= KERNEL_ADDRESS_MIN &&
	       tables->addresses[tables->n - 1] > tables->addresses[0];
}

static bool try_absolute(struct tables *tables, uint64_t at)
{
	if (!span_holds(tables->memory, at, tables->n * UINT64_C(8)))
		return false;
	for (uint32_t i = 0; i < tables->n; i++)
		tables->addresses[i] = read_u64(tables, at + i * UINT64_C(8));
	return addresses_plausible(tables);
}

static bool has_negative(const struct tables *tables, uint64_t offsets)
{
	for (uint32_t i = 0; i < tables->n; i++)
		if ((int32_t)read_u32(tables, offsets + i * UINT64_C(4)) < 0)
			return true;
	return false;
}

/*
 * kallsyms_sym_address of kernel/kallsyms.c. An image spans less than 2 GiB, so that negative offsets tell that per-CPU
 * symbols are absolute (and all others negative).
 */
static bool try_relative(struct tables *tables, uint64_t offsets, uint64_t base_at)
{
	if (!span_holds(tables->memory, offsets, tables->n * UINT64_C(4)) || !span_holds(tables->memory, base_at, 8))
		return false;

	uint64_t base = read_u64(tables, base_at);

	/* arm64: a relocation puts it there; it is the first symbol's, at the image's start. */
	if (base == 0)
		base = tables->gva;
	if (base < KERNEL_ADDRESS_MIN)
		return false;

	bool absolute_percpu = has_negative(tables, offsets);

	for (uint32_t i = 0; i < tables->n; i++) {
		uint32_t offset = read_u32(tables, offsets + i * UINT64_C(4));

		if (!absolute_percpu)
			tables->addresses[i] = base + offset;
		else if ((int32_t)offset >= 0)
			tables->addresses[i] = offset;
		else
			tables->addresses[i] = base + ~offset; /* -1 - offset */
	}
	return addresses_plausible(tables);
}

static bool try_place_relative(struct tables *tables, uint64_t offsets)
{
	if (!span_holds(tables->memory, offsets, tables->n * UINT64_C(4)))
		return false;
	for (uint32_t i = 0; i < tables->n; i++) {
		uint64_t at = offsets + i * UINT64_C(4);

		tables->addresses[i] = tables->gva + at + (uint64_t)(int64_t)(int32_t)read_u32(tables, at);
	}
	return addresses_plausible(tables);
}

/* Each layout of the header comment; only the right one comes out sorted. */
static bool find_addresses(struct tables *tables)
{
	uint64_t n = tables->n;
	uint64_t after = align_up(tables, tables->after_tokens, 8);
	uint64_t offsets_bytes = (n * 4 + 7) & ~UINT64_C(7);

	tables->addresses = g_new(uint64_t, n);
	if (tables->num_syms >= offsets_bytes + 8 &&
	    try_relative(tables, tables->num_syms - 8 - offsets_bytes, tables->num_syms - 8))
		return true;
	if (tables->num_syms >= n * 8 && try_absolute(tables, tables->num_syms - n * 8))
		return true;
	return try_relative(tables, after, after + offsets_bytes) || try_absolute(tables, after) ||
	       try_place_relative(tables, tables->after_tokens);
}

/* Before the first call of `each`: names have passed check_names, and only their lengths are left to check. */
static bool check_lengths(const struct tables *tables, GError **error)
{
	uint64_t at = tables->names;

	for (uint32_t i = 0; i < tables->n; i++) {
		uint32_t n_tokens = 0;
		uint64_t tokens = name_tokens(tables, at, tables->token_table, &n_tokens);
		size_t length = 0;

		for (uint32_t k = 0; k < n_tokens; k++)
			length += tables->tokens[tables->memory.data[tokens + k]].length;
		if (length > KSYM_NAME_LEN) {
			g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
			            "kallsyms symbol %u of %u, at offset 0x%" PRIx64
			            ", has %zu characters, the most are %u",
			            i, tables->n, at, length, KSYM_NAME_LEN);
			return false;
		}
		at = tokens + n_tokens;
	}
	return true;
}

/* The type and name of the symbol at `at` into text[]; returns where the next one is. check_lengths has been here. */
static uint64_t expand(const struct tables *tables, uint64_t at, char text[KSYM_NAME_LEN + 1])
{
	uint32_t n_tokens = 0;
	uint64_t tokens = name_tokens(tables, at, tables->token_table, &n_tokens);
	char *to = text;

	for (uint32_t i = 0; i < n_tokens; i++) {
		const struct token *token = &tables->tokens[tables->memory.data[tokens + i]];

		/* Of two or three characters: faster than memcpy(3). */
		for (size_t k = 0; k < token->length; k++)
			*to++ = token->text[k];
	}
	*to = '\0';
	return tokens + n_tokens;
}

/* Only look-alikes of the tables, by the thousand, make it that long. */
static bool too_long(const struct tables *tables, GError **error)
{
	g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_NONE,
	            "the search for kallsyms in 0x%zx bytes was given up: too much there looks like it",
	            tables->memory.n);
	return false;
}

static bool find_tables(struct tables *tables, GError **error)
{
	const bool tokens = find_tokens(tables), names = tokens && find_names(tables);

	if (!names && *tables->steps == 0)
		return too_long(tables, error);
	if (!tokens) {
		g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_NONE, "no kallsyms token table in 0x%zx bytes",
		            tables->memory.n);
		return false;
	}
	if (!names) {
		g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
		            "a kallsyms token table is at offset 0x%" PRIx64 ", but no names are before it",
		            tables->token_table);
		return false;
	}
	if (!find_addresses(tables)) {
		g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
		            "kallsyms has %u names at offset 0x%" PRIx64 ", but no addresses of a known layout",
		            tables->n, tables->names);
		return false;
	}
	return check_lengths(tables, error);
}

bool kallsyms_decode(const uint8_t *bytes, size_t n, uint64_t gva, uint64_t *steps,
                     void (*each)(uint64_t address, char type, const char *name, void *data), void *data,
                     GError **error)
{
	struct tables tables = {.memory = {bytes, n}, .gva = gva, .steps = steps};
	bool found = find_tables(&tables, error);
	char text[KSYM_NAME_LEN + 1];
	uint64_t at = tables.names;

	for (uint32_t i = 0; found && i < tables.n; i++) {
		at = expand(&tables, at, text);
		each(tables.addresses[i], text[0], text + 1, data);
	}
	g_free(tables.addresses);
	return found;
}
