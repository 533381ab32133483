// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pages of a compressed dump, unpacked by vprof-parse: a question costs a process, so it is about all pages of a group,
 * and the groups that were read last are kept.
 */
#include <string.h>
#include <unistd.h>

#include "attach/core_file.h"
#include "attach/kdump_file.h"
#include "lib/parser/parser.h"

#define GROUPS 256u /* kept: of 128 MiB of memory, with pages of 4 KiB */
#define NO_GROUP UINT64_MAX

/* What is known of KDUMP_GROUP_PAGES page frames that follow each other. */
struct group {
	uint8_t *bytes; /* of all pages; NULL: not read yet */
	bool readable[KDUMP_GROUP_PAGES];
	uint64_t used; /* the count of reads when it was last */
};

struct kdump_groups {
	GMutex lock;              /* of all that follows */
	uint64_t numbers[GROUPS]; /* NO_GROUP: nothing is here */
	struct group groups[GROUPS];
	size_t last; /* the one that was used last */
	uint64_t reads;
};

struct kdump_groups *kdump_groups_new(void)
{
	struct kdump_groups *groups = g_new0(struct kdump_groups, 1);

	g_mutex_init(&groups->lock);
	for (size_t i = 0; i < GROUPS; i++)
		groups->numbers[i] = NO_GROUP;
	return groups;
}

void kdump_groups_free(struct kdump_groups *groups)
{
	if (!groups)
		return;
	for (size_t i = 0; i < GROUPS; i++)
		g_free(groups->groups[i].bytes);
	g_mutex_clear(&groups->lock);
	g_free(groups);
}

/* ---- vprof-parse ---- */

/* One byte for each page, whether it was unpacked, and the pages. NULL with PARSER_ERROR. */
static GBytes *pages_unpack(const struct kdump_file *dump, uint32_t n, const GByteArray *input, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_PAGES,
	                                      .bytes = input->len,
	                                      .answer_bytes = n * ((uint64_t)dump->page_bytes + 1),
	                                      .start = n,
	                                      .length = dump->page_bytes,
	                                      .packing = dump->packing};
	const int sealed = sealed_copy("vprof-pages", input->data, input->len);
	GBytes *answer = NULL;

	if (sealed < 0) {
		g_set_error_literal(error, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE, "there is no memory for them");
		return NULL;
	}
	answer = parser_ask_mapped(&request, sealed, error);
	close(sealed);
	if (!answer || g_bytes_get_size(answer) == request.answer_bytes)
		return answer;
	g_clear_pointer(&answer, g_bytes_unref);
	g_set_error_literal(error, PARSER_ERROR, PARSER_ERROR_REFUSED, "they have another size");
	return NULL;
}

bool kdump_packing_check(const struct kdump_file *dump, GError **error)
{
	g_autoptr(GByteArray) none = g_byte_array_new();
	g_autoptr(GError) why = NULL;
	g_autoptr(GBytes) answer = pages_unpack(dump, 0, none, &why);

	if (answer)
		return true;
	g_autofree char *text = g_strdup_printf("its packed pages %s; dump the guest with `virsh dump --memory-only "
	                                        "--format elf`",
	                                        why->message);

	return core_file_fail(error, text);
}

/* ---- a group ---- */

static bool frame_is_here(const struct kdump_file *dump, uint64_t frame)
{
	return frame < dump->n_frames && dump->bitmap[frame / 64] >> frame % 64 & 1;
}

/* Those of its pages, in their order; returns how many. */
static uint32_t frames_list(const struct kdump_file *dump, uint64_t first, uint8_t frames[KDUMP_GROUP_PAGES])
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < KDUMP_GROUP_PAGES; i++)
		if (frame_is_here(dump, first + i))
			frames[n++] = (uint8_t)i;
	return n;
}

