// SPDX-License-Identifier: BSD-2-Clause
/* What the BPF iterator's records say of a machine: order, doubles, other machines of the process, and nonsense. */
#include <check.h>
#include <linux/kvm.h>
#include <string.h>

#include "attach/bpf/kvm_view.h"
#include "attach/kvm_machine.h"
#include "run_suite.h"

#define VM 0x1000u
#define OTHER_VM 0x2000u
#define MIB UINT64_C(0x100000)

static uint8_t records[65536];
static size_t bytes;
static struct kvm_machine machine;

static void setup(void)
{
	bytes = 0;
}

static void put(const void *record, size_t n)
{
	memcpy(records + bytes, record, n);
	bytes += n;
}

static void put_vcpu(uint64_t vm, unsigned id, unsigned flags)
{
	const struct kvm_view_vcpu record = {
		.header = {KVM_VIEW_VCPU, sizeof(record), vm},
		.id = id,
		.thread = 100 + id,
		.flags = flags,
		.tables = {0x5000 + id},
		.vectors = 0x6000 + id,
	};

	put(&record, sizeof(record));
}

static void put_slot(uint64_t vm, uint64_t gpa, uint64_t size, unsigned flags)
{
	const struct kvm_view_slot record = {
		.header = {KVM_VIEW_SLOT, sizeof(record), vm},
		.gpa = gpa,
		.bytes = size,
		.hva = 0x7f0000000000 + gpa,
		.flags = flags,
	};

	put(&record, sizeof(record));
}

static void put_vm(uint64_t vm, unsigned slots, unsigned flags)
{
	const struct kvm_view_vm record = {{KVM_VIEW_VM, sizeof(record), vm}, slots, flags, .ids_max = 8};

	put(&record, sizeof(record));
}

static void assert_decodes(void)
{
	g_autoptr(GError) error = NULL;

	ck_assert_msg(kvm_machine_decode(records, bytes, &machine, &error), "%s", error ? error->message : "");
}

static void assert_fails(enum kvm_machine_error code)
{
	g_autoptr(GError) error = NULL;

	ck_assert(!kvm_machine_decode(records, bytes, &machine, &error));
	ck_assert_msg(g_error_matches(error, KVM_MACHINE_ERROR, (int)code), "%s", error->message);
}

START_TEST(vcpus_and_slots_come_in_order)
{
	put_slot(VM, 4096 * MIB, 512 * MIB, 0);
	put_slot(VM, 0, 3072 * MIB, 0);
	put_slot(VM, 4095 * MIB, MIB, KVM_MEM_READONLY);
	put_vm(VM, 3, 0);
	put_vcpu(VM, 2, KVM_VIEW_HAS_TABLES | KVM_VIEW_FIVE_LEVELS);
	put_vcpu(VM, 0, KVM_VIEW_IN_KVM | KVM_VIEW_LONG_MODE | KVM_VIEW_HAS_VECTORS);
	put_vcpu(VM, 2, KVM_VIEW_HAS_TABLES | KVM_VIEW_FIVE_LEVELS); /* another descriptor of the file */
	assert_decodes();
	ck_assert_uint_eq(machine.n_machines, 1);
	ck_assert_uint_eq(machine.ids_max, 8);
	ck_assert_uint_eq(machine.n_vcpus, 2);
	ck_assert_uint_eq(machine.vcpus[0].id, 0);
	ck_assert_int_eq(machine.vcpus[0].thread, 100);
	ck_assert(machine.vcpus[0].in_kvm && machine.vcpus[0].long_mode && !machine.vcpus[0].tables_current);
	ck_assert_uint_eq(machine.vcpus[0].vectors, 0x6000);
	ck_assert_uint_eq(machine.vcpus[1].id, 2);
	ck_assert(machine.vcpus[1].tables_current &&
	          (machine.vcpus[1].tables.processor == GUEST_ARM64 || machine.vcpus[1].tables.la57) &&
	          !machine.vcpus[1].in_kvm);
	ck_assert_uint_eq(machine.vcpus[1].tables.cr3, 0x5002);
	ck_assert_uint_eq(machine.vcpus[1].vectors, 0);
	ck_assert_uint_eq(machine.n_ranges, 3);
	ck_assert_uint_eq(machine.ranges[0].bytes, 3072 * MIB);
	ck_assert_uint_eq(machine.ranges[1].gpa, 4095 * MIB);
	ck_assert_uint_eq(machine.ranges[2].hva, 0x7f0000000000 + 4096 * MIB);
	ck_assert_uint_eq(machine.memory_bytes, 3584 * MIB);
	ck_assert_uint_eq(machine.logged_bytes, 0);
	ck_assert(!machine.halts);
	ck_assert_ptr_null(machine.confidential);
}
END_TEST

/* A screen's memory always is; that of all is for a migration. What the guest cannot write is in neither. */
START_TEST(logged_memory_is_counted)
{
	put_slot(VM, 0, 64 * MIB, 0);
	put_slot(VM, 256 * MIB, 16 * MIB, KVM_MEM_LOG_DIRTY_PAGES);
	put_slot(VM, 512 * MIB, MIB, KVM_MEM_READONLY | KVM_MEM_LOG_DIRTY_PAGES);
	put_vm(VM, 3, KVM_VIEW_HALTS);
	put_vcpu(VM, 0, 0);
	assert_decodes();
	ck_assert_uint_eq(machine.memory_bytes, 80 * MIB);
	ck_assert_uint_eq(machine.logged_bytes, 16 * MIB);
	ck_assert(machine.halts);
}
END_TEST

