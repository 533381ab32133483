// SPDX-License-Identifier: BSD-2-Clause
#include "guest/page_walk.h"

#include <string.h>

#include "guest/processor.h"

static void init(struct page_walk *walk, struct guest *guest)
{
	walk->guest = guest;
	walk->snapshot = NULL;
	walk->ahead = (struct snapshot_span){0};
	walk->next = 0;
	for (unsigned i = 0; i < PAGE_WALK_CACHED; i++)
		walk->cache[i].page.bytes = 0;
}

void page_walk_init_tables(struct page_walk *walk, struct guest *guest, const struct guest_tables *tables)
{
	init(walk, guest);
	walk->tables = *tables;
}

void page_walk_init_regs(struct page_walk *walk, struct guest *guest, const struct guest_regs *regs)
{
	init(walk, guest);
	walk->tables = guest_regs_tables(regs);
}

bool page_walk_leaf(const struct page_walk *walk, gva_t from, struct page_leaf *leaf)
{
	return processor_of(walk->tables.processor)->memory->leaf(walk, from, leaf);
}

/* Also says how many bytes of its page there are from there on. */
static bool translate(struct page_walk *walk, gva_t from, gpa_t *to, uint64_t *left)
{
	struct page_leaf leaf;

	for (unsigned i = 0; i < PAGE_WALK_CACHED; i++) {
		const struct gva_range page = walk->cache[i].page;

		if (gva_range_has(page, from.value)) {
			*to = (gpa_t){walk->cache[i].gpa + (from.value - page.first)};
			*left = gva_range_left(page, from.value);
			return true;
		}
	}
	if (!page_walk_leaf(walk, from, &leaf))
		return false;
	walk->cache[walk->next].page = leaf.page;
	walk->cache[walk->next].gpa = leaf.gpa;
	walk->next = (walk->next + 1) % PAGE_WALK_CACHED;
	*to = page_leaf_gpa(&leaf, from.value);
	*left = gva_range_left(leaf.page, from.value);
	return true;
}

bool page_walk_init_kernel(struct page_walk *walk, gva_t page_tables, struct guest *guest,
                           const struct guest_regs *regs)
{
	return processor_of(regs->processor)->memory->kernel_open(page_tables, guest, regs, walk);
}

bool page_walk_translate(struct page_walk *walk, gva_t from, gpa_t *to)
{
	uint64_t left;

	return translate(walk, from, to, &left);
}

/* Whether all of it was read ahead. */
static bool ahead_read(const struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	const uint64_t offset = from.value - walk->ahead.gva;

	if (offset >= walk->ahead.bytes || bytes > walk->ahead.bytes - offset)
		return false;
	memcpy(to, walk->ahead.data + offset, bytes);
	return true;
}

bool page_walk_read(struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	uint8_t *out = to;

	if (bytes > gva_room(from.value))
		return false;
	if (walk->snapshot)
		return snapshot_read(walk->snapshot, from, to, bytes);
	if (ahead_read(walk, from, to, bytes))
		return true;
	while (bytes > 0) {
		uint64_t left;
		gpa_t gpa;

		if (!translate(walk, from, &gpa, &left))
			return false;
		size_t n = bytes < left ? bytes : (size_t)left;

		if (!walk->guest->ops->memory_read(walk->guest, gpa, out, n))
			return false;
		out += n;
		bytes -= n;
		from.value += n;
	}
	return true;
}

void page_walk_read_ahead(struct page_walk *walk, gva_t from, uint8_t buffer[PAGE_WALK_AHEAD_BYTES])
{
	const size_t bytes = PAGE_WALK_AHEAD_BYTES - from.value % PAGE_WALK_AHEAD_BYTES;

	if (page_walk_read(walk, from, buffer, bytes))
		walk->ahead = (struct snapshot_span){from.value, bytes, buffer};
}

bool page_walk_read_code(struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	const struct snapshot *snapshot = walk->snapshot;

	walk->snapshot = NULL;
	bool done = page_walk_read(walk, from, to, bytes);

	walk->snapshot = snapshot;
	return done;
}
