// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel file, all the way to its symbols.
 */
#include "fuzz_target.h"
#include "lib/symbol/symtab.h"
#include "linux/syscall_table.h"
#include "linux/text_sites.h"
#include "linux/tracepoint.h"

/* Reads a span's ends, for the sanitizer to see. */
static void touch(const uint8_t *data, size_t bytes)
{
	static volatile uint8_t sink;

	if (data && bytes > 0)
		sink = (uint8_t)(sink + data[0] + data[bytes - 1]);
}

static void look_at(const struct image *image)
{
	size_t n, bytes;
	uint64_t address;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		const uint8_t *data = image_at(image, segments[i].gva, &bytes);

		if (data)
			touch(data, bytes);
	}
	/* Arguments have no order: first the span, then its size. */
	const uint8_t *span = image_build_id(image, &bytes);

	touch(span, bytes);
	span = image_setup_header(image, &bytes);
	touch(span, bytes);
	span = image_section(image, ".text", &bytes, &address);
	touch(span, bytes);
}

/* What the table promises: sorted, no empty symbol, and lookups that agree with the ranges. */
static void check(const struct symtab *symtab)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++) {
		const struct symbol *found = symtab_find(symtab, symbols[i].address);

		if (symbols[i].size == 0 || (i > 0 && symbols[i].address < symbols[i - 1].address) ||
		    !g_utf8_validate(symbols[i].name, -1, NULL))
			g_error("symbol %zu (%s) breaks a promise", i, symbols[i].name);
		if (found && symbols[i].address - found->address >= found->size)
			g_error("%s does not cover 0x%" G_GINT64_MODIFIER "x", found->name, symbols[i].address);
	}
}

/* By the way out of vprof-parse. */
static struct symtab *load(const struct image *image)
{
	struct symtab *parsed = symtab_parse(image, UINT64_MAX, NULL), *symtab;
	size_t n_parsed, n;

	if (!parsed)
		return NULL;
	g_autoptr(GBytes) answer = g_byte_array_free_to_bytes(symtab_encode(parsed, NULL, 0));

	symtab = symtab_decode(answer, 0);
	symtab_symbols(parsed, &n_parsed);
	if (!symtab || !symtab_symbols(symtab, &n) || n != n_parsed)
		g_error("a table of symbols is lost on its way");
	symtab_free(parsed);
	return symtab;
}

static void try_image(struct image *image)
{
	struct symtab *symtab;

	if (!image)
		return;
	look_at(image);
	symtab = load(image);
	if (symtab) {
		check(symtab);
		text_sites_free(text_sites_read(image, symtab));
		tracepoints_free(tracepoints_load(image, symtab, NULL));
		syscall_table_free(syscall_table_load(image, symtab));
	}
	symtab_free(symtab);
	image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autoptr(GBytes) file = g_bytes_new_static(data, size);

	/* It is never both. */
	try_image(image_new("fuzz", file, NULL));
	try_image(image_new_module("fuzz", file, NULL));
	return 0;
}
