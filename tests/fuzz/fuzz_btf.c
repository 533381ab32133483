// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel's description of its types, right or wrong.
 */
#include "fuzz_target.h"
#include "guest/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btf *btf = btf_new(data, size, NULL);
	uint32_t offset;

	if (!btf)
		return 0;
	btf_member(btf, "task_struct", "pid", &offset);
	btf_member(btf, "pcpu_hot", "current_task", &offset);
	btf_free(btf);
	return 0;
}
