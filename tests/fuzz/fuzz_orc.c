// SPDX-License-Identifier: BSD-2-Clause
/* The ORC tables of a kernel image, right or wrong, and look-ups in what could be loaded. */
#include <stdlib.h>

#include "fuzz_target.h"
#include "linux/orc.h"
#include "linux/x86/orc_entry.h"

#define LOOKUPS 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autoptr(GBytes) bytes = g_bytes_new_static(data, size);
	struct image *image = image_new("fuzz", bytes, NULL);
	struct unwind_tables *orc = image ? orc_load(image, NULL) : NULL;
	uint64_t address = UINT64_C(0xffffffff81000000);

	for (unsigned i = 0; orc && i < LOOKUPS; i++) {
		const struct orc_entry *entry = orc_find(orc, address);

		if (entry && (entry->sp_reg > ORC_REG_AX || entry->bp_reg > ORC_REG_AX))
			abort();
		address = i % 2 == 0 ? address + i * 7 : address * UINT64_C(6364136223846793005) + 1;
	}
	orc_free(orc);
	image_free(image);
	return 0;
}
