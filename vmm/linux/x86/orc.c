// SPDX-License-Identifier: BSD-2-Clause
#include "linux/x86/orc_entry.h"

#include <string.h>

#define HEADER_BYTES 20u
#define ENTRIES_MAX (1u << 22)

/* One index slot for this many bytes of text, as in the kernel (LOOKUP_BLOCK_SIZE in asm/orc_lookup.h). */
#define BLOCK_SHIFT 8u
#define BLOCK_BYTES (1u << BLOCK_SHIFT)
#define TEXT_BYTES_MAX (UINT64_C(1) << 30)

_Static_assert(BLOCK_BYTES == UINT8_MAX + 1u, "a place in a block is a byte");

/* In the 16 bits of an entry's registers and type. */
#define RAW_REG_UNDEFINED 0u
#define END_BIT_4_14 10u
#define END_BIT_6_3 11u

enum version { VERSION_4_14, VERSION_6_3, VERSION_6_4, VERSION_7_1, VERSIONS };

struct unwind_tables {
	enum version version;
	uint64_t base;           /* address of the first entry */
	uint32_t end;            /* where the last entry starts, from base */
	size_t n;                /* entries, at least 1 */
	uint8_t *places;         /* n: where entry i starts, from its block's first byte */
	uint16_t *kinds;         /* n: which of the rules entry i is */
	struct orc_entry *rules; /* the distinct ones: a few hundred for half a million entries */
	uint32_t *blocks;        /* of each block from base to end, the first entry that starts in it or behind; n */
};

/* The hashes that scripts/orc_hash.sh makes of each layout; .orc_header exists from 6.3.10 and 6.4 on. */
static const struct {
	uint8_t hash[HEADER_BYTES];
	enum version version;
} headers[] = {
	{{0xdb, 0x84, 0xae, 0xd4, 0x10, 0x3b, 0x31, 0xdd, 0x51, 0xe0,
          0x17, 0xf8, 0xf7, 0x97, 0x83, 0xca, 0x98, 0x5c, 0x2c, 0x51},
         VERSION_6_3},
	{{0xfe, 0x5d, 0x32, 0xbf, 0x58, 0x1b, 0xd6, 0x3b, 0x2c, 0xa9,
          0xa5, 0xc6, 0x5b, 0xa5, 0xa6, 0x25, 0xea, 0xb3, 0xfe, 0x24},
         VERSION_6_4},
	{{0x13, 0x7c, 0x36, 0xad, 0x76, 0x27, 0xc4, 0xdd, 0x55, 0x93,
          0x21, 0x76, 0xbb, 0x0e, 0xcd, 0xbd, 0x50, 0x41, 0xfc, 0x82},
         VERSION_7_1},
};

/* SHA-1 of an empty input. */
static const uint8_t hash_of_nothing[HEADER_BYTES] = {0xda, 0x39, 0xa3, 0xee, 0x5e, 0x6b, 0x4b, 0x0d, 0x32, 0x55,
                                                      0xbf, 0xef, 0x95, 0x60, 0x18, 0x90, 0xaf, 0xd8, 0x07, 0x09};

static bool version_from_header(const uint8_t *header, size_t bytes, enum version *version)
{
	for (size_t i = 0; i < G_N_ELEMENTS(headers); i++) {
		if (bytes == HEADER_BYTES && memcmp(header, headers[i].hash, HEADER_BYTES) == 0) {
			*version = headers[i].version;
			return true;
		}
	}
	return false;
}

static uint8_t reg_decode(enum version version, unsigned raw)
{
	static const uint8_t since_4_14[16] = {
		ORC_REG_UNDEFINED, ORC_REG_PREV_SP, ORC_REG_DX,  ORC_REG_DI,          ORC_REG_BP,
		ORC_REG_SP,        ORC_REG_R10,     ORC_REG_R13, ORC_REG_BP_INDIRECT, ORC_REG_SP_INDIRECT,
	};
	static const uint8_t since_7_1[16] = {
		ORC_REG_UNDEFINED, ORC_REG_AX,  ORC_REG_DX,      ORC_REG_SP,          ORC_REG_BP,          ORC_REG_DI,
		ORC_REG_R10,       ORC_REG_R13, ORC_REG_PREV_SP, ORC_REG_SP_INDIRECT, ORC_REG_BP_INDIRECT,
	};

	return (version == VERSION_7_1 ? since_7_1 : since_4_14)[raw & 0xf];
}

