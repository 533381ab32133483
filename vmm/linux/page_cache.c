// SPDX-License-Identifier: BSD-2-Clause
/* struct address_space and its xarray of folios: linux/fs.h, linux/xarray.h, linux/mm_types.h. */
#include "linux/page_cache.h"

#include <string.h>

#include "linux/processor.h"

#define PAGE_SHIFT 12u

/* Entries of an xarray by their lowest two bits: pointers have 00, values 1, and what is the array's own 10. */
#define ENTRY_MASK UINT64_C(3)
#define ENTRY_INTERNAL UINT64_C(2)
#define NODE_MIN UINT64_C(4096) /* internal entries above are nodes; those below 256 name another slot of the node */
#define SIBLING_MAX UINT64_C(256)
#define SLOTS 64u
#define SLOTS_SHIFT 6u
#define SHIFT_MAX 60u

#define FLAGS 64u
#define FOLIO_LOCKED 1u /* PG_locked, bit 0 in all versions: it is being read in */

/* folio: its members, and those of struct page, have the same offsets (FOLIO_MATCH). */
static bool folio_layout_load(const struct types *types, struct page_cache_layout *layout, GError **error)
{
	static const char *const structures[] = {"folio", "page"};

	for (size_t i = 0; i < G_N_ELEMENTS(structures); i++) {
		const struct types_member members[] = {
			{structures[i], "flags", 8, &layout->folio_flags},
			{structures[i], "mapping", 8, &layout->folio_mapping},
			{structures[i], "index", 8, &layout->folio_index},
		};

		g_clear_error(error);
		if (types_find(types, members, G_N_ELEMENTS(members), error))
			return true;
	}
	return false;
}

/* What only those need who change a page. */
static void states_load(const struct symtab *symtab, const struct types *types, struct page_cache_layout *layout)
{
	const struct types_member members[] = {
		{"inode", "i_ino", 8, &layout->inode_number},
		{"inode", "i_sb", 8, &layout->inode_super},
		{"super_block", "s_bdi", 8, &layout->super_bdi},
	};

	layout->no_bdi = symtab_address(symtab, "noop_backing_dev_info");
	layout->has_states = types_find(types, members, G_N_ELEMENTS(members), NULL) &&
	                     types_enumerator(types, "pageflags", "PG_dirty", &layout->dirty) &&
	                     types_enumerator(types, "pageflags", "PG_writeback", &layout->writeback) &&
	                     types_enumerator(types, "pageflags", "PG_uptodate", &layout->uptodate) &&
	                     layout->dirty < FLAGS && layout->writeback < FLAGS && layout->uptodate < FLAGS;
}

bool page_cache_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                            struct page_cache_layout *layout, GError **error)
{
	struct page_cache_layout loaded = {.pages = symtab_address(symtab, "vmemmap_base")};
	uint32_t tree, root, node_bytes;
	const struct types_member members[] = {
		{"address_space", "host", 8, &loaded.mapping_host},
		{"address_space", "i_pages", TYPES_PLACE, &tree},
		{"xarray", "xa_head", 8, &root},
		{"inode", "i_size", 8, &loaded.inode_size},
		{"xa_node", "shift", 1, &loaded.node_shift},
		{"xa_node", "slots", TYPES_PLACE, &loaded.node_slots},
	};

	if (linux_processor_of_image(image)->pages == 0) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "files in memory are found on x86-64 only");
		return false;
	}
	if (!types_find(types, members, G_N_ELEMENTS(members), error) || !folio_layout_load(types, &loaded, error))
		return false;
	if (!types_size(types, "page", &loaded.page_bytes) || loaded.page_bytes == 0 ||
	    !types_size(types, "xa_node", &node_bytes) || node_bytes < loaded.node_slots + SLOTS * sizeof(uint64_t)) {
		g_set_error(error, TYPES_ERROR, TYPES_ERROR_SIZE,
		            "the kernel's struct page or xa_node has another size than its members need");
		return false;
	}
	loaded.mapping_root = tree + root;
	states_load(symtab, types, &loaded);
	*layout = loaded;
	return true;
}

static bool word_read(const struct page_cache *cache, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(cache->walk, (gva_t){from}, word, sizeof(*word));
}

bool page_cache_open(struct page_cache *cache, const struct page_cache_layout *layout, struct page_walk *walk,
                     uint64_t mapping, uint64_t *bytes)
{
	const struct linux_processor *processor = linux_processor_of(walk->tables.processor);
	uint64_t inode;

	*cache = (struct page_cache){.layout = layout, .walk = walk, .mapping = mapping, .pages = processor->pages};
	return (layout->pages == 0 || word_read(cache, layout->pages, &cache->pages)) &&
	       word_read(cache, mapping + layout->mapping_host, &inode) &&
	       word_read(cache, inode + layout->inode_size, bytes) && *bytes >> 63 == 0;
}

