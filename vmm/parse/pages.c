// SPDX-License-Identifier: BSD-2-Clause
/* Pages of a compressed dump: each is packed by itself, and one that is damaged leaves the others whole. */
#include <string.h>
#include <zlib.h>

#ifdef VPROF_HAVE_LZO
#include <lzo/lzo1x.h>
#endif

#include "parse/parse.h"

static bool zlib_page(const uint8_t *packed, uint32_t n, uint8_t *page, size_t page_bytes)
{
	uLongf bytes = page_bytes;

	return uncompress(page, &bytes, packed, n) == Z_OK && bytes == page_bytes;
}

#ifdef VPROF_HAVE_LZO
static bool lzo_page(const uint8_t *packed, uint32_t n, uint8_t *page, size_t page_bytes)
{
	lzo_uint bytes = page_bytes;

	return lzo1x_decompress_safe(packed, n, page, &bytes, NULL) == LZO_E_OK && bytes == page_bytes;
}
#else
#define lzo_page NULL
#endif

static const struct packing {
	const char *library;
	bool (*unpack)(const uint8_t *packed, uint32_t n, uint8_t *page, size_t page_bytes);
} packings[] = {
	[VPROF_PARSE_PAGE_ZLIB] = {"zlib", zlib_page},
	[VPROF_PARSE_PAGE_LZO] = {"liblzo2", lzo_page},
	[VPROF_PARSE_PAGE_SNAPPY] = {"snappy", parse_snappy_page},
};

/* Into `pages`, with a byte before them for each: whether it was unpacked. */
static bool pages_unpack(const struct parse_input *input, uint64_t n, size_t page_bytes, const struct packing *packing,
                         uint8_t *whole, GError **error)
{
	uint8_t *page = whole + n;
	size_t at = n * sizeof(uint32_t);

	for (uint64_t i = 0; i < n; i++, page += page_bytes) {
		uint32_t bytes;

		memcpy(&bytes, input->bytes + i * sizeof(bytes), sizeof(bytes));
		if (bytes > input->n - at)
			return parse_fail(error, "the request is malformed");
		whole[i] = packing->unpack(input->bytes + at, bytes, page, page_bytes);
		at += bytes;
	}
	return true;
}

bool parse_pages(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error)
{
	const uint64_t n = request->start, page_bytes = request->length;

	if (request->packing == 0 || request->packing >= G_N_ELEMENTS(packings) || n > VPROF_PARSE_PAGES_MAX ||
	    page_bytes > VPROF_PARSE_PAGE_BYTES_MAX || input->n < n * sizeof(uint32_t))
		return parse_fail(error, "the request is malformed");
	if (!packings[request->packing].unpack)
		return parse_fail(error, "vprof-parse was built without %s", packings[request->packing].library);
	const size_t room = n * (page_bytes + 1);
	g_autofree uint8_t *whole = g_malloc0(room + 1);

	return pages_unpack(input, n, page_bytes, &packings[request->packing], whole, error) &&
	       parse_answer_put(answer, whole, room, error);
}
