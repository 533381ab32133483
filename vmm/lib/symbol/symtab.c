// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "lib/record/text.h"
#include "lib/symbol/symtab_packed.h"
#include "lib/symbol/symtab_priv.h"

#define NAMES_BLOCK_BYTES (256u << 10)

/* A symbol as its source gave it. */
struct candidate {
	struct symbol symbol; /* size 0: unknown */
	bool ends;
};

G_DEFINE_QUARK(vprof_symtab_error, symtab_error)

void symtab_add(struct symtab_builder *builder, uint64_t address, uint64_t size, char type, const char *name, bool ends)
{
	if (name[0] == '\0' || name[0] == '$' || g_str_has_prefix(name, ".L"))
		return;
	const uint64_t bytes = symtab_symbol_bytes(size, name);

	if (bytes > builder->room) {
		builder->room = 0; /* what is left out is in one piece where symbols come by address */
		builder->left_out++;
		builder->cut = MIN(builder->cut, address);
		return;
	}
	builder->room -= bytes;
	struct candidate candidate = {
		.symbol = {.address = address,
	                   .size = size,
	                   .name = g_string_chunk_insert(builder->names, name),
	                   .type = type},
		.ends = ends,
	};

	text_make_printable((char *)candidate.symbol.name);
	g_array_append_val(builder->candidates, candidate);
}

void symtab_settle_data(struct symtab_builder *builder)
{
	uint64_t begin = 0, end = 0;

	for (guint i = 0; i < builder->candidates->len; i++) {
		const struct symbol *symbol = &g_array_index(builder->candidates, struct candidate, i).symbol;

		if (strcmp(symbol->name, "_sdata") == 0)
			begin = symbol->address;
		else if (strcmp(symbol->name, "_edata") == 0)
			end = symbol->address;
	}
	for (guint i = 0; begin != 0 && i < builder->candidates->len; i++) {
		struct candidate *candidate = &g_array_index(builder->candidates, struct candidate, i);

		if (candidate->symbol.address < begin || candidate->symbol.address >= end ||
		    !strchr("tTwW", candidate->symbol.type))
			continue;
		candidate->symbol.type = strchr("tw", candidate->symbol.type) ? 'd' : 'D';
		candidate->ends = true;
	}
}

