// SPDX-License-Identifier: BSD-2-Clause
#include "guest/user_text.h"

#include <string.h>

#define PAGES 128u
#define PAGE_BYTES 4096u
#define FUNCTIONS 2048u

/* By a hash of what it is of. */
struct text_page {
	const struct cfi_table *table; /* of the file; NULL: nothing is kept here */
	uint64_t offset;               /* in the file */
	uint8_t bytes[PAGE_BYTES];
};

struct user_text {
	struct text_page pages[PAGES];
	struct user_jumps jumps[FUNCTIONS];
};

struct user_text *user_text_new(void)
{
	return g_new0(struct user_text, 1);
}

void user_text_free(struct user_text *text)
{
	g_free(text);
}

static size_t slot_of(const struct user_range *range, uint64_t number, size_t slots)
{
	return (((uint64_t)(uintptr_t)range->table ^ number) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % slots;
}

/* The page of the file with the byte at `from`, which is in the range; NULL. */
static const uint8_t *page_read(struct user_text *text, const struct user_range *range, struct page_walk *memory,
                                uint64_t from)
{
	const uint64_t gva = from & ~(uint64_t)(PAGE_BYTES - 1), offset = gva - range->start + range->file_offset;
	struct text_page *page = &text->pages[slot_of(range, offset / PAGE_BYTES, PAGES)];

	if (page->table == range->table && page->offset == offset)
		return page->bytes;
	page->table = NULL;
	if (!page_walk_read_code(memory, (gva_t){gva}, page->bytes, PAGE_BYTES))
		return NULL;
	page->table = range->table;
	page->offset = offset;
	return page->bytes;
}

bool user_text_read(struct user_text *text, const struct user_code *code, struct page_walk *memory, uint64_t from,
                    void *to, size_t bytes)
{
	const struct user_range *range = user_code_find(code, from);
	uint8_t *out = to;

	if (!range || bytes > range->end - from)
		return false;
	if (!text || !range->table)
		return page_walk_read_code(memory, (gva_t){from}, to, bytes);
	while (bytes > 0) {
		const size_t at = from % PAGE_BYTES, n = MIN(bytes, PAGE_BYTES - at);
		const uint8_t *page = page_read(text, range, memory, from);

		if (!page)
			return false;
		memcpy(out, page + at, n);
		out += n;
		from += n;
		bytes -= n;
	}
	return true;
}

struct user_jumps *user_text_jumps(struct user_text *text, const struct user_range *range, uint64_t start, bool *known)
{
	const uint64_t offset = start - range->start + range->file_offset;
	struct user_jumps *jumps = &text->jumps[slot_of(range, offset, FUNCTIONS)];

	*known = jumps->table == range->table && jumps->offset == offset;
	if (!*known)
		*jumps = (struct user_jumps){.table = range->table, .offset = offset};
	return jumps;
}
