// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kdump_file.h"

#include <string.h>
#include <vprof/parse.h>

#include "attach/core_file.h"

#define SIGNATURE "KDUMP   "
#define VERSION 6u /* from it on, the number of page frames has 64 bits */
#define WORD_BITS 64u
#define BLOCK_BYTES_MIN 4096u
#define BLOCK_BYTES_MAX 65536u
#define PACKING_FLAGS 7u /* of header.status and kdump_page.flags: zlib, LZO, snappy */

struct header {
	char signature[8];
	uint32_t version;
	char names[6][65]; /* struct new_utsname; the fifth is the machine's */
	uint8_t pad[6];
	uint64_t time[2];
	uint32_t status, block_bytes;
	uint32_t sub_header_blocks, bitmap_blocks;
	uint32_t max_frame, ram_blocks, device_blocks, written_blocks; /* not used */
	uint32_t current_cpu, cpus;
};
_Static_assert(sizeof(struct header) == 464, "struct disk_dump_header without its tail");

struct sub_header {
	uint64_t phys_base;
	uint32_t dump_level, split;
	uint64_t start_frame, end_frame;
	uint64_t vmcoreinfo, vmcoreinfo_bytes;
	uint64_t notes, notes_bytes;
	uint64_t erased, erased_bytes;
	uint64_t start_frame_64, end_frame_64, max_frame_64;
};
_Static_assert(sizeof(struct sub_header) == 104, "struct kdump_sub_header of version 6");

bool kdump_file_is(const void *header, size_t n)
{
	return n >= sizeof(SIGNATURE) - 1 && memcmp(header, SIGNATURE, sizeof(SIGNATURE) - 1) == 0;
}

static uint32_t packing_of(uint32_t flags)
{
	switch (flags & PACKING_FLAGS) {
	case 1:
		return VPROF_PARSE_PAGE_ZLIB;
	case 2:
		return VPROF_PARSE_PAGE_LZO;
	case 4:
		return VPROF_PARSE_PAGE_SNAPPY;
	default:
		return 0;
	}
}

static bool header_check(const struct header *header, GError **error)
{
	if (header->version < VERSION)
		return core_file_fail(error, "it is of an older version of its format than QEMU writes (6)");
	if (strncmp(header->names[4], "x86_64", sizeof(header->names[4])) != 0)
		return core_file_fail(error, "it is not of an x86-64 guest");
	if (header->block_bytes < BLOCK_BYTES_MIN || header->block_bytes > BLOCK_BYTES_MAX ||
	    (header->block_bytes & (header->block_bytes - 1)) != 0)
		return core_file_fail(error, "its pages have a size that no processor has");
	if (packing_of(header->status) == 0)
		return core_file_fail(error, "its pages are packed by other means than zlib, LZO or snappy; dump the "
		                             "guest with `virsh dump --memory-only --format elf`");
	return true;
}

/* How many pages come before those of each word. */
static void pages_count(struct kdump_file *dump)
{
	for (size_t i = 0; i < dump->n_words; i++) {
		dump->before[i] = dump->n_pages;
		dump->n_pages += (uint64_t)__builtin_popcountll(dump->bitmap[i]);
	}
}

/* The second one, of the pages that the file has: behind that of the guest's memory. */
static bool bitmap_read(struct kdump_file *dump, uint64_t at, uint64_t bytes, GError **error)
{
	if (dump->n_frames > KDUMP_BITMAP_BYTES_MAX * 8)
		return core_file_fail(error, "it has more memory than any guest");
	if (dump->n_frames > bytes * 8)
		return core_file_fail(error, "its bitmap is smaller than its memory");
	dump->n_words = (size_t)((dump->n_frames + WORD_BITS - 1) / WORD_BITS);
	dump->bitmap = g_new0(uint64_t, dump->n_words + 1);
	dump->before = g_new0(uint64_t, dump->n_words + 1);
	if (!dump_bytes_read(dump->bytes, at, dump->bitmap, (size_t)((dump->n_frames + 7) / 8)))
		return core_file_fail(error, "it is cut off in its bitmaps");
	if (dump->n_frames % WORD_BITS != 0)
		dump->bitmap[dump->n_words - 1] &= (UINT64_C(1) << dump->n_frames % WORD_BITS) - 1;
	pages_count(dump);
	return dump->n_pages > 0 || core_file_fail(error, "it has no memory");
}

static bool dump_read(struct kdump_file *dump, GError **error)
{
	struct sub_header sub;
	struct header header;

	if (!dump_bytes_read(dump->bytes, 0, &header, sizeof(header)))
		return core_file_fail(error, "it is cut off in its header");
	if (!header_check(&header, error))
		return false;
	if (!dump_bytes_read(dump->bytes, header.block_bytes, &sub, sizeof(sub)))
		return core_file_fail(error, "it is cut off in its second header");
	if (sub.split)
		return core_file_fail(error, "it is one of several files of a dump, which cannot be put together");
	/* All of them have 32 bits. */
	const uint64_t bitmaps = (1 + (uint64_t)header.sub_header_blocks) * header.block_bytes;
	const uint64_t bitmaps_bytes = (uint64_t)header.bitmap_blocks * header.block_bytes;

	dump->page_bytes = header.block_bytes;
	dump->packing = packing_of(header.status);
	dump->n_frames = sub.max_frame_64;
	dump->descriptions = bitmaps + bitmaps_bytes;
	dump->notes = sub.notes;
	dump->notes_bytes = sub.notes_bytes;
	return bitmap_read(dump, bitmaps + bitmaps_bytes / 2, bitmaps_bytes / 2, error) &&
	       kdump_packing_check(dump, error);
}

struct kdump_file *kdump_file_open(const struct dump_bytes *bytes, GError **error)
{
	struct kdump_file *dump = g_new0(struct kdump_file, 1);

	dump->bytes = bytes;
	dump->groups = kdump_groups_new();
	if (dump_read(dump, error))
		return dump;
	kdump_file_free(dump);
	return NULL;
}

void kdump_file_free(struct kdump_file *dump)
{
	if (!dump)
		return;
	kdump_groups_free(dump->groups);
	g_free(dump->bitmap);
	g_free(dump->before);
	g_free(dump);
}

uint64_t kdump_file_memory_bytes(const struct kdump_file *dump)
{
	return dump->n_pages * dump->page_bytes;
}

bool kdump_file_read(const struct kdump_file *dump, gpa_t from, void *to, size_t bytes)
{
	uint8_t *out = to;

	while (bytes > 0) {
		const size_t offset = from.value % dump->page_bytes;
		const size_t n = MIN(bytes, dump->page_bytes - offset);

		if (!kdump_page_read(dump, from.value / dump->page_bytes, offset, out, n))
			return false;
		out += n;
		from.value += n;
		bytes -= n;
	}
	return true;
}
