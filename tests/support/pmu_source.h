// SPDX-License-Identifier: BSD-2-Clause
/* A source for a PMU; the test moves its counters. */
#ifndef VPROF_TEST_SUPPORT_PMU_SOURCE_H
#define VPROF_TEST_SUPPORT_PMU_SOURCE_H

#include "pmu/x86/source.h"

struct test_source {
	struct pmu_source source; /* first */
	bool refuses;             /* start fails */
	unsigned starts, stops, aims;
	struct test_counter {
		bool running;
		struct pmu_counting what;
		uint64_t counted; /* that the next take returns */
		uint64_t left;    /* as the last start or aim had it */
	} counters[PMU_COUNTERS];
};

static bool test_source_start(struct pmu_source *source, unsigned counter, const struct pmu_counting *what,
                              uint64_t left)
{
	struct test_source *test = (struct test_source *)source;

	if (test->refuses)
		return false;
	test->starts++;
	test->counters[counter] = (struct test_counter){.running = true, .what = *what, .left = left};
	return true;
}

static void test_source_stop(struct pmu_source *source, unsigned counter)
{
	struct test_source *test = (struct test_source *)source;

	test->stops++;
	test->counters[counter].running = false;
}

static uint64_t test_source_take(struct pmu_source *source, unsigned counter)
{
	struct test_counter *one = &((struct test_source *)source)->counters[counter];
	uint64_t counted = one->counted;

	one->counted = 0;
	return counted;
}

static void test_source_aim(struct pmu_source *source, unsigned counter, uint64_t left)
{
	struct test_source *test = (struct test_source *)source;

	test->aims++;
	test->counters[counter].left = left;
}

static const struct pmu_source_ops test_source_ops = {
	.start = test_source_start, .stop = test_source_stop, .take = test_source_take, .aim = test_source_aim};

#endif
