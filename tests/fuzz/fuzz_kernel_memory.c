// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looking for the kernel of a hostile guest. Its memory is that of a guest with a kernel, in which an input changes
 * what it likes: eight bytes of CR3, eight of the IDT's address, and runs of bytes: offset in RAM (four bytes), length
 * (two), and the bytes. Nothing that is found may lie outside what was read, nor look like another kernel than it is.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/fake_kernel.h"
#include "attach/kernel_find.h"
#include "fuzz_target.h"

static struct fake_guest fake;

static void memory_change(const uint8_t *data, size_t size)
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
		memcpy(fake.ram + offset, data, bytes);
		data += bytes;
		size -= bytes;
	}
}

static void check(const struct image *image)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hmp_registers registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, 0x5a);
	struct kernel_found found;

	if (size < 16)
		return 0;
	memcpy(&registers.regs.cr3, data, 8);
	memcpy(&registers.idt, data + 8, 8);
	memory_change(data + 16, size - 16);
	if (kernel_find(&fake.guest, &registers, NULL, -1, &found, NULL)) {
		check(found.image);
		kernel_found_clear(&found);
	}
	return 0;
}
