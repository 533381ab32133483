// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looking for the kernel of a hostile guest. Its memory is that of a guest with a kernel, in which an input changes
 * what it likes: eight bytes of CR3, eight of the IDT's address, and then as in fuzz_changes.h. Nothing that is found
 * may lie outside what was read, nor look like another kernel than it is. The search ends within its look.
 */
#include <string.h>

#include "../support/fake_kernel.h"
#include "fuzz_changes.h"
#include "fuzz_target.h"
#include "guest/kernel_find.h"

#define LOOK_BYTES (UINT64_C(64) << 20)
#define LOOK_STEPS (UINT64_C(1) << 20)

static struct fake_guest fake;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, 0x5a);
	struct kernel_found found;
	struct look look;

	if (size < 16)
		return 0;
	memcpy(&registers.regs.cr3, data, 8);
	memcpy(&registers.vectors, data + 8, 8);
	memory_change(&fake, data + 16, size - 16);
	look_init(&look, &fake.guest);
	look.bytes_left = LOOK_BYTES;
	look.steps_left = LOOK_STEPS;
	fake.reads = 0;
	const bool done = kernel_find(&look, &registers, NULL, -1, &found, NULL);

	if (done) {
		found_check(found.image);
		kernel_found_clear(&found);
	}
	if (fake.reads > LOOK_BYTES / LOOK_READ_BYTES || look.kernels_left > LOOK_KERNELS_MAX ||
	    look.steps_left > LOOK_STEPS || (done && look_gave_up(&look)))
		abort();
	return 0;
}
