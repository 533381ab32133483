// SPDX-License-Identifier: BSD-2-Clause
/* What is packed in a kernel's file, by vprof-parse. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

/* What the build appends to every payload: the size of what was compressed (gzip ends with such a field itself). */
#define TRAILER_BYTES 4u

/* One decoder for each magic, and never libarchive's own guess: that may chain filters or start programs. */
static const struct packing {
	const char *name;
	const char *magic;
	uint8_t magic_bytes;
	bool owns_trailer;
	enum vprof_parse_packing packing;
} PACKINGS[] = {
	{"gzip", "\x1f\x8b", 2, true, VPROF_PARSE_GZIP},
	{"bzip2", "BZh", 3, false, VPROF_PARSE_BZIP2},
	{"lzma", "\x5d\0\0", 3, false, VPROF_PARSE_LZMA},
	{"xz", "\xfd\x37zXZ\0", 6, false, VPROF_PARSE_XZ},
	{"lz4", "\x02\x21\x4c\x18", 4, false, VPROF_PARSE_LZ4}, /* legacy frame */
	{"lz4", "\x04\x22\x4d\x18", 4, false, VPROF_PARSE_LZ4},
	{"zstd", "\x28\xb5\x2f\xfd", 4, false, VPROF_PARSE_ZSTD},
};

static const struct packing *packing_of(struct span payload)
{
	for (size_t i = 0; i < G_N_ELEMENTS(PACKINGS); i++)
		if (span_holds(payload, 0, PACKINGS[i].magic_bytes) &&
		    memcmp(payload.data, PACKINGS[i].magic, PACKINGS[i].magic_bytes) == 0)
			return &PACKINGS[i];
	return NULL;
}

/* A memfd of the stream's bytes, at most as many as expected and one more. */
static int stream_unpack(const struct image *image, const struct packing *packing, struct span packed,
                         uint64_t expected, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_UNPACK,
	                                      .bytes = packed.n,
	                                      .answer_bytes = expected + 1,
	                                      .packing = packing->packing};
	int input = image->sealed;

	if (input >= 0)
		request.offset = (uint64_t)(packed.data - (const uint8_t *)g_bytes_get_data(image->file, NULL));
	else
		input = sealed_copy("vprof-payload", packed.data, packed.n);
	int answer = input >= 0 ? parser_ask(&request, input, error) : -1;

	if (input < 0)
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot be copied: %s", g_strerror(errno));
	else if (input != image->sealed)
		close(input);
	return answer;
}

static bool unpack(struct image *image, const struct packing *packing, struct span payload, GError **error)
{
	struct span packed = {payload.data, payload.n - (packing->owns_trailer ? 0 : TRAILER_BYTES)};
	g_autoptr(GError) why = NULL;
	uint32_t expected;

	memcpy(&expected, payload.data + payload.n - TRAILER_BYTES, sizeof(expected));
	if (expected == 0 || expected > IMAGE_UNPACKED_BYTES_MAX)
		return image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		                  "its %s payload says that it unpacks to %u bytes (the limit is %" PRIu64
		                  "); copy or build it again",
		                  packing->name, expected, IMAGE_UNPACKED_BYTES_MAX);
	int answer = stream_unpack(image, packing, packed, expected, &why);
	gsize got = 0;

	image->elf = answer >= 0 ? sealed_map(answer) : NULL;
	image->unpacked = answer;
	if (image->elf)
		g_bytes_get_data(image->elf, &got);
	if (image->elf && got == expected)
		return true;
	g_clear_pointer(&image->elf, g_bytes_unref);
	if (why)
		return image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		                  "its %s payload of %zu bytes %s; copy or build it again", packing->name, payload.n,
		                  why->message);
	return image_fail(image, error, IMAGE_ERROR_PAYLOAD,
	                  "its %s payload unpacks to %s than the %u bytes it was made of; copy or build it again",
	                  packing->name, got < expected ? "less" : "more", expected);
}

bool image_unpack_payload(struct image *image, struct span payload, GError **error)
{
	const struct packing *packing = packing_of(payload);

	if (!packing || payload.n <= packing->magic_bytes + TRAILER_BYTES)
		return image_fail(
			image, error, IMAGE_ERROR_PAYLOAD,
			"its payload of %zu bytes is not packed with gzip, bzip2, lzma, xz, lz4 or zstd; give the vmlinux it was made of",
			payload.n);
	if (!unpack(image, packing, payload, error))
		return false;
	image->compression = packing->name;
	return true;
}
