// SPDX-License-Identifier: BSD-2-Clause
/* What a guest's CPUID says of its caches and cores, on hosts of both vendors. */
#include <check.h>
#include <string.h>

#include "kvm/host/x86/cpuid.h"
#include "run_suite.h"

#define LEAF_CACHES_INTEL 4u
#define LEAF_CACHES_AMD 0x8000001du

static union {
	struct kvm_cpuid2 cpuid;
	uint8_t bytes[sizeof(struct kvm_cpuid2) + 32 * sizeof(struct kvm_cpuid_entry2)];
} table;

/* The host's caches: L1 data, L1 code and L2 for 2 threads each, L3 for 16, and the end of the list. */
static void caches_add(uint32_t function, uint32_t cores)
{
	static const struct {
		uint32_t kind, level, sharing;
	} caches[] = {{1, 1, 2}, {2, 1, 2}, {3, 2, 2}, {3, 3, 16}, {0, 0, 1}};

	for (uint32_t i = 0; i < G_N_ELEMENTS(caches); i++)
		table.cpuid.entries[table.cpuid.nent++] = (struct kvm_cpuid_entry2){
			.function = function,
			.index = i,
			.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX,
			.eax = caches[i].kind == 0 ? 0
		                                   : caches[i].kind | caches[i].level << 5 | 1u << 8 |
		                                             (caches[i].sharing - 1) << 14 | (cores - 1) << 26,
			.ebx = 0x1c0003f,
			.ecx = 63,
		};
}

static void setup(void)
{
	memset(&table, 0, sizeof(table));
	table.cpuid.entries[0] = (struct kvm_cpuid_entry2){.function = 0, .eax = 0xd, .ebx = 0x68747541};
	table.cpuid.entries[1] = (struct kvm_cpuid_entry2){.function = 1, .ebx = 0xff200800, .edx = 1u << 28};
	table.cpuid.nent = 2;
}

static void expect_sharing(uint32_t function, const uint32_t sharing[4], uint32_t cores)
{
	static const uint32_t low[] = {0x121, 0x122, 0x143, 0x163};
	const struct kvm_cpuid_entry2 *last = cpuid_find(&table.cpuid, function, 4);

	for (uint32_t i = 0; i < G_N_ELEMENTS(low); i++) {
		const struct kvm_cpuid_entry2 *entry = cpuid_find(&table.cpuid, function, i);

		ck_assert_uint_eq(entry->eax, low[i] | (sharing[i] - 1) << 14 | (cores - 1) << 26);
		ck_assert_uint_eq(entry->ebx, 0x1c0003f);
		ck_assert_uint_eq(entry->ecx, 63);
	}
	ck_assert_uint_eq(last->eax, 0);
}

/* APM vol. 3, Fn8000_001D: bits 31:26 are reserved. */
START_TEST(amds_caches_are_those_of_the_guests_cores)
{
	static const struct {
		unsigned vcpus;
		uint32_t sharing[4];
	} cases[] = {{1, {1, 1, 1, 1}}, {2, {1, 1, 1, 2}}, {5, {1, 1, 1, 5}}, {64, {1, 1, 1, 64}}};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		setup();
		caches_add(LEAF_CACHES_AMD, 1);
		cpuid_set_topology(&table.cpuid, cases[i].vcpus - 1, cases[i].vcpus);
		expect_sharing(LEAF_CACHES_AMD, cases[i].sharing, 1);
	}
}
END_TEST

START_TEST(intels_caches_are_those_of_the_guests_cores)
{
	static const uint32_t sharing[] = {1, 1, 1, 6};

	table.cpuid.entries[0].ebx = 0x756e6547;
	caches_add(LEAF_CACHES_INTEL, 32);
	cpuid_set_topology(&table.cpuid, 0, 6);
	expect_sharing(LEAF_CACHES_INTEL, sharing, 6);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("CPUID");
	TCase *tcase = tcase_create("topology");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, amds_caches_are_those_of_the_guests_cores);
	tcase_add_test(tcase, intels_caches_are_those_of_the_guests_cores);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