static bool is_node(uint64_t entry)
{
	return (entry & ENTRY_MASK) == ENTRY_INTERNAL && entry > NODE_MIN;
}

/* A page's entry, and the number of the first page that it is for. */
struct found {
	uint64_t entry, first;
};

/* What slot `i` of the node says; a slot of a large folio names the first one that has it. */
static struct found slot_take(const uint64_t slots[SLOTS], uint64_t first, unsigned i, unsigned shift)
{
	uint64_t entry = slots[i];

	if ((entry & ENTRY_MASK) == ENTRY_INTERNAL && entry < SIBLING_MAX) {
		i = (unsigned)(entry >> 2);
		entry = i < SLOTS ? slots[i] : 0;
	}
	return (struct found){entry, first + ((uint64_t)i << shift)};
}

/* Goes down to the entry of page `number`; each node must have smaller parts than the one above it. */
static struct found entry_find(struct page_cache *cache, uint64_t number)
{
	const struct page_cache_layout *layout = cache->layout;
	struct found found = {0};
	unsigned above = SHIFT_MAX + SLOTS_SHIFT;
	uint8_t shift;

	if (cache->leaf.address != 0 && number - cache->leaf.first < SLOTS)
		return slot_take(cache->leaf.slots, cache->leaf.first, (unsigned)(number - cache->leaf.first), 0);
	cache->leaf.address = 0;
	if (!word_read(cache, cache->mapping + layout->mapping_root, &found.entry))
		return (struct found){0};
	/* A file of one page is nothing but that. */
	if (!is_node(found.entry))
		return number == 0 ? found : (struct found){0};
	while (is_node(found.entry)) {
		const uint64_t node = found.entry - ENTRY_INTERNAL;

		if (!page_walk_read_kernel(cache->walk, (gva_t){node + layout->node_shift}, &shift, sizeof(shift)) ||
		    shift > SHIFT_MAX || shift % SLOTS_SHIFT != 0 || shift + SLOTS_SHIFT > above ||
		    (number - found.first) >> shift >= SLOTS ||
		    !page_walk_read_kernel(cache->walk, (gva_t){node + layout->node_slots}, cache->leaf.slots,
		                           sizeof(cache->leaf.slots)))
			return (struct found){0};
		above = shift;
		if (shift == 0) {
			cache->leaf.address = node;
			cache->leaf.first = found.first;
		}
		found = slot_take(cache->leaf.slots, found.first, (unsigned)((number - found.first) >> shift), shift);
	}
	return found;
}

/* Whether the folio is still of this file, and whole; its flags. */
static bool folio_is(const struct page_cache *cache, const struct found *found, uint64_t *flags)
{
	const struct page_cache_layout *layout = cache->layout;
	uint64_t mapping, index;

	return word_read(cache, found->entry + layout->folio_flags, flags) && !(*flags & FOLIO_LOCKED) &&
	       word_read(cache, found->entry + layout->folio_mapping, &mapping) && mapping == cache->mapping &&
	       word_read(cache, found->entry + layout->folio_index, &index) && index == found->first;
}

/* Where the page is that an entry is for; false where it is none of a page in memory. */
static bool page_of(const struct page_cache *cache, const struct found *found, uint64_t number, gpa_t *at)
{
	const uint64_t offset = found->entry - cache->pages;
	uint64_t frame;

	if (found->entry == 0 || (found->entry & ENTRY_MASK) != 0 || number < found->first ||
	    offset % cache->layout->page_bytes != 0)
		return false;
	frame = offset / cache->layout->page_bytes + (number - found->first);
	at->value = frame << PAGE_SHIFT;
	return frame < UINT64_C(1) << (64 - PAGE_SHIFT);
}

enum page_state page_cache_find(struct page_cache *cache, uint64_t number, gpa_t *at)
{
	const struct page_cache_layout *layout = cache->layout;
	const struct found found = entry_find(cache, number);
	uint64_t flags;
	gpa_t page;

	if (!page_of(cache, &found, number, &page))
		return PAGE_ABSENT;
	if (!folio_is(cache, &found, &flags) || (flags >> layout->writeback & 1) || !(flags >> layout->uptodate & 1))
		return PAGE_BUSY;
	*at = page;
	return flags >> layout->dirty & 1 ? PAGE_DIRTY : PAGE_CLEAN;
}

bool page_cache_read(struct page_cache *cache, uint64_t number, uint8_t page[PAGE_CACHE_PAGE_BYTES])
{
	const struct found found = entry_find(cache, number);
	struct guest *guest = cache->walk->guest;
	uint64_t flags;
	gpa_t at;

	/* The guest may have taken the page for something else meanwhile. */
	return page_of(cache, &found, number, &at) && folio_is(cache, &found, &flags) &&
	       guest->ops->memory_read(guest, at, page, PAGE_CACHE_PAGE_BYTES) && folio_is(cache, &found, &flags);
}
