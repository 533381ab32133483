// SPDX-License-Identifier: BSD-2-Clause
/* What the VM does about a PMU before it has a vCPU: CPUID, KVM's event filter, RDPMC in a kernel's code. */
#include <check.h>
#include <string.h>

#include "kvm/host/x86/cpuid.h"
#include "kvm/options.h"
#include "kvm/pmu_filter.h"
#include "kvm/vcpu/x86/rdpmc.h"
#include "kvm/x86/vm_pmu.h"
#include "kvm/x86/vm_x86.h"
#include "run_suite.h"

#define RDPMC "\x0f\x33"
#define OUT "\xe6\xe5"
#define SHIFT "\x48\xc1\xe2\x20"
#define NOP2 "\x66\x90"
#define NOP5 "\x0f\x1f\x44\x00\x00"

static union {
	struct kvm_cpuid2 cpuid;
	uint8_t bytes[sizeof(struct kvm_cpuid2) + 8 * sizeof(struct kvm_cpuid_entry2)];
} table;

static void fill(uint32_t vendor_ebx)
{
	const struct kvm_cpuid_entry2 entries[] = {
		{.function = 0, .eax = 0x10, .ebx = vendor_ebx, .ecx = 1, .edx = 2},
		{.function = 1, .eax = 0xa10f11, .ecx = UINT32_MAX, .edx = UINT32_MAX},
		{.function = 0x80000001, .ecx = UINT32_MAX},
		{.function = 0x80000022, .eax = 1, .ebx = 6},
		{.function = 0xa, .eax = 0x08300805, .edx = 0x8604},
	};

	memcpy(table.cpuid.entries, entries, sizeof(entries));
	table.cpuid.nent = G_N_ELEMENTS(entries);
}

static struct kvm_cpuid_entry2 *entry(uint32_t function)
{
	struct kvm_cpuid_entry2 *found = cpuid_find(&table.cpuid, function, 0);

	ck_assert_ptr_nonnull(found);
	return found;
}

static void edit(enum vm_pmu_kind kind)
{
	struct vm_arch arch = {.pmu_kind = kind, .pmu_events = {.all = 5}};
	static struct vm vm;

	vm.arch = &arch;
	vm_pmu_cpuid(&vm, &table.cpuid);
}

START_TEST(off_hides_every_pmu)
{
	fill(0x68747541);
	edit(VM_PMU_OFF);
	ck_assert_uint_eq(entry(0xa)->eax, 0);
	ck_assert_uint_eq(entry(0xa)->edx, 0);
	ck_assert_uint_eq(entry(0x80000022)->eax, 0);
	ck_assert_uint_eq(entry(1)->ecx & (1u << 2 | 1u << 15), 0);
	ck_assert_uint_eq(entry(0x80000001)->ecx, ~(1u << 23 | 1u << 24 | 1u << 28));
	ck_assert_uint_eq(entry(0)->ebx, 0x68747541);
}
END_TEST

START_TEST(emulated_shows_intels)
{
	fill(0x68747541);
	edit(VM_PMU_EMULATED);
	ck_assert_uint_eq(entry(0xa)->eax, 0x07300402);
	ck_assert_uint_eq(entry(0xa)->ebx, 0x7a);
	ck_assert_uint_eq(entry(0xa)->edx, 0x603);
	ck_assert_mem_eq(&entry(0)->ebx, "Genu", 4);
	ck_assert_mem_eq(&entry(0)->edx, "ineI", 4);
	ck_assert_mem_eq(&entry(0)->ecx, "ntel", 4);
	ck_assert_uint_eq(entry(1)->eax >> 8 & 0xf, 6);
}
END_TEST

START_TEST(emulated_leaves_an_intel_as_it_is)
{
	fill(0x756e6547);
	entry(0)->eax = 5;
	edit(VM_PMU_EMULATED);
	ck_assert_uint_eq(entry(1)->eax, 0xa10f11);
	ck_assert_uint_eq(entry(0)->eax, 0xa);
}
END_TEST

START_TEST(emulated_adds_the_leaf)
{
	fill(0x756e6547);
	table.cpuid.nent--;
	edit(VM_PMU_EMULATED);
	ck_assert_uint_eq(entry(0xa)->eax, 0x07300402);
}
END_TEST

START_TEST(kvm_keeps_what_the_host_says)
{
	fill(0x68747541);
	edit(VM_PMU_KVM);
	ck_assert_uint_eq(entry(0xa)->eax, 0x08300805);
	ck_assert_uint_eq(entry(0x80000022)->eax, 1);
	ck_assert_uint_eq(entry(1)->ecx, UINT32_MAX);
}
END_TEST

static struct kvm_pmu_event_filter *parse(const char *text)
{
	GError *error = NULL;
	struct kvm_pmu_event_filter *filter = pmu_filter_parse(text, &error);

	ck_assert_msg(filter, "%s", error ? error->message : "");
	return filter;
}

