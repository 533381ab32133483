// SPDX-License-Identifier: BSD-2-Clause
/*
 * bzImage files made by code: one setup sector, the payload packed with any compression that Linux knows.
 */
#ifndef VPROF_TEST_SUPPORT_BZIMAGE_BUILDER_H
#define VPROF_TEST_SUPPORT_BZIMAGE_BUILDER_H

#include <archive.h>
#include <archive_entry.h>
#include <glib.h>
#include <stdint.h>
#include <string.h>

#define BZIMAGE_SETUP_BYTES 1024u     /* the boot sector and one more */
#define BZIMAGE_PAYLOAD_OFFSET 0x40u  /* after the setup */
#define BZIMAGE_RELEASE_OFFSET 0x300u /* of the kernel_version string */

/* A legacy LZ4 frame with one block of literals; libarchive cannot write such frames. */
static inline GByteArray *bzimage_pack_lz4_legacy(const uint8_t *data, size_t n)
{
	GByteArray *packed = g_byte_array_new();
	uint32_t block_bytes;
	size_t rest;

	g_byte_array_append(packed, (const uint8_t *)"\x02\x21\x4c\x18\0\0\0\0\xf0", 9);
	for (rest = n - 15; rest >= 255; rest -= 255)
		g_byte_array_append(packed, (const uint8_t *)"\xff", 1);
	g_byte_array_append(packed, &(uint8_t){(uint8_t)rest}, 1);
	g_byte_array_append(packed, data, (guint)n);
	block_bytes = packed->len - 8;
	memcpy(packed->data + 4, &block_bytes, sizeof(block_bytes));
	return packed;
}

/* compression: as image_compression names it, or "lz4-legacy". NULL when this libarchive cannot write it. */
static inline GByteArray *bzimage_pack(const uint8_t *data, size_t n, const char *compression)
{
	size_t capacity = 2 * n + 65536, used = 0;
	GByteArray *packed = g_byte_array_new();
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	gboolean ok;

	if (strcmp(compression, "lz4-legacy") == 0) {
		g_byte_array_unref(packed);
		packed = bzimage_pack_lz4_legacy(data, n);
		ok = TRUE;
	} else {
		g_byte_array_set_size(packed, (guint)capacity);
		archive_entry_set_pathname(entry, "payload");
		archive_entry_set_filetype(entry, AE_IFREG);
		ok = archive_write_add_filter_by_name(archive, compression) == ARCHIVE_OK &&
		     archive_write_set_format_raw(archive) == ARCHIVE_OK &&
		     archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK &&
		     archive_write_open_memory(archive, packed->data, capacity, &used) == ARCHIVE_OK &&
		     archive_write_header(archive, entry) == ARCHIVE_OK &&
		     archive_write_data(archive, data, n) == (la_ssize_t)n &&
		     archive_write_close(archive) == ARCHIVE_OK;
		g_byte_array_set_size(packed, (guint)used);
	}
	archive_entry_free(entry);
	archive_write_free(archive);
	if (!ok)
		g_clear_pointer(&packed, g_byte_array_unref);
	return packed;
}

static inline void bzimage_put(GByteArray *file, size_t offset, uint32_t value, size_t bytes)
{
	memcpy(file->data + offset, &value, bytes); /* little-endian, as everything here */
}

/* Linux, Documentation/arch/x86/boot.rst. `packed` as bzimage_pack returns it; `size`: what it unpacks to. */
static inline GByteArray *bzimage_build(const GByteArray *packed, size_t size, const char *compression,
                                        const char *kernel_version)
{
	GByteArray *file = g_byte_array_new();
	uint32_t length = packed->len, trailer = (uint32_t)size;

	g_byte_array_set_size(file, BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET);
	memset(file->data, 0, file->len);
	bzimage_put(file, 0x1f1, 1, 1); /* setup_sects */
	bzimage_put(file, 0x1fe, 0xaa55, 2);
	bzimage_put(file, 0x200, 0x6aeb, 2); /* jmp to 0x26c */
	memcpy(file->data + 0x202, "HdrS", 4);
	bzimage_put(file, 0x206, 0x20f, 2);
	bzimage_put(file, 0x20e, BZIMAGE_RELEASE_OFFSET - 0x200, 2);
	strcpy((char *)file->data + BZIMAGE_RELEASE_OFFSET, kernel_version);
	g_byte_array_append(file, packed->data, packed->len);
	if (strcmp(compression, "gzip") != 0) {
		g_byte_array_append(file, (const uint8_t *)&trailer, sizeof(trailer));
		length += (uint32_t)sizeof(trailer);
	}
	bzimage_put(file, 0x248, BZIMAGE_PAYLOAD_OFFSET, 4);
	bzimage_put(file, 0x24c, length, 4);
	return file;
}

#endif
