// SPDX-License-Identifier: BSD-2-Clause
/* The filter of KVM's PMU on arm64: a list of ranges of events. */
#include <check.h>
#include <linux/kvm.h>

#include "kvm/pmu_filter.h"
#include "run_suite.h"

static void assert_filter(const char *text, uint8_t action, const uint16_t *events, size_t n)
{
	g_autoptr(GError) error = NULL;
	g_autofree struct kvm_pmu_event_filter *filter = pmu_filter_parse(text, &error);

	ck_assert_msg(filter, "%s", error ? error->message : "");
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(filter[i].base_event, events[i]);
		ck_assert_uint_eq(filter[i].nevents, 1);
		ck_assert_uint_eq(filter[i].action, action);
	}
	ck_assert_uint_eq(filter[n].nevents, 0);
}

START_TEST(filters)
{
	assert_filter("cycles,r01c2,instructions", KVM_PMU_EVENT_ALLOW, (const uint16_t[]){0x11, 0x1c2, 0x08}, 3);
	assert_filter("deny:branches,cache-misses", KVM_PMU_EVENT_DENY, (const uint16_t[]){0x0c, 0x21, 0x03}, 3);
	assert_filter("allow:rffff", KVM_PMU_EVENT_ALLOW, (const uint16_t[]){0xffff}, 1);
}
END_TEST

START_TEST(bad_filters)
{
	static const char *const bad[] = {"", "cycles,", "r", "r10000", "rxyz", "r-1", "forbid:cycles", "ref-cycles"};

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_autoptr(GError) error = NULL;

		ck_assert_msg(!pmu_filter_parse(bad[i], &error), "taken: %s", bad[i]);
		ck_assert(g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vm_pmu_arm64");
	TCase *test = tcase_create("vm_pmu_arm64");

	tcase_add_test(test, filters);
	tcase_add_test(test, bad_filters);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
