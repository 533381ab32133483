// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorder_symbols.h"

#include <elf.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define UPPER_HALF (UINT64_C(1) << 63)

bool segment_is_user_code(const struct image *image, const struct image_segment *segment)
{
	return !image_is_linux(image) && (segment->flags & PF_X) != 0 && segment->gva < UPPER_HALF;
}

static const struct symbol *kernel_start_symbol(const struct symtab *symtab)
{
	static const char *const names[] = {"_text", "_stext"};

	for (size_t i = 0; symtab && i < G_N_ELEMENTS(names); i++) {
		const struct symbol *symbol = symtab_find_name(symtab, names[i]);

		if (symbol)
			return symbol;
	}
	return NULL;
}

/* The range of the executable segments that are not user code; with `upper_only`, of those in the upper half. */
static bool kernel_segments(const struct image *image, bool upper_only, uint64_t *start, uint64_t *end)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	*start = UINT64_MAX;
	*end = 0;
	for (size_t i = 0; i < n; i++) {
		if ((segments[i].flags & PF_X) == 0 || (upper_only && segments[i].gva < UPPER_HALF))
			continue;
		*start = MIN(*start, segments[i].gva);
		*end = MAX(*end, segments[i].gva + segments[i].memory_bytes);
	}
	return *end > *start;
}

void kernel_code_range(const struct image *image, const struct symtab *symtab, struct code_range *range)
{
	const struct symbol *symbol = kernel_start_symbol(symtab);
	uint64_t start, end;

	*range = (struct code_range){.name = "_text"};
	if (!kernel_segments(image, true, &start, &end) && !kernel_segments(image, false, &start, &end))
		return;
	if (symbol && symbol->address >= start && symbol->address < end) {
		range->name = symbol->name;
		start = symbol->address;
	}
	range->start = start;
	range->bytes = end - start;
}

static int symbols_compare(const void *a, const void *b)
{
	const struct recording_symbol *left = a, *right = b;
	int order = strcmp(left->module, right->module);

	return order != 0 ? order : (left->address > right->address) - (left->address < right->address);
}

static size_t symbols_unique(struct recording_symbol *symbols, size_t n)
{
	size_t kept = 0;

	if (n != 0)
		qsort(symbols, n, sizeof(*symbols), symbols_compare);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || symbols_compare(&symbols[i], &symbols[kept - 1]) != 0)
			symbols[kept++] = symbols[i];
	return kept;
}

static bool symbols_overlap(const struct recording_symbol *before, const struct recording_symbol *symbol)
{
	return symbol->address - before->address < MAX(before->size, 1);
}

static bool symbols_equal(const struct recording_symbol *one, const struct recording_symbol *other)
{
	return one->address == other->address && strcmp(one->name, other->name) == 0;
}

/* Removes symbols that share an address with a different one; equal symbols of several kernels are kept once. */
static size_t symbols_certain(struct recording_symbol *symbols, size_t n)
{
	struct recording_symbol *last = NULL;
	size_t kept = 0;
	bool doubtful = false; /* the last one, which then represents all symbols that overlap it */

	if (n != 0)
		qsort(symbols, n, sizeof(*symbols), symbols_compare);
	for (size_t i = 0; i < n; i++) {
		if (last && symbols_equal(last, &symbols[i]))
			continue;
		if (last && symbols_overlap(last, &symbols[i])) {
			doubtful = true;
			last->size = MAX(last->size, symbols[i].address - last->address + symbols[i].size);
			continue;
		}
		kept -= doubtful;
		doubtful = false;
		symbols[kept++] = symbols[i];
		last = &symbols[kept - 1];
	}
	return kept - doubtful;
}

void symbols_order(GArray *symbols)
{
	g_array_set_size(symbols, (guint)symbols_unique((void *)symbols->data, symbols->len));
}

static int addresses_compare(const void *a, const void *b)
{
	const struct recording_symbol *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

void symbols_order_addresses(GArray *symbols)
{
	struct recording_symbol *all = (void *)symbols->data;
	guint kept = 0;

	g_array_sort(symbols, addresses_compare);
	for (guint i = 0; i < symbols->len; i++)
		if (kept == 0 || all[i].address != all[kept - 1].address)
			all[kept++] = all[i];
	g_array_set_size(symbols, kept);
}

void symbols_order_certain(GArray *symbols)
{
	g_array_set_size(symbols, (guint)symbols_certain((void *)symbols->data, symbols->len));
}

void symbols_hit(const struct histogram *histogram, const struct symtab *symtab, GArray *symbols)
{
	size_t n_hits;
	g_autofree struct histogram_hit *hits = histogram_hits(histogram, &n_hits);

	for (size_t i = 0; symtab && i < n_hits; i++) {
		const struct symbol *found = !hits[i].mapping ? symtab_find(symtab, hits[i].ip) : NULL;

		if (!found && !hits[i].mapping)
			found = symtab_find_data(symtab, hits[i].ip);
		if (!found)
			continue;
		const struct recording_symbol symbol = {
			.address = found->address, .size = found->size, .name = found->name, .module = ""};

		g_array_append_val(symbols, symbol);
	}
}

static bool user_symbol_find(struct user_symbols *user, const struct histogram_hit *hit, struct recording_symbol *found)
{
	const struct mapped_file *file = hit->mapping->file;
	struct user_symbol symbol;

	if (file->is_another ||
	    !user_symbols_find(user, file->path.raw, file->build_id_bytes != 0 ? file->build_id : NULL,
	                       file->build_id_bytes, mapping_file_offset(hit->mapping, hit->ip), &symbol))
		return false;
	*found = (struct recording_symbol){symbol.file_offset, symbol.size, symbol.name, file->name};
	return true;
}

void user_symbols_hit(const struct histogram *histogram, struct user_symbols *user, GArray *symbols)
{
	size_t n_hits;
	g_autofree struct histogram_hit *hits = histogram_hits(histogram, &n_hits);
	struct recording_symbol symbol;

	for (size_t i = 0; i < n_hits; i++)
		if (hits[i].mapping && user_symbol_find(user, &hits[i], &symbol))
			g_array_append_val(symbols, symbol);
}

void host_symbols_hit(const struct histogram *histogram, struct host_symbols *host, GArray *symbols)
{
	size_t n_hits;
	g_autofree struct histogram_hit *hits = histogram_host_hits(histogram, &n_hits);
	struct host_symbol found;

	for (size_t i = 0; i < n_hits; i++) {
		if (!host_symbols_find(host, hits[i].ip, &found))
			continue;
		const struct recording_symbol symbol = {found.address, found.size, found.name, found.module};

		g_array_append_val(symbols, symbol);
	}
}
