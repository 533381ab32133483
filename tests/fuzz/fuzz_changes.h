// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an input changes in a guest's memory: runs of bytes, each an offset in RAM (four bytes), a length (two), and the
 * bytes; and what must be true of a kernel that is found there.
 */
#ifndef VPROF_TEST_FUZZ_FUZZ_CHANGES_H
#define VPROF_TEST_FUZZ_FUZZ_CHANGES_H

#include <stdlib.h>
#include <string.h>

#include "../support/fake_guest_memory.h"
#include "lib/symbol/image.h"

static inline void memory_change(struct fake_guest *fake, const uint8_t *data, size_t size)
{
	uint32_t offset;
	uint16_t bytes;

	while (size >= sizeof(offset) + sizeof(bytes)) {
		memcpy(&offset, data, sizeof(offset));
		memcpy(&bytes, data + sizeof(offset), sizeof(bytes));
		data += sizeof(offset) + sizeof(bytes);
		size -= sizeof(offset) + sizeof(bytes);
		if (bytes > size || offset > FAKE_RAM_BYTES - bytes)
			return;
		memcpy(fake->ram + offset, data, bytes);
		data += bytes;
		size -= bytes;
	}
}

static inline void found_check(const struct image *image)
{
	size_t n, file_bytes;
	const struct image_segment *segments = image_segments(image, &n);

	image_bytes(image, &file_bytes);
	if (n == 0 || !image_is_linux(image))
		abort();
	for (size_t i = 0; i < n; i++)
		if (segments[i].file_bytes > file_bytes ||
		    segments[i].file_offset > file_bytes - segments[i].file_bytes)
			abort();
}

#endif
