// SPDX-License-Identifier: BSD-2-Clause
#include "linux/text_sites.h"

#include <string.h>

#define TABLE_BYTES_MAX (16u << 20) /* Debian's have 200 KiB */
#define SITE_BYTES_MAX 255u         /* as the tables have 8 bits for it */

struct site {
	uint64_t start;
	unsigned bytes;
	const char *what;
};

struct text_sites {
	GArray *all; /* of struct site, by start */
};

/* A table's bytes, and where the first one is in the guest. */
struct table {
	const uint8_t *data;
	size_t n;
	uint64_t at;
};

/* The position of a word that says how far its target is from itself. */
static uint64_t target_of(const struct table *table, size_t position)
{
	int32_t distance;

	memcpy(&distance, table->data + position, sizeof(distance));
	return table->at + position + (uint64_t)(int64_t)distance;
}

/* What lies between two symbols; false when the kernel was built without the table, or its image does not have it. */
static bool table_find(const struct image *image, const struct symtab *symtab, const char *start, const char *end,
                       struct table *table)
{
	const struct symbol *from = symtab_find_name(symtab, start), *to = symtab_find_name(symtab, end);
	size_t n;

	if (!from || !to || to->address <= from->address || to->address - from->address > TABLE_BYTES_MAX)
		return false;
	*table = (struct table){image_at(image, from->address, &n), to->address - from->address, from->address};
	return table->data && table->n <= n;
}

static void add(struct text_sites *sites, uint64_t start, unsigned bytes, const char *what)
{
	const struct site site = {start, bytes, what};

	g_array_append_val(sites->all, site);
}

/* ---- the tables; each word that is an address is relative to itself ---- */

/* struct jump_entry (linux/jump_label.h), static_call_site (linux/static_call_types.h): code first. */
static const struct {
	const char *start, *end, *what;
	size_t entry_bytes;
} TABLES[] = {
	{"__start___jump_table", "__stop___jump_table", "a jump label", 16},
	{"__start_static_call_sites", "__stop_static_call_sites", "a static call", 8},
};

static void read_tables(struct text_sites *sites, const struct image *image, const struct symtab *symtab)
{
	struct table table;

	for (size_t i = 0; i < G_N_ELEMENTS(TABLES); i++) {
		if (!table_find(image, symtab, TABLES[i].start, TABLES[i].end, &table))
			continue;
		for (size_t at = 0; at + TABLES[i].entry_bytes <= table.n; at += TABLES[i].entry_bytes)
			add(sites, target_of(&table, at), 1, TABLES[i].what);
	}
}

/*
 * struct alt_instr (asm/alternative.h): the code, what replaces it, 2 bytes that say when (4 from Linux 6.3 on), how
 * long it is, how long that is; up to 5.13 a byte of padding more.
 */
static const struct {
	size_t entry_bytes, length_at;
} FORMS[] = {{12, 10}, {14, 12}, {13, 10}};

/* Whether entries of this form lie there: nearly all code is a function's; some is in sections without symbols. */
static bool alternatives_are(const struct table *table, const struct symtab *symtab, size_t entry_bytes)
{
	size_t in_functions = 0, n = table->n / entry_bytes;

	for (size_t i = 0; i < n; i++)
		in_functions += symtab_find(symtab, target_of(table, i * entry_bytes)) != NULL;
	return n * entry_bytes == table->n && in_functions > n - n / 8;
}

static void read_alternatives(struct text_sites *sites, const struct image *image, const struct symtab *symtab)
{
	struct table table;

	if (!table_find(image, symtab, "__alt_instructions", "__alt_instructions_end", &table))
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(FORMS); i++) {
		if (!alternatives_are(&table, symtab, FORMS[i].entry_bytes))
			continue;
		for (size_t at = 0; at < table.n; at += FORMS[i].entry_bytes)
			add(sites, target_of(&table, at), table.data[at + FORMS[i].length_at], "an alternative");
		return;
	}
}

/* struct paravirt_patch_site (asm/paravirt_types.h, up to Linux 6.7): the address itself, a type, the length. */
static void read_paravirt(struct text_sites *sites, const struct image *image, const struct symtab *symtab)
{
	struct paravirt_site {
		uint64_t address;
		uint8_t type, bytes, padding[6];
	} entry;
	struct table table;

	if (!table_find(image, symtab, "__parainstructions", "__parainstructions_end", &table))
		return;
	for (size_t at = 0; at + sizeof(entry) <= table.n; at += sizeof(entry)) {
		memcpy(&entry, table.data + at, sizeof(entry));
		add(sites, entry.address + image_slide(image), entry.bytes, "a paravirtual operation");
	}
}

/*
 * The addresses of what ftrace changes at functions' entries (include/asm-generic/vmlinux.lds.h, MCOUNT_REC): it does
 * so also where the image has no symbol for a function.
 */
static void read_ftrace(struct text_sites *sites, const struct image *image, const struct symtab *symtab)
{
	struct table table;
	uint64_t address;

	if (!table_find(image, symtab, "__start_mcount_loc", "__stop_mcount_loc", &table))
		return;
	for (size_t at = 0; at + sizeof(address) <= table.n; at += sizeof(address)) {
		memcpy(&address, table.data + at, sizeof(address));
		add(sites, address + image_slide(image), 1, "ftrace's");
	}
}

/* ---- */

static int compare(gconstpointer left, gconstpointer right)
{
	const struct site *x = left, *y = right;

	return (x->start > y->start) - (x->start < y->start);
}

struct text_sites *text_sites_read(const struct image *image, const struct symtab *symtab)
{
	struct text_sites *sites = g_new0(struct text_sites, 1);

	sites->all = g_array_new(false, false, sizeof(struct site));
	read_tables(sites, image, symtab);
	read_alternatives(sites, image, symtab);
	read_paravirt(sites, image, symtab);
	read_ftrace(sites, image, symtab);
	g_array_sort(sites->all, compare);
	return sites;
}

void text_sites_free(struct text_sites *sites)
{
	if (!sites)
		return;
	g_array_unref(sites->all);
	g_free(sites);
}

/* The first site behind `address`. */
static guint find_behind(const struct text_sites *sites, uint64_t address)
{
	guint low = 0, high = sites->all->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (g_array_index(sites->all, struct site, middle).start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *text_sites_find(const struct text_sites *sites, uint64_t address)
{
	for (guint i = find_behind(sites, address); i-- > 0;) {
		const struct site *site = &g_array_index(sites->all, struct site, i);

		if (address - site->start < site->bytes)
			return site->what;
		if (address - site->start > SITE_BYTES_MAX)
			return NULL;
	}
	return NULL;
}