static int compare_regions(const void *a, const void *b)
{
	const struct symtab_region *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

void symtab_add_region(GArray *regions, uint64_t start, uint64_t bytes, bool code, const char *name)
{
	struct symtab_region region = {start, 0, code, name};

	if (bytes > 0 && !__builtin_add_overflow(start, bytes, &region.end))
		g_array_append_val(regions, region);
}

/* The last region that starts at or before `address`, if it reaches so far. */
static const struct symtab_region *region_at(const GArray *regions, uint64_t address)
{
	const struct symtab_region *all = (const struct symtab_region *)regions->data;
	size_t low = 0, high = regions->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < all[low - 1].end ? &all[low - 1] : NULL;
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* What the linker marks the start and the end of a part of the code by, such as __sched_text_start. */
static bool is_mark(const struct symbol *symbol)
{
	return g_str_has_suffix(symbol->name, "_text_start") || g_str_has_suffix(symbol->name, "_text_end");
}

/*
 * By address; at one address in the order of perf's choose_best_symbol (Linux, tools/perf/util/symbol.c), but for the
 * linker's marks, which a kernel's own table does not tell from functions.
 */
static int compare_candidates(const void *a, const void *b)
{
	const struct symbol *left = &((const struct candidate *)a)->symbol;
	const struct symbol *right = &((const struct candidate *)b)->symbol;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if ((left->size == 0) != (right->size == 0))
		return left->size == 0 ? 1 : -1;

	bool left_weak = strchr("VvWw", left->type), right_weak = strchr("VvWw", right->type);

	if (left_weak != right_weak)
		return left_weak ? 1 : -1;

	bool left_global = g_ascii_isupper(left->type), right_global = g_ascii_isupper(right->type);

	if (left_global != right_global)
		return left_global ? -1 : 1;

	size_t left_count = leading_underscores(left->name), right_count = leading_underscores(right->name);

	if (left_count != right_count)
		return left_count < right_count ? -1 : 1;

	bool left_mark = is_mark(left), right_mark = is_mark(right);

	if (left_mark != right_mark)
		return left_mark ? 1 : -1;

	size_t left_length = strlen(left->name), right_length = strlen(right->name);

	if (left_length != right_length)
		return left_length > right_length ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* Where they are by address already, as in kallsyms, only those that share one are sorted. */
static void candidates_sort(GArray *candidates)
{
	struct candidate *all = (struct candidate *)candidates->data;
	const size_t n = candidates->len;

	for (size_t i = 1; i < n; i++) {
		if (all[i].symbol.address < all[i - 1].symbol.address) {
			g_array_sort(candidates, compare_candidates);
			return;
		}
	}
	for (size_t from = 0, to; from < n; from = to) {
		to = from + 1;
		while (to < n && all[to].symbol.address == all[from].symbol.address)
			to++;
		if (to - from > 1)
			qsort(&all[from], to - from, sizeof(*all), compare_candidates);
	}
}

/* A size of at least 1 that does not leave the symbol's region. `next`: the next higher address of a symbol. */
static uint64_t size_within(const struct symtab_region *region, const struct symbol *symbol, uint64_t next)
{
	if (!region)
		return MAX(symbol->size, 1);

	uint64_t room = region->end - symbol->address;

	if (symbol->size > 0)
		return MIN(symbol->size, room);
	return MIN(next - symbol->address, room);
}

static void set_sizes(struct symtab_builder *builder)
{
	struct candidate *all = (struct candidate *)builder->candidates->data;
	uint64_t next = UINT64_MAX;

	for (size_t i = builder->candidates->len; i-- > 0;) {
		struct symbol *symbol = &all[i].symbol;

		if (i + 1 < builder->candidates->len && all[i + 1].symbol.address > symbol->address)
			next = all[i + 1].symbol.address;
		/* Up to what was left out, in no case over it. */
		const uint64_t end = symbol->address < builder->cut ? MIN(next, builder->cut) : symbol->address + 1;

		symbol->size = size_within(region_at(builder->regions, symbol->address), symbol, end);
	}
}

/* Symbols that cover the sweep's position, the innermost last. */
struct open_symbol {
	uint64_t end;
	uint32_t symbol;
};

static void set_range(GArray *ranges, uint64_t start, uint32_t symbol)
{
	struct symtab_range range = {start, symbol};

	if (ranges->len > 0 && g_array_index(ranges, struct symtab_range, ranges->len - 1).start == start)
		g_array_set_size(ranges, ranges->len - 1);
	g_array_append_val(ranges, range);
}

/* Ends the symbols that end up to `limit`; the next one below that is still open has the addresses again. */
static void close_symbols(GArray *ranges, GArray *open, uint64_t limit)
{
	while (open->len > 0) {
		uint64_t end = g_array_index(open, struct open_symbol, open->len - 1).end;

		if (end > limit)
			return;
		while (open->len > 0 && g_array_index(open, struct open_symbol, open->len - 1).end <= end)
			g_array_set_size(open, open->len - 1);
		set_range(ranges, end,
		          open->len > 0 ? g_array_index(open, struct open_symbol, open->len - 1).symbol
		                        : SYMTAB_NO_SYMBOL);
	}
}

/* Whether candidates[i] may answer lookups. */
static bool covers_code(const struct symtab_builder *builder, size_t i)
{
	const struct candidate *candidate = &g_array_index(builder->candidates, struct candidate, i);
	const struct symtab_region *region = region_at(builder->regions, candidate->symbol.address);

	return !candidate->ends && region && region->code;
}

/* Flattens the candidates, which may nest and share addresses, into ranges that do neither. */
static GArray *ranges_new(const struct symtab_builder *builder)
{
	const struct candidate *all = (const struct candidate *)builder->candidates->data;
	size_t n = builder->candidates->len;
	GArray *ranges = g_array_new(false, false, sizeof(struct symtab_range));
	g_autoptr(GArray) open = g_array_new(false, false, sizeof(struct open_symbol));

	for (size_t from = 0, to; from < n; from = to) {
		uint64_t address = all[from].symbol.address;

		to = from + 1;
		while (to < n && all[to].symbol.address == address)
			to++;
		close_symbols(ranges, open, address);
		/* The best of an address comes last and so answers for as far as it reaches. */
		for (size_t i = to; i-- > from;) {
			struct open_symbol symbol = {address + all[i].symbol.size, (uint32_t)i};

			if (!covers_code(builder, i))
				continue;
			g_array_append_val(open, symbol);
			set_range(ranges, address, symbol.symbol);
		}
	}
	close_symbols(ranges, open, UINT64_MAX);
	return ranges;
}

void symtab_builder_init(struct symtab_builder *builder, GArray *regions, uint64_t bytes_max)
{
	const uint64_t ends = regions->len * sizeof(struct vprof_parse_range) + SYMTAB_HEADS_BYTES;

	g_array_sort(regions, compare_regions);
	builder->room = bytes_max - MIN(bytes_max, ends);
	builder->left_out = 0;
	builder->cut = UINT64_MAX;
	builder->candidates = g_array_new(false, false, sizeof(struct candidate));
	builder->names = g_string_chunk_new(NAMES_BLOCK_BYTES);
	builder->regions = regions;
}

void symtab_builder_deinit(struct symtab_builder *builder)
{
	g_array_unref(builder->candidates);
	g_clear_pointer(&builder->names, g_string_chunk_free);
	g_array_unref(builder->regions);
}

/* The first candidate at or behind `address`; their number when there is none. */
static size_t candidate_from(const struct symtab_builder *builder, uint64_t address)
{
	size_t low = 0, high = builder->candidates->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g_array_index(builder->candidates, struct candidate, middle).symbol.address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_symbols(const struct symtab_builder *builder, const struct symtab_region *region)
{
	for (size_t i = candidate_from(builder, region->start); i < builder->candidates->len; i++) {
		const struct candidate *candidate = &g_array_index(builder->candidates, struct candidate, i);

		if (candidate->symbol.address >= region->end)
			return false;
		if (!candidate->ends)
			return true;
	}
	return false;
}

/*
 * Linux's .altinstr_aux is such a section: its boot goes through there to ask for CPU features until it has patched
 * the questions out, often enough to be seen.
 */
static GArray *nameless_new(struct symtab_builder *builder)
{
	GArray *nameless = g_array_new(false, false, sizeof(struct symbol));

	for (guint i = 0; i < builder->regions->len; i++) {
		const struct symtab_region *region = &g_array_index(builder->regions, struct symtab_region, i);

		if (!region->code || !region->name || has_symbols(builder, region) ||
		    symtab_symbol_bytes(0, region->name) > builder->room)
			continue;
		builder->room -= symtab_symbol_bytes(0, region->name);

		char *name = g_string_chunk_insert(builder->names, region->name);
		struct symbol symbol = {region->start, region->end - region->start, name, 't'};

		text_make_printable(name);
		g_array_append_val(nameless, symbol);
	}
	return nameless;
}

struct symtab *symtab_builder_finish(struct symtab_builder *builder, const char *source)
{
	candidates_sort(builder->candidates);
	set_sizes(builder);

	g_autoptr(GArray) ranges = ranges_new(builder);

	if (ranges->len == 0 && builder->left_out == 0)
		return NULL;

	struct symtab *symtab = g_new0(struct symtab, 1);

	symtab->source = source;
	symtab->nameless = nameless_new(builder);
	symtab->names = g_steal_pointer(&builder->names);
	symtab->n_symbols = builder->candidates->len;
	symtab->symbols = g_new(struct symbol, symtab->n_symbols);
	for (size_t i = 0; i < symtab->n_symbols; i++)
		symtab->symbols[i] = g_array_index(builder->candidates, struct candidate, i).symbol;
	symtab->ranges = g_steal_pointer(&ranges);
	symtab->left_out = builder->left_out;
	for (size_t i = 0; i < symtab->n_symbols; i++)
		symtab->names_bytes += strlen(symtab->symbols[i].name) + 1;
	return symtab;
}

struct symtab *symtab_new_list(const char *source, const struct symtab_code *code, size_t n, uint64_t bytes_max,
                               void (*list)(struct symtab_builder *builder, void *data), void *data)
{
	GArray *regions = g_array_new(false, false, sizeof(struct symtab_region));
	struct symtab_builder builder;
	struct symtab *symtab;

	for (size_t i = 0; i < n; i++)
		symtab_add_region(regions, code[i].start, code[i].bytes, true, NULL);
	symtab_builder_init(&builder, regions, bytes_max);
	list(&builder, data);
	symtab = symtab_builder_finish(&builder, source);
	symtab_builder_deinit(&builder);
	return symtab;
}

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	g_string_chunk_free(symtab->names);
	g_free(symtab->symbols);
	g_array_unref(symtab->ranges);
	g_array_unref(symtab->nameless);
	symtab_packed_free(symtab->packed);
	g_free(symtab->places);
	g_free(symtab);
}

void symtab_keep_code(struct symtab *symtab)
{
	struct symtab_packed *packed =
		symtab->packed
			? NULL
			: symtab_packed_new(symtab->symbols, symtab->n_symbols,
	                                    (const struct symtab_range *)symtab->ranges->data, symtab->ranges->len);

	if (!packed)
		return;
	GStringChunk *names = g_string_chunk_new(1);

	symtab->source = g_string_chunk_insert(names, symtab->source);
	for (guint i = 0; i < symtab->nameless->len; i++) {
		struct symbol *section = &g_array_index(symtab->nameless, struct symbol, i);

		section->name = g_string_chunk_insert(names, section->name);
	}
	symtab->packed = packed;
	g_string_chunk_free(symtab->names);
	symtab->names = names;
	g_clear_pointer(&symtab->symbols, g_free);
	g_clear_pointer(&symtab->places, g_free);
	symtab->n_symbols = 0;
	g_array_unref(symtab->ranges);
	symtab->ranges = g_array_new(false, false, sizeof(struct symtab_range));
}

uint64_t symtab_bytes(const struct symtab *symtab)
{
	return (symtab->n_symbols + symtab->nameless->len) * sizeof(struct symbol) +
	       symtab->ranges->len * sizeof(struct symtab_range) + symtab->names_bytes +
	       symtab->n_places * sizeof(*symtab->places);
}

uint64_t symtab_left_out(const struct symtab *symtab)
{
	return symtab->left_out;
}

char *symtab_left_out_text(const struct symtab *symtab)
{
	if (symtab->left_out == 0)
		return NULL;
	return g_strdup_printf("it has %" G_GUINT64_FORMAT " symbols more than fit into the memory that the guest's "
	                       "may take: they are left out, and addresses there have no names",
	                       symtab->left_out);
}

const char *symtab_source(const struct symtab *symtab)
{
	return symtab->source;
}

static const struct symbol *nameless_find(const struct symtab *symtab, uint64_t address)
{
	for (guint i = 0; i < symtab->nameless->len; i++) {
		const struct symbol *section = &g_array_index(symtab->nameless, struct symbol, i);

		if (address - section->address < section->size)
			return section;
	}
	return NULL;
}

static const struct symbol *range_find(const struct symtab *symtab, uint64_t address)
{
	const struct symtab_range *ranges = (const struct symtab_range *)symtab->ranges->data;
	size_t low = 0, high = symtab->ranges->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && ranges[low - 1].symbol != SYMTAB_NO_SYMBOL ? &symtab->symbols[ranges[low - 1].symbol] : NULL;
}

const struct symbol *symtab_find(const struct symtab *symtab, uint64_t address)
{
	const struct symbol *found =
		symtab->packed ? symtab_packed_find(symtab->packed, address) : range_find(symtab, address);

	return found ? found : nameless_find(symtab, address);
}

#define DATA_BEFORE 64u /* symbols at lower addresses that may cover one, such as of an array's begin */

const struct symbol *symtab_find_data(const struct symtab *symtab, uint64_t address)
{
	const struct symbol *symbols = symtab->symbols, *found = NULL;
	size_t low = 0, high = symtab->n_symbols;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < DATA_BEFORE && low > i; i++) {
		const struct symbol *symbol = &symbols[low - 1 - i];

		/* The innermost, and of several at one address the first. */
		if (found && found->address != symbol->address)
			break;
		if (strchr("BbDdGgRrSsVv", symbol->type) && address - symbol->address < symbol->size)
			found = symbol;
	}
	return found;
}

/* ---- by name ---- */

#define NAME_PROBES_MAX 64u

/*
 * Where the first symbol of that name is, or an empty place for it; NULL: too many names want the same, which an image
 * can be made for.
 */
static uint32_t *place_find(const struct symtab *symtab, const char *name)
{
	const size_t first = g_str_hash(name);

	for (size_t i = 0; i < NAME_PROBES_MAX; i++) {
		uint32_t *place = &symtab->places[(first + i) & (symtab->n_places - 1)];

		if (*place == 0 || strcmp(symtab->symbols[*place - 1].name, name) == 0)
			return place;
	}
	return NULL;
}

void symtab_index_names(struct symtab *symtab)
{
	if (symtab->places || symtab->packed || symtab->n_symbols >= UINT32_MAX / 2)
		return;
	for (symtab->n_places = 1; symtab->n_places < 2 * symtab->n_symbols;)
		symtab->n_places *= 2;
	symtab->places = g_new0(uint32_t, symtab->n_places);
	for (size_t i = 0; i < symtab->n_symbols; i++) {
		uint32_t *place = place_find(symtab, symtab->symbols[i].name);

		if (!place) {
			g_clear_pointer(&symtab->places, g_free);
			return;
		}
		if (*place == 0)
			*place = (uint32_t)i + 1;
	}
}

const struct symbol *symtab_find_name(const struct symtab *symtab, const char *name)
{
	const uint32_t *place = symtab->places ? place_find(symtab, name) : NULL;

	if (place)
		return *place != 0 ? &symtab->symbols[*place - 1] : NULL;
	if (symtab->packed)
		return symtab_packed_find_name(symtab->packed, name);
	for (size_t i = 0; i < symtab->n_symbols; i++)
		if (strcmp(symtab->symbols[i].name, name) == 0)
			return &symtab->symbols[i];
	return NULL;
}

uint64_t symtab_address(const struct symtab *symtab, const char *name)
{
	const struct symbol *symbol = symtab_find_name(symtab, name);

	return symbol ? symbol->address : 0;
}

const struct symbol *symtab_symbols(const struct symtab *symtab, size_t *n)
{
	*n = symtab->n_symbols;
	return symtab->symbols;
}
