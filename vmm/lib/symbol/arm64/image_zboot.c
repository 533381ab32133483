// SPDX-License-Identifier: BSD-2-Clause
/*
 * Boot images of Linux for arm64 that are packed: with gzip, or in a program for EFI that unpacks them
 * (drivers/firmware/efi/libstub/zboot-header.S).
 */
#include "lib/symbol/image_priv.h"

/* A program for EFI with a kernel in it. */
#define ZBOOT_MAGIC 4u
#define ZBOOT_HEADER_BYTES 64u
#define ZBOOT_PAYLOAD_OFFSET 8u
#define ZBOOT_PAYLOAD_SIZE 12u
#define ZBOOT_TRAILER_BYTES 4u /* not counted in the payload's size; gzip has such a field of its own, which is */

bool image_is_zboot_file(struct span file)
{
	return span_holds(file, 0, ZBOOT_HEADER_BYTES) && memcmp(file.data, "MZ", 2) == 0 &&
	       memcmp(file.data + ZBOOT_MAGIC, "zimg", 4) == 0;
}

bool image_is_gzip_file(struct span file)
{
	return span_holds(file, 0, 2) && memcmp(file.data, "\x1f\x8b", 2) == 0;
}

bool image_unpack_zboot(struct image *image, GError **error)
{
	uint32_t offset = 0, bytes = 0;
	struct span file, payload;

	file.data = g_bytes_get_data(image->file, &file.n);
	span_read(file, ZBOOT_PAYLOAD_OFFSET, &offset, sizeof(offset));
	span_read(file, ZBOOT_PAYLOAD_SIZE, &bytes, sizeof(bytes));

	bool found = span_slice(file, offset, bytes, &payload);

	if (found && !image_is_gzip_file(payload))
		found = span_slice(file, offset, (uint64_t)bytes + ZBOOT_TRAILER_BYTES, &payload);
	if (!found)
		return image_fail(
			image, error, IMAGE_ERROR_TRUNCATED,
			"its payload (0x%x bytes at 0x%x) is outside the file (0x%zx bytes); copy or build it "
			"again",
			bytes, offset, file.n);
	return image_unpack_payload(image, payload, error);
}
