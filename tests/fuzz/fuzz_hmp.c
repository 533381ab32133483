// SPDX-License-Identifier: BSD-2-Clause
/*
 * What QEMU's human monitor prints. Every range that comes out is one, and they are in order.
 */
#include <stdlib.h>
#include <string.h>

#include "attach/hmp.h"
#include "fuzz_target.h"

static void check_ranges(const struct hmp_ram_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t end;

		if (ranges[i].bytes == 0 || __builtin_add_overflow(ranges[i].gpa, ranges[i].bytes, &end) ||
		    (i + 1 < n && end > ranges[i + 1].gpa) || ranges[i].block[0] == '\0')
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX];
	static struct seen_vcpu registers[GUEST_VCPUS_MAX];
	g_autofree char *text = g_strndup((const char *)data, size);
	uint64_t hva;

	check_ranges(ranges, hmp_parse_mtree(text, ranges));
	hmp_parse_gpa2hva(text, &hva);
	size_t n = hmp_parse_registers(text, registers, GUEST_VCPUS_MAX);

	for (size_t i = 0; i < n; i++)
		if (registers[i].vcpu >= GUEST_VCPUS_MAX || registers[i].regs.cpl > 3)
			abort();
	return 0;
}