/* Reads those that are not packed, and puts the sizes and the bytes of the others one behind the other. */
static uint32_t pages_gather(const struct kdump_file *dump, struct group *group, const struct kdump_page *pages,
                             uint32_t n, const uint8_t frames[], uint8_t packed[], GByteArray *input)
{
	uint32_t sizes[KDUMP_GROUP_PAGES], n_packed = 0;
	g_autoptr(GByteArray) data = g_byte_array_new();

	for (uint32_t i = 0; i < n; i++) {
		const struct kdump_page *page = &pages[i];

		if (page->bytes == 0 || page->bytes > dump->page_bytes)
			continue;
		if (page->flags == 0 && page->bytes == dump->page_bytes) {
			group->readable[frames[i]] =
				dump_bytes_read(dump->bytes, page->offset,
			                        group->bytes + frames[i] * (size_t)dump->page_bytes, page->bytes);
			continue;
		}
		g_byte_array_set_size(data, data->len + page->bytes);
		if (page->flags == 0 ||
		    !dump_bytes_read(dump->bytes, page->offset, data->data + data->len - page->bytes, page->bytes)) {
			g_byte_array_set_size(data, data->len - page->bytes);
			continue;
		}
		packed[n_packed] = frames[i];
		sizes[n_packed++] = page->bytes;
	}
	g_byte_array_append(input, (const uint8_t *)sizes, n_packed * (guint)sizeof(*sizes));
	g_byte_array_append(input, data->data, data->len);
	return n_packed;
}

static void packed_read(const struct kdump_file *dump, struct group *group, uint32_t n, const uint8_t packed[],
                        const GByteArray *input)
{
	g_autoptr(GBytes) answer = pages_unpack(dump, n, input, NULL);

	if (!answer)
		return;
	const uint8_t *whole = g_bytes_get_data(answer, NULL), *bytes = whole + n;

	for (uint32_t i = 0; i < n; i++) {
		group->readable[packed[i]] = whole[i];
		memcpy(group->bytes + packed[i] * (size_t)dump->page_bytes, bytes + i * (size_t)dump->page_bytes,
		       dump->page_bytes);
	}
}

static void group_read(const struct kdump_file *dump, struct group *group, uint64_t number)
{
	const uint64_t first = number * KDUMP_GROUP_PAGES;
	uint8_t frames[KDUMP_GROUP_PAGES], packed[KDUMP_GROUP_PAGES];
	struct kdump_page pages[KDUMP_GROUP_PAGES];
	g_autoptr(GByteArray) input = g_byte_array_new();
	const uint32_t n = frames_list(dump, first, frames);

	if (!group->bytes)
		group->bytes = g_malloc(KDUMP_GROUP_PAGES * (size_t)dump->page_bytes);
	memset(group->readable, 0, sizeof(group->readable));
	/* A group is two words of the bitmap. */
	if (n == 0 || !dump_bytes_read(dump->bytes, dump->descriptions + dump->before[first / 64] * sizeof(*pages),
	                               pages, n * sizeof(*pages)))
		return;
	const uint32_t n_packed = pages_gather(dump, group, pages, n, frames, packed, input);

	if (n_packed > 0)
		packed_read(dump, group, n_packed, packed, input);
}

/* The number of its place; the one that was used longest ago becomes its place. */
static size_t group_place(const struct kdump_file *dump, uint64_t number)
{
	struct kdump_groups *groups = dump->groups;
	size_t oldest = 0;

	for (size_t i = 0; i < GROUPS; i++) {
		if (groups->numbers[i] == number)
			return i;
		if (groups->groups[i].used < groups->groups[oldest].used)
			oldest = i;
	}
	groups->numbers[oldest] = number;
	group_read(dump, &groups->groups[oldest], number);
	return oldest;
}

bool kdump_page_read(const struct kdump_file *dump, uint64_t frame, size_t from, void *to, size_t bytes)
{
	struct kdump_groups *groups = dump->groups;
	const uint64_t number = frame / KDUMP_GROUP_PAGES;
	const size_t page = frame % KDUMP_GROUP_PAGES;

	if (!frame_is_here(dump, frame))
		return false;
	g_mutex_lock(&groups->lock);
	if (groups->numbers[groups->last] != number)
		groups->last = group_place(dump, number);
	struct group *group = &groups->groups[groups->last];
	const bool readable = group->readable[page];

	group->used = ++groups->reads;
	if (readable)
		memcpy(to, group->bytes + page * dump->page_bytes + from, bytes);
	g_mutex_unlock(&groups->lock);
	return readable;
}