static uint8_t type_decode(enum version version, unsigned flags)
{
	static const uint8_t since_4_14[4] = {ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL, ORC_UNDEFINED};
	static const uint8_t since_6_4[8] = {ORC_UNDEFINED, ORC_END_OF_STACK, ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL};
	unsigned end_bit = version == VERSION_4_14 ? END_BIT_4_14 : END_BIT_6_3;

	if (version >= VERSION_6_4)
		return since_6_4[flags >> 8 & 7];
	if ((flags & 0xf) == RAW_REG_UNDEFINED)
		return flags >> end_bit & 1 ? ORC_END_OF_STACK : ORC_UNDEFINED;
	return since_4_14[flags >> 8 & 3];
}

/* The six bytes of an entry as one number. */
static uint64_t entry_raw(const uint8_t *entries, size_t i)
{
	uint64_t raw = 0;

	memcpy(&raw, entries + i * ORC_ENTRY_BYTES, ORC_ENTRY_BYTES);
	return GUINT64_FROM_LE(raw);
}

static struct orc_entry entry_decode(enum version version, uint64_t raw)
{
	unsigned flags = (unsigned)(raw >> 32);

	return (struct orc_entry){
		.sp_offset = (int16_t)(raw & 0xffff),
		.bp_offset = (int16_t)(raw >> 16 & 0xffff),
		.sp_reg = reg_decode(version, flags),
		.bp_reg = reg_decode(version, flags >> 4),
		.type = type_decode(version, flags),
	};
}

/* The index of an entry among the distinct rules; a new rule is added. */
static size_t kind_find(GHashTable *kinds, GArray *rules, enum version version, uint64_t raw)
{
	gpointer key = (gpointer)(uintptr_t)raw;
	gpointer found;

	if (!g_hash_table_lookup_extended(kinds, key, NULL, &found)) {
		struct orc_entry rule = entry_decode(version, raw);

		found = GUINT_TO_POINTER(rules->len);
		g_array_append_val(rules, rule);
		g_hash_table_insert(kinds, key, found);
	}
	return GPOINTER_TO_UINT(found);
}

/* Each slot of .orc_unwind_ip holds the distance from itself to its code. */
static uint64_t address_decode(const uint8_t *ips, uint64_t section, size_t i)
{
	int32_t distance;

	memcpy(&distance, ips + i * sizeof(distance), sizeof(distance));
	return section + i * sizeof(distance) + (uint64_t)(int64_t)GINT32_FROM_LE(distance);
}

static bool order_check(struct unwind_tables *orc, const uint8_t *ips, uint64_t ips_address, GError **error)
{
	uint64_t previous = orc->base;

	for (size_t i = 0; i < orc->n; i++) {
		uint64_t address = address_decode(ips, ips_address, i);

		/* Linux sorts the table when it links (scripts/sorttable.c, since 5.6). */
		if (address < previous || address - orc->base >= TEXT_BYTES_MAX) {
			g_set_error(error, UNWIND_ERROR, UNWIND_ERROR_CORRUPT,
			            "entry %zu of .orc_unwind_ip (0x%" G_GINT64_MODIFIER
			            "x) is out of order or beyond 1 GiB of text",
			            i, address);
			return false;
		}
		previous = address;
	}
	orc->end = (uint32_t)(previous - orc->base);
	return true;
}

static void places_fill(struct unwind_tables *orc, const uint8_t *ips, uint64_t ips_address)
{
	size_t block = 0;

	for (size_t i = 0; i < orc->n; i++) {
		const uint64_t offset = address_decode(ips, ips_address, i) - orc->base;

		while (block <= offset >> BLOCK_SHIFT)
			orc->blocks[block++] = (uint32_t)i;
		orc->places[i] = (uint8_t)(offset % BLOCK_BYTES);
	}
	orc->blocks[block] = (uint32_t)orc->n;
}

