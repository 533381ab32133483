// SPDX-License-Identifier: BSD-2-Clause
/* What a processor says of its PMU, from answers of CPUID as processors give them. */
#include <check.h>

#include "counter/host_pmu.h"
#include "run_suite.h"

struct leaf {
	uint32_t number;
	struct host_pmu_cpuid answer;
};

#define GENUINE_INTEL                                            \
	{                                                        \
		0,                                               \
		{                                                \
			0x20, 0x756e6547, 0x6c65746e, 0x49656e69 \
		}                                                \
	}
#define AUTHENTIC_AMD                                            \
	{                                                        \
		0,                                               \
		{                                                \
			0x10, 0x68747541, 0x444d4163, 0x69746e65 \
		}                                                \
	}

static const struct {
	struct leaf leaves[4];
	bool has;
	struct host_pmu pmu;
} processors[] = {
	/* Sapphire Rapids: version 5, 8 general counters, 4 fixed, 48 bits. */
	{{GENUINE_INTEL, {0xa, {0x08300805, 0, 0xf, 0x8604}}}, true, {"Intel architectural", 5, {8, 48}, {4, 48}}},
	/* A version 1 of 40 bits, with nothing in EDX. */
	{{GENUINE_INTEL, {0xa, {0x07280201, 0, 0, 0xffff}}}, true, {"Intel architectural", 1, {2, 40}, {0, 0}}},
	/* In a virtual machine without a vPMU. */
	{{GENUINE_INTEL}, false, {0}},
	/* Zen 4: PerfMon version 2, 6 counters. */
	{{AUTHENTIC_AMD, {0x80000001, {0, 0, 1u << 23, 0}}, {0x80000022, {7, 0x00040206, 0, 0}}},
         true,
         {"AMD", 2, {6, 48}, {0, 0}}},
	{{AUTHENTIC_AMD, {0x80000001, {0, 0, 1u << 23, 0}}}, true, {"AMD", 1, {6, 48}, {0, 0}}},
	{{AUTHENTIC_AMD}, true, {"AMD", 1, {4, 48}, {0, 0}}},
	/* In a virtual machine. */
	{{AUTHENTIC_AMD, {1, {0, 0, 1u << 31, 0}}}, false, {0}},
};

static const struct leaf *leaves;

static struct host_pmu_cpuid answer(uint32_t number)
{
	for (unsigned i = 0; i < 4; i++)
		if (leaves[i].number == number && (number != 0 || leaves[i].answer.ebx != 0))
			return leaves[i].answer;
	return (struct host_pmu_cpuid){0};
}

START_TEST(processors_say_what_they_have)
{
	struct host_pmu pmu = {0};

	leaves = processors[_i].leaves;
	ck_assert_int_eq(host_pmu_decode(answer, &pmu), processors[_i].has);
	if (!processors[_i].has)
		return;
	ck_assert_str_eq(pmu.name, processors[_i].pmu.name);
	ck_assert_uint_eq(pmu.version, processors[_i].pmu.version);
	ck_assert_uint_eq(pmu.general.counters, processors[_i].pmu.general.counters);
	ck_assert_uint_eq(pmu.general.width, processors[_i].pmu.general.width);
	ck_assert_uint_eq(pmu.fixed.counters, processors[_i].pmu.fixed.counters);
	ck_assert_uint_eq(pmu.fixed.width, processors[_i].pmu.fixed.width);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_pmu");
	TCase *tc = tcase_create("host_pmu");

	tcase_add_loop_test(tc, processors_say_what_they_have, 0, sizeof(processors) / sizeof(processors[0]));
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
