// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looking for the kernel of a hostile guest of arm64. Its memory is that of a guest with a kernel, in which an input
 * changes what it likes: VBAR_EL1, TTBR1_EL1 and TCR_EL1, eight bytes each, added to the right ones, and then as in
 * fuzz_changes.h. Where it changes nothing, the kernel must be found; nothing that is found may lie outside what was
 * read.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/fake_kernel.h"
#include "fuzz_changes.h"
#include "fuzz_target.h"
#include "guest/kernel_find.h"

/* 48 bits, pages of 4 KiB; one table for each level, below those of x86-64. */
#define TCR_4K (UINT64_C(16) | UINT64_C(16) << 16 | UINT64_C(2) << 30)
#define TABLE(level) (UINT64_C(0x8000) + (level)*UINT64_C(0x1000))
#define TABLE_OR_PAGE 3u
#define HEADER_MAGIC 56u /* Documentation/arch/arm64/booting.rst */
#define HEADER_BYTES 16u

static struct fake_guest fake;

static void entry_put(unsigned level, uint64_t gva, uint64_t to)
{
	fake_write(&fake, TABLE(level) + (gva >> (39 - 9 * level) & 511) * 8, to | TABLE_OR_PAGE);
}

static struct seen_vcpu guest_make(void)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, 0x5a);
	uint8_t *image = fake.ram + FAKE_KERNEL_GPA;

	memcpy(image + HEADER_MAGIC, "ARM\x64", 4);
	fake_write(&fake, FAKE_KERNEL_GPA + HEADER_BYTES, FAKE_KERNEL_BYTES);
	for (unsigned level = 0; level < 3; level++)
		entry_put(level, FAKE_KERNEL_LINKED, TABLE(level + 1));
	for (uint64_t offset = 0; offset < FAKE_KERNEL_BYTES; offset += 4096)
		entry_put(3, FAKE_KERNEL_LINKED + offset, FAKE_KERNEL_GPA + offset);
	registers.regs = (struct guest_regs){
		.processor = GUEST_ARM64,
		.valid = true,
		.arm64 = {.el = 1, .tables = {.ttbr1 = TABLE(0), .tcr = TCR_4K, .mmu = true}},
	};
	registers.vectors = FAKE_KERNEL_LINKED + FAKE_KERNEL_VECTORS;
	registers.long_mode = true;
	return registers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen_vcpu registers = guest_make();
	struct kernel_found found;
	struct look look;
	uint64_t changes[3] = {0};

	if (size >= sizeof(changes))
		memcpy(changes, data, sizeof(changes));
	registers.vectors += changes[0];
	registers.regs.arm64.tables.ttbr1 += changes[1];
	registers.regs.arm64.tables.tcr += changes[2];
	if (size > sizeof(changes))
		memory_change(&fake, data + sizeof(changes), size - sizeof(changes));
	look_init(&look, &fake.guest);
	if (kernel_find(&look, &registers, NULL, -1, &found, NULL)) {
		found_check(found.image);
		kernel_found_clear(&found);
	} else if (size < sizeof(changes)) {
		abort();
	}
	return 0;
}