static bool rules_fill(struct unwind_tables *orc, const uint8_t *entries, GError **error)
{
	g_autoptr(GHashTable) kinds = g_hash_table_new(NULL, NULL);
	GArray *rules = g_array_new(FALSE, FALSE, sizeof(struct orc_entry));

	for (size_t i = 0; i < orc->n && rules->len <= UINT16_MAX; i++)
		orc->kinds[i] = (uint16_t)kind_find(kinds, rules, orc->version, entry_raw(entries, i));
	bool fits = rules->len <= UINT16_MAX;

	orc->rules = (struct orc_entry *)(void *)g_array_free(rules, FALSE);
	if (!fits)
		g_set_error_literal(error, UNWIND_ERROR, UNWIND_ERROR_CORRUPT,
		                    ".orc_unwind has more than 65535 distinct entries; a kernel has a few hundred");
	return fits;
}

/* The first entry of a function: its return address is on top of the stack. */
static bool is_plain_call(enum version version, uint64_t raw)
{
	const struct orc_entry entry = entry_decode(version, raw);

	return entry.type == ORC_CALL && entry.sp_reg == ORC_REG_SP && entry.sp_offset == 8 &&
	       entry.bp_reg == ORC_REG_UNDEFINED;
}

/* 4.14 and 6.3 differ in one bit of the entries in which a stack ends. */
static enum version version_of_ends(const uint8_t *entries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned flags = (unsigned)(entry_raw(entries, i) >> 32);

		if ((flags & 0xf) == RAW_REG_UNDEFINED && flags >> END_BIT_6_3 & 1)
			return VERSION_6_3;
	}
	return VERSION_4_14;
}

/* What no entry of this layout is: a type without the register that it needs, or the other way round. */
static bool is_foreign(enum version version, uint64_t raw)
{
	const unsigned flags = (unsigned)(raw >> 32);
	const bool undefined = (flags & 0xf) == RAW_REG_UNDEFINED;
	const uint8_t type = type_decode(version, flags);

	if (version >= VERSION_6_4)
		return undefined != (type == ORC_UNDEFINED || type == ORC_END_OF_STACK);
	return flags >> (END_BIT_6_3 + 1) != 0 || (undefined && (flags >> 8 & 3) != 0);
}

/* One entry in five is a plain call; in another layout, the same bits are something else, or nothing at all. */
static bool version_from_entries(const uint8_t *entries, size_t n, enum version *version)
{
	gssize scores[VERSIONS] = {0};
	enum version best = VERSION_4_14;

	for (size_t i = 0; i < n; i++)
		for (unsigned v = 0; v < VERSIONS; v++)
			scores[v] += is_plain_call(v, entry_raw(entries, i)) - is_foreign(v, entry_raw(entries, i));
	for (unsigned v = 0; v < VERSIONS; v++)
		if (scores[v] > scores[best])
			best = v;
	if (scores[best] <= 0)
		return false;
	*version = best == VERSION_4_14 ? version_of_ends(entries, n) : best;
	return true;
}

/*
 * By its .orc_header; by the entries where there is none (before 6.3.10, and Red Hat's 5.14 with the layout of 6.4), or
 * where it is the hash of nothing, as in Alpine's kernels.
 */
static bool version_find(const struct image *image, const uint8_t *entries, size_t n, enum version *version,
                         GError **error)
{
	size_t bytes;
	uint64_t address;
	const uint8_t *header = image_section(image, ".orc_header", &bytes, &address);
	const bool is_empty = !header || (bytes == HEADER_BYTES && memcmp(header, hash_of_nothing, HEADER_BYTES) == 0);

	if (is_empty ? version_from_entries(entries, n, version) : version_from_header(header, bytes, version))
		return true;
	g_set_error(
		error, UNWIND_ERROR, UNWIND_ERROR_VERSION,
		is_empty
			? "%s: its .orc_unwind is of an ORC layout that this vprof does not know"
			: "%s: its .orc_header is of an ORC layout that this vprof does not know (newer than Linux 7.1?)",
		image_path(image));
	return false;
}

struct unwind_tables *orc_load(const struct image *image, GError **error)
{
	size_t ip_bytes, entry_bytes;
	uint64_t ips_address, entries_address;
	const uint8_t *ips = image_section(image, ".orc_unwind_ip", &ip_bytes, &ips_address);
	const uint8_t *entries = image_section(image, ".orc_unwind", &entry_bytes, &entries_address);
	enum version version;
	struct unwind_tables *orc;

