// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/rdpmc.h"

#include <elf.h>
#include <string.h>

/*
 * RDPMC and the shift that puts EDX above EAX, as compilers write Linux's rdpmcl() and native_read_pmc()
 * (arch/x86/include/asm/msr.h): rdpmc; shl $32, %rdx. Six bytes, because two alone stand in operands, too: Debian's
 * kernel has hundreds of those.
 */
static const uint8_t sequence[] = {0x0f, 0x33, 0x48, 0xc1, 0xe2, 0x20};
/* out %al, $RDPMC_PORT */
static const uint8_t replacement[] = {0xe6, RDPMC_PORT};

size_t rdpmc_replace(uint8_t *code, size_t bytes)
{
	size_t n = 0;
	const uint8_t *end = code + bytes;
	for (uint8_t *at = code; (at = memmem(at, (size_t)(end - at), sequence, sizeof(sequence))) != NULL; n++)
		at = (uint8_t *)memcpy(at, replacement, sizeof(replacement)) + sizeof(sequence);
	return n;
}

size_t rdpmc_replace_image(const struct memory *memory, const struct image *image)
{
	size_t n_segments, n = 0;
	const struct image_segment *segments = image_segments(image, &n_segments);
	for (size_t i = 0; i < n_segments; i++) {
		uint8_t *code = memory_at(memory, (gpa_t){segments[i].gpa}, segments[i].file_bytes);
		if (code && segments[i].flags & PF_X)
			n += rdpmc_replace(code, segments[i].file_bytes);
	}
	return n;
}
