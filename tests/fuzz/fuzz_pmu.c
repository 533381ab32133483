// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest that writes whatever it likes into the registers of an emulated PMU, while its counters move. Of nine bytes
 * the first says what is done and to which register, the others with which value.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/pmu_source.h"
#include "fuzz_target.h"

#define OPERATION_BYTES 9u

/* The registers, and one that is none behind each range. */
static uint32_t msr_of(uint8_t selector)
{
	uint32_t n = selector & 0x1fu;

	for (size_t i = 0; i < pmu_msr_ranges_n; i++) {
		uint32_t msrs = pmu_msr_ranges[i].last - pmu_msr_ranges[i].first + 2;

		if (n < msrs)
			return pmu_msr_ranges[i].first + n;
		n -= msrs;
	}
	return n;
}

static void operate(struct pmu *pmu, struct test_source *source, uint8_t operation, uint64_t value)
{
	uint64_t read;

	switch (operation >> 5) {
	case 0:
		pmu_read(pmu, msr_of(operation), &read);
		break;
	case 1:
		pmu_rdpmc(pmu, (uint32_t)value, &read);
		break;
	case 2:
		source->counters[value % PMU_COUNTERS].counted = value >> 8;
		break;
	case 3:
		if (pmu_sync(pmu) && pmu_interrupt_fits(pmu, value & 1))
			pmu_delivered(pmu);
		break;
	case 4:
		pmu_debugctl_write(pmu, value);
		break;
	default:
		pmu_write(pmu, msr_of(operation), value);
	}
}

/* What a guest has brought about can be saved and loaded again, and no stopped counter is left running. */
static void check(struct pmu *pmu, const struct test_source *source)
{
	struct pmu_state state;

	pmu_save(pmu, &state);
	if (!pmu_load(pmu, &state))
		abort();
	for (unsigned i = 0; i < PMU_COUNTERS; i++) {
		if (source->counters[i].running != ((pmu->running >> i & 1) != 0) || source->counters[i].left == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_source source = {.source.ops = &test_source_ops};
	struct pmu pmu;

	for (unsigned i = 0; i < PMU_COUNTERS; i++)
		source.counters[i].left = 1;
	pmu_init(&pmu, &source.source);
	for (; size >= OPERATION_BYTES; data += OPERATION_BYTES, size -= OPERATION_BYTES) {
		uint64_t value;

		memcpy(&value, data + 1, sizeof(value));
		operate(&pmu, &source, data[0], value);
		check(&pmu, &source);
	}
	return 0;
}
