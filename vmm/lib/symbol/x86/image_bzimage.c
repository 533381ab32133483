// SPDX-License-Identifier: BSD-2-Clause
/*
 * bzImage: Linux, Documentation/arch/x86/boot.rst ("The Real-Mode Kernel Header"). The payload is vmlinux with its
 * debug sections removed, followed by relocation data, compressed (arch/x86/boot/compressed/Makefile).
 */
#include <inttypes.h>

#include "lib/symbol/image_priv.h"

/* Offsets in the file; the header begins at 0x1f1 and ends at 0x202 plus the byte at 0x201 (a jump's distance). */
#define SETUP_SECTORS 0x1f1u
#define SETUP_BOOT_FLAG 0x1feu
#define SETUP_END 0x201u
#define SETUP_MAGIC 0x202u
#define SETUP_VERSION 0x206u
#define SETUP_KERNEL_VERSION 0x20eu
#define SETUP_PAYLOAD_OFFSET 0x248u
#define SETUP_PAYLOAD_LENGTH 0x24cu

#define SETUP_VERSION_WITH_PAYLOAD 0x208u
#define SECTOR_BYTES 512u

bool image_is_bzimage_file(struct span file)
{
	return span_holds(file, SETUP_BOOT_FLAG, 8) && memcmp(file.data + SETUP_BOOT_FLAG, "\x55\xaa", 2) == 0 &&
	       memcmp(file.data + SETUP_MAGIC, "HdrS", 4) == 0;
}

/* kernel_version: an offset, less 0x200, of "RELEASE (BUILDER@HOST) #1 ..." in the setup sectors. */
static char *release_of(struct span setup)
{
	uint16_t offset = 0;
	struct span text;

	span_read(setup, SETUP_KERNEL_VERSION, &offset, sizeof(offset));
	if (offset == 0 ||
	    !span_slice(setup, SECTOR_BYTES + offset, setup.n - MIN(setup.n, SECTOR_BYTES + offset), &text))
		return NULL;
	return image_release_from(text);
}

bool image_unpack_bzimage(struct image *image, GError **error)
{
	uint32_t payload_offset = 0, payload_length = 0;
	uint16_t version = 0;
	struct span file, setup, payload;

	file.data = g_bytes_get_data(image->file, &file.n);
	span_read(file, SETUP_VERSION, &version, sizeof(version));
	if (version < SETUP_VERSION_WITH_PAYLOAD)
		return image_fail(
			image, error, IMAGE_ERROR_PAYLOAD,
			"its boot protocol %u.%02u does not say where the payload is (2.08 does, Linux 2.6.26); give the vmlinux it was made of",
			version >> 8, version & 0xff);

	/* 0 means 4, boot.rst. One more sector is the boot sector. */
	uint64_t setup_bytes = (uint64_t)((file.data[SETUP_SECTORS] ? file.data[SETUP_SECTORS] : 4) + 1) * SECTOR_BYTES;

	if (!span_slice(file, 0, setup_bytes, &setup) ||
	    !span_slice(file, SETUP_SECTORS, SETUP_MAGIC + file.data[SETUP_END] - SETUP_SECTORS,
	                &image->setup_header) ||
	    !span_read(file, SETUP_PAYLOAD_OFFSET, &payload_offset, sizeof(payload_offset)) ||
	    !span_read(file, SETUP_PAYLOAD_LENGTH, &payload_length, sizeof(payload_length)) ||
	    !span_slice(file, setup_bytes + payload_offset, payload_length, &payload))
		return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
		                  "its setup (0x%" PRIx64 " bytes) and payload (0x%x bytes at 0x%" PRIx64
		                  ") are outside the file (0x%zx bytes); copy or build it again",
		                  setup_bytes, payload_length, setup_bytes + payload_offset, file.n);

	if (!image_unpack_payload(image, payload, error))
		return false;
	image->release = release_of(setup);
	return true;
}