START_TEST(of_two_machines_the_one_with_more_vcpus_counts)
{
	put_slot(OTHER_VM, 0, MIB, 0);
	put_vm(OTHER_VM, 1, 0);
	put_vcpu(OTHER_VM, 0, 0);
	put_slot(VM, 0, 2 * MIB, 0);
	put_vm(VM, 1, 0);
	put_vcpu(VM, 0, 0);
	put_vcpu(VM, 1, 0);
	assert_decodes();
	ck_assert_uint_eq(machine.n_machines, 2);
	ck_assert_uint_eq(machine.n_vcpus, 2);
	ck_assert_uint_eq(machine.n_ranges, 1);
	ck_assert_uint_eq(machine.ranges[0].bytes, 2 * MIB);
}
END_TEST

START_TEST(encryption_has_its_name)
{
	static const struct {
		unsigned flags;
		const char *name;
	} cases[] = {{KVM_VIEW_SEV, "SEV"},
	             {KVM_VIEW_SEV | KVM_VIEW_STATE_PROTECTED, "SEV"},
	             {KVM_VIEW_TDX | KVM_VIEW_STATE_PROTECTED, "TDX"}};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		bytes = 0;
		put_vm(VM, 0, cases[i].flags);
		put_vcpu(VM, 0, 0);
		assert_decodes();
		ck_assert_str_eq(machine.confidential, cases[i].name);
	}
}
END_TEST

START_TEST(what_changed_meanwhile_is_read_again)
{
	put_slot(VM, 0, MIB, 0);
	put_vm(VM, 1, KVM_VIEW_SLOTS_CHANGED);
	put_vcpu(VM, 0, 0);
	assert_fails(KVM_MACHINE_ERROR_CHANGED);
	bytes = 0;
	put_slot(VM, 0, MIB, 0);
	put_vm(VM, 2, 0); /* one is missing */
	put_vcpu(VM, 0, 0);
	assert_fails(KVM_MACHINE_ERROR_CHANGED);
}
END_TEST

START_TEST(what_is_too_much_is_refused)
{
	for (unsigned i = 0; i <= GUEST_VCPUS_MAX; i++)
		put_vcpu(VM, i, 0);
	assert_fails(KVM_MACHINE_ERROR_LIMIT);
	bytes = 0;
	for (unsigned i = 0; i <= KVM_MACHINE_RANGES_MAX; i++)
		put_slot(VM, i * MIB, MIB, 0);
	put_vcpu(VM, 0, 0);
	assert_fails(KVM_MACHINE_ERROR_RECORD);
}
END_TEST

START_TEST(slots_beyond_the_array_are_left_out)
{
	for (unsigned i = 0; i < KVM_MACHINE_RANGES_MAX; i++)
		put_slot(VM, i * MIB, MIB, 0);
	put_vm(VM, KVM_MACHINE_RANGES_MAX, KVM_VIEW_SLOTS_MORE);
	put_vcpu(VM, 0, 0);
	assert_decodes();
	ck_assert_uint_eq(machine.n_ranges, KVM_MACHINE_RANGES_MAX);
}
END_TEST

START_TEST(nonsense_is_no_machine)
{
	const struct kvm_view_header unknown = {77, sizeof(unknown), VM};

	assert_fails(KVM_MACHINE_ERROR_NONE);
	put_vcpu(VM, 0, 0);
	put(&unknown, sizeof(unknown));
	assert_fails(KVM_MACHINE_ERROR_RECORD);
	bytes = 0;
	put_vcpu(VM, 0, 0);
	bytes -= 8; /* cut off */
	assert_fails(KVM_MACHINE_ERROR_RECORD);
	bytes = 0;
	put_slot(VM, 0, MIB, 0);
	put_slot(VM, MIB - 4096, MIB, 0);
	put_vm(VM, 2, 0);
	put_vcpu(VM, 0, 0);
	assert_fails(KVM_MACHINE_ERROR_RECORD);
	bytes = 0;
	put_slot(VM, UINT64_MAX - 4095, 2 * MIB, 0);
	put_vcpu(VM, 0, 0);
	assert_fails(KVM_MACHINE_ERROR_RECORD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kvm_machine");
	TCase *cases = tcase_create("records");

	tcase_add_checked_fixture(cases, setup, NULL);
	tcase_add_test(cases, vcpus_and_slots_come_in_order);
	tcase_add_test(cases, logged_memory_is_counted);
	tcase_add_test(cases, of_two_machines_the_one_with_more_vcpus_counts);
	tcase_add_test(cases, encryption_has_its_name);
	tcase_add_test(cases, what_changed_meanwhile_is_read_again);
	tcase_add_test(cases, what_is_too_much_is_refused);
	tcase_add_test(cases, slots_beyond_the_array_are_left_out);
	tcase_add_test(cases, nonsense_is_no_machine);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