	if (!ips || !entries || ip_bytes == 0) {
		g_set_error(error, UNWIND_ERROR, UNWIND_ERROR_NONE, "%s has no ORC tables", image_path(image));
		return NULL;
	}
	if (ip_bytes % sizeof(int32_t) != 0 || ip_bytes / sizeof(int32_t) > ENTRIES_MAX ||
	    entry_bytes != ip_bytes / sizeof(int32_t) * ORC_ENTRY_BYTES) {
		g_set_error(error, UNWIND_ERROR, UNWIND_ERROR_CORRUPT,
		            "%s: .orc_unwind_ip has %zu bytes and .orc_unwind %zu; 4 and 6 for each entry expected",
		            image_path(image), ip_bytes, entry_bytes);
		return NULL;
	}
	if (!version_find(image, entries, entry_bytes / ORC_ENTRY_BYTES, &version, error))
		return NULL;

	orc = g_new0(struct unwind_tables, 1);
	orc->version = version;
	orc->n = ip_bytes / sizeof(int32_t);
	orc->base = address_decode(ips, ips_address, 0);
	orc->kinds = g_new(uint16_t, orc->n);
	if (!order_check(orc, ips, ips_address, error) || !rules_fill(orc, entries, error)) {
		g_prefix_error(error, "%s: ", image_path(image));
		orc_free(orc);
		return NULL;
	}
	orc->blocks = g_new(uint32_t, (orc->end >> BLOCK_SHIFT) + 2);
	orc->places = g_new(uint8_t, orc->n);
	places_fill(orc, ips, ips_address);
	return orc;
}

void orc_free(struct unwind_tables *orc)
{
	if (!orc)
		return;
	g_free(orc->places);
	g_free(orc->kinds);
	g_free(orc->rules);
	g_free(orc->blocks);
	g_free(orc);
}

size_t orc_entries(const struct unwind_tables *orc)
{
	return orc->n;
}

const struct orc_entry *orc_find(const struct unwind_tables *orc, uint64_t address)
{
	uint64_t offset = address - orc->base;
	size_t low, high;

	/* The last entry of a table marks where its text ends. */
	if (address < orc->base || offset > orc->end)
		return NULL;
	low = orc->blocks[offset >> BLOCK_SHIFT];
	high = orc->blocks[(offset >> BLOCK_SHIFT) + 1];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (orc->places[middle] <= offset % BLOCK_BYTES)
			low = middle + 1;
		else
			high = middle;
	}
	/* The first entry is at base: there is one before. */
	return &orc->rules[orc->kinds[low - 1]];
}

struct orc_entry orc_decode(const struct unwind_tables *orc, const uint8_t bytes[ORC_ENTRY_BYTES])
{
	return entry_decode(orc->version, entry_raw(bytes, 0));
}

/* ---- tables of modules ---- */

/* Each slot holds the distance from itself to its code. */
static bool orc_slot_read(const struct module *module, struct page_walk *walk, uint32_t i, uint64_t *address)
{
	uint64_t slot = module->unwind_at[0] + i * sizeof(int32_t);
	int32_t distance;

	if (!page_walk_read_kernel(walk, (gva_t){slot}, &distance, sizeof(distance)))
		return false;
	*address = slot + (uint64_t)(int64_t)distance;
	return true;
}

static bool module_entry_find(const struct module *module, const struct unwind_tables *orc, struct page_walk *walk,
                              uint64_t address, struct orc_entry *entry)
{
	uint32_t low = 0, high = module->unwind_n;
	uint8_t bytes[ORC_ENTRY_BYTES];
	uint64_t start;

	/* The kernel has sorted it (unwind_module_init). `low`: how many entries begin at or before the address. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (!orc_slot_read(module, walk, middle, &start))
			return false;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 ||
	    !page_walk_read_kernel(walk, (gva_t){module->unwind_at[1] + (uint64_t)(low - 1) * ORC_ENTRY_BYTES}, bytes,
	                           sizeof(bytes)))
		return false;
	*entry = orc_decode(orc, bytes);
	return true;
}

bool module_orc_find(const struct module_table *table, const struct unwind_tables *orc, struct page_walk *walk,
                     uint64_t address, struct orc_entry *entry)
{
	const struct module_range *range = module_table_find(table, address);
	const struct snapshot *snapshot = walk->snapshot;

	if (!range)
		return false;
	/* A snapshot has stacks. The table is the same for as long as its module is there. */
	walk->snapshot = NULL;
	bool found = module_entry_find(&table->modules[range->module], orc, walk, address, entry);

	walk->snapshot = snapshot;
	return found;
}