START_TEST(filters)
{
	g_autofree struct kvm_pmu_event_filter *allow = parse("cycles,r01c2,instructions");

	ck_assert_uint_eq(allow->action, KVM_PMU_EVENT_ALLOW);
	ck_assert_uint_eq(allow->nevents, 3);
	ck_assert_uint_eq(allow->events[0], 0x3c);
	ck_assert_uint_eq(allow->events[1], 0x1c2);
	ck_assert_uint_eq(allow->events[2], 0xc0);
	ck_assert_uint_eq(allow->fixed_counter_bitmap, 3);
	ck_assert_uint_eq(allow->flags, 0);
	g_autofree struct kvm_pmu_event_filter *deny = parse("deny:ref-cycles,cache-misses");
	ck_assert_uint_eq(deny->action, KVM_PMU_EVENT_DENY);
	ck_assert_uint_eq(deny->nevents, 2);
	ck_assert_uint_eq(deny->events[1], 0x412e);
	ck_assert_uint_eq(deny->fixed_counter_bitmap, 4);
	g_autofree struct kvm_pmu_event_filter *named = parse("allow:branches");
	ck_assert_uint_eq(named->events[0], 0xc4);
	ck_assert_uint_eq(named->fixed_counter_bitmap, 0);
}
END_TEST

START_TEST(bad_filters)
{
	static const char *const bad[] = {"", "cycles,", "r", "r10000", "rxyz", "r-1", "forbid:cycles", "task-clock"};

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		GError *error = NULL;

		ck_assert_msg(!pmu_filter_parse(bad[i], &error), "taken: %s", bad[i]);
		ck_assert(g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE));
		g_error_free(error);
	}
	g_autofree char *many = g_strnfill(4 * 301, 'r');
	for (size_t i = 0; i < 301; i++)
		memcpy(many + 4 * i, "r01,", 4);
	many[4 * 301 - 1] = '\0';
	ck_assert_ptr_null(pmu_filter_parse(many, NULL));
	many[4 * 300 - 1] = '\0';
	g_autofree struct kvm_pmu_event_filter *most = parse(many);
	ck_assert_uint_eq(most->nevents, 300);
}
END_TEST

START_TEST(rdpmc_is_replaced_where_it_is_one)
{
	static const struct {
		const char *code, *expected;
		size_t bytes, n;
	} rows[] = {
#define ROW(code, expected, n) {code, expected, sizeof(code) - 1, n}
		ROW("\x90" RDPMC SHIFT, "\x90" OUT SHIFT, 1),
		ROW(RDPMC NOP2 SHIFT "\x90", OUT NOP2 SHIFT "\x90", 1),
		ROW(RDPMC NOP5 SHIFT, OUT NOP5 SHIFT, 1),
		ROW(RDPMC SHIFT RDPMC RDPMC SHIFT, OUT SHIFT RDPMC OUT SHIFT, 2),
		ROW(RDPMC "\x49\x89\xd4\x49\xc1\xe4\x20", OUT "\x49\x89\xd4\x49\xc1\xe4\x20", 1),
		ROW(RDPMC NOP2 "\x48\x89\xd1\x48\xc1\xe1\x20", OUT NOP2 "\x48\x89\xd1\x48\xc1\xe1\x20", 1),
		ROW(RDPMC "\x48\xc1\xe2\x1f", RDPMC "\x48\xc1\xe2\x1f", 0),
		ROW(RDPMC "\x90" SHIFT, RDPMC "\x90" SHIFT, 0),
		ROW(RDPMC NOP2 NOP2 SHIFT, RDPMC NOP2 NOP2 SHIFT, 0),
		ROW(RDPMC NOP5 "\x48\xc1\xe2", RDPMC NOP5 "\x48\xc1\xe2", 0),
		ROW(SHIFT RDPMC, SHIFT RDPMC, 0),
		ROW("\x0f", "\x0f", 0),
		ROW("", "", 0),
#undef ROW
	};
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree uint8_t *code = g_memdup2(rows[i].code, rows[i].bytes + 1);

		ck_assert_uint_eq(rdpmc_replace(code, rows[i].bytes), rows[i].n);
		ck_assert_mem_eq(code, rows[i].expected, rows[i].bytes);
	}
}
END_TEST

START_TEST(kinds)
{
	enum vm_pmu_kind kind;

	ck_assert(options_parse_pmu("off", &kind) && kind == VM_PMU_OFF);
	ck_assert(options_parse_pmu("emulated", &kind) && kind == VM_PMU_EMULATED);
	ck_assert(options_parse_pmu("kvm", &kind) && kind == VM_PMU_KVM);
	ck_assert(!options_parse_pmu("on", &kind) && kind == VM_PMU_KVM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vm_pmu");
	TCase *test = tcase_create("vm_pmu");
	tcase_add_test(test, off_hides_every_pmu);
	tcase_add_test(test, emulated_shows_intels);
	tcase_add_test(test, emulated_leaves_an_intel_as_it_is);
	tcase_add_test(test, emulated_adds_the_leaf);
	tcase_add_test(test, kvm_keeps_what_the_host_says);
	tcase_add_test(test, filters);
	tcase_add_test(test, bad_filters);
	tcase_add_test(test, rdpmc_is_replaced_where_it_is_one);
	tcase_add_test(test, kinds);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
