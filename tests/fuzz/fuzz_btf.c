// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel's description of its types, right or wrong.
 */
#include "fuzz_target.h"
#include "guest/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btf *btf = btf_new(data, size, NULL);
	uint32_t offset, bytes, prototype;
	struct btf_value value;
	char *name;

	if (!btf)
		return 0;
	btf_member(btf, "task_struct", "pid", &offset, &bytes);
	btf_member(btf, "pcpu_hot", "current_task", &offset, &bytes);
	if (btf_function(btf, "work", &prototype)) {
		for (unsigned i = 0; btf_parameter(btf, prototype, i, &name, &value); i++) {
			g_free(name);
			btf_value_clear(&value);
		}
	}
	btf_free(btf);
	return 0;
}
