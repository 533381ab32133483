// SPDX-License-Identifier: BSD-2-Clause
/* The records of the BPF iterator: whatever they say, vCPUs and ranges are in order and within their arrays. */
#include <stdlib.h>

#include "attach/kvm_machine.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kvm_machine machine;

	if (!kvm_machine_decode(data, size, &machine, NULL))
		return 0;
	if (machine.n_vcpus == 0 || machine.n_vcpus > GUEST_VCPUS_MAX || machine.n_ranges > KVM_MACHINE_RANGES_MAX)
		abort();
	for (unsigned i = 1; i < machine.n_vcpus; i++)
		if (machine.vcpus[i].id <= machine.vcpus[i - 1].id)
			abort();
	for (size_t i = 0; i < machine.n_ranges; i++) {
		const struct kvm_machine_range *range = &machine.ranges[i];

		if (range->bytes == 0 || range->gpa + range->bytes < range->gpa ||
		    range->hva + range->bytes < range->hva || (i > 0 && range->gpa < range[-1].gpa + range[-1].bytes))
			abort();
	}
	return 0;
}
