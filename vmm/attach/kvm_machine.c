// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kvm_machine.h"

#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>

#include "attach/bpf/kvm_view.h"
#include "attach/vcpu_arch.h"

G_DEFINE_QUARK(vprof_kvm_machine_error, kvm_machine_error)

_Static_assert(sizeof(struct kvm_view_vcpu) == 64, "bpf/kvm_view.h: no holes");
_Static_assert(sizeof(struct kvm_view_slot) == 48, "bpf/kvm_view.h: no holes");
_Static_assert(sizeof(struct kvm_view_vm) == 32, "bpf/kvm_view.h: no holes");
_Static_assert(KVM_VIEW_SLOTS_MAX == KVM_MACHINE_RANGES_MAX, "bpf/kvm_view.h");

static bool fail(GError **error, enum kvm_machine_error code, const char *what)
{
	g_set_error_literal(error, KVM_MACHINE_ERROR, (int)code, what);
	return false;
}

/* A walk over records. */
struct cursor {
	const uint8_t *at;
	size_t bytes;
};

/* The next one, copied out, with zeroes behind what it has; false at the end, or where the rest is no record. */
static bool next_record(struct cursor *cursor, void *record, size_t room)
{
	struct kvm_view_header header;

	if (cursor->bytes < sizeof(header))
		return false;
	memcpy(&header, cursor->at, sizeof(header));
	if (header.bytes < sizeof(header) || header.bytes > cursor->bytes || header.bytes > room)
		return false;
	memset(record, 0, room);
	memcpy(record, cursor->at, header.bytes);
	cursor->at += header.bytes;
	cursor->bytes -= header.bytes;
	return true;
}

union record {
	struct kvm_view_header header;
	struct kvm_view_vcpu vcpu;
	struct kvm_view_slot slot;
	struct kvm_view_vm vm;
	struct kvm_view_statistics statistics;
};

/* ---- which machine ---- */

/* The files of vCPUs that each machine has. */
struct tally {
	uint64_t vm[KVM_VIEW_VMS_MAX];
	unsigned vcpus[KVM_VIEW_VMS_MAX];
	unsigned n;
};

static void tally_add(struct tally *tally, uint64_t vm)
{
	unsigned i = 0;

	while (i < tally->n && tally->vm[i] != vm)
		i++;
	if (i == KVM_VIEW_VMS_MAX)
		return;
	if (i == tally->n)
		tally->vm[tally->n++] = vm;
	tally->vcpus[i]++;
}

static bool choose(struct cursor cursor, uint64_t *vm, unsigned *n_machines, GError **error)
{
	struct tally tally = {.n = 0};
	union record record;
	unsigned most = 0;

	while (next_record(&cursor, &record, sizeof(record)))
		if (record.header.kind == KVM_VIEW_VCPU)
			tally_add(&tally, record.header.vm);
	if (cursor.bytes > 0)
		return fail(error, KVM_MACHINE_ERROR_RECORD, "what the kernel says of its machine is no record");
	for (unsigned i = 1; i < tally.n; i++)
		if (tally.vcpus[i] > tally.vcpus[most])
			most = i;
	*n_machines = tally.n;
	*vm = tally.vm[most];
	return tally.n > 0 || fail(error, KVM_MACHINE_ERROR_NONE, "it has no vCPU");
}

/* ---- its parts ---- */

static bool vcpu_take(struct kvm_machine *machine, const struct kvm_view_vcpu *record, GError **error)
{
	for (unsigned i = 0; i < machine->n_vcpus; i++)
		if (machine->vcpus[i].id == record->id)
			return true; /* another descriptor of the same file */
	if (machine->n_vcpus == GUEST_VCPUS_MAX)
		return fail(error, KVM_MACHINE_ERROR_LIMIT, "it has more than 64 vCPUs");
	machine->vcpus[machine->n_vcpus++] = (struct kvm_machine_vcpu){
		.id = record->id,
		.thread = (pid_t)record->thread,
		.in_kvm = record->flags & KVM_VIEW_IN_KVM,
		.long_mode = record->flags & KVM_VIEW_LONG_MODE,
		.tables_current = record->flags & KVM_VIEW_HAS_TABLES,
		.tables = vcpu_arch_tables(record),
		.vectors = record->flags & KVM_VIEW_HAS_VECTORS ? record->vectors : 0,
	};
	return true;
}

static bool slot_take(struct kvm_machine *machine, const struct kvm_view_slot *record, GError **error)
{
	uint64_t end;

	if (record->bytes == 0 || __builtin_add_overflow(record->gpa, record->bytes, &end) ||
	    __builtin_add_overflow(record->hva, record->bytes, &end))
		return fail(error, KVM_MACHINE_ERROR_RECORD, "a memory slot is longer than memory");
	if (machine->n_ranges == KVM_MACHINE_RANGES_MAX)
		return fail(error, KVM_MACHINE_ERROR_RECORD, "there are more memory slots than are written");
	machine->ranges[machine->n_ranges++] =
		(struct kvm_machine_range){.gpa = record->gpa, .bytes = record->bytes, .hva = record->hva};
	if (!(record->flags & KVM_MEM_READONLY)) {
		machine->memory_bytes += record->bytes;
		machine->logged_bytes += record->flags & KVM_MEM_LOG_DIRTY_PAGES ? record->bytes : 0;
	}
	return true;
}

static bool vm_take(struct kvm_machine *machine, const struct kvm_view_vm *record, GError **error)
{
	machine->ids_max = record->ids_max;
	machine->halts = record->flags & KVM_VIEW_HALTS;
	if (record->flags & KVM_VIEW_TDX)
		machine->confidential = "TDX";
	else if (record->flags & (KVM_VIEW_SEV | KVM_VIEW_STATE_PROTECTED))
		machine->confidential = "SEV";
	if (record->flags & KVM_VIEW_SLOTS_CHANGED || record->slots != machine->n_ranges)
		return fail(error, KVM_MACHINE_ERROR_CHANGED, "its memory slots changed while they were read");
	return true;
}

static bool record_take(struct kvm_machine *machine, const union record *record, GError **error)
{
	switch (record->header.kind) {
	case KVM_VIEW_VCPU:
		return vcpu_take(machine, &record->vcpu, error);
	case KVM_VIEW_SLOT:
		return slot_take(machine, &record->slot, error);
	case KVM_VIEW_VM:
		return vm_take(machine, &record->vm, error);
	case KVM_VIEW_STATISTICS:
		return true;
	default:
		return fail(error, KVM_MACHINE_ERROR_RECORD, "a record has no kind that is known");
	}
}

/* ---- in order ---- */

static int compare_vcpus(const void *one, const void *other)
{
	const struct kvm_machine_vcpu *left = one, *right = other;

	return (left->id > right->id) - (left->id < right->id);
}

static int compare_ranges(const void *one, const void *other)
{
	const struct kvm_machine_range *left = one, *right = other;

	return (left->gpa > right->gpa) - (left->gpa < right->gpa);
}

static bool ranges_overlap(const struct kvm_machine *machine)
{
	for (size_t i = 1; i < machine->n_ranges; i++)
		if (machine->ranges[i].gpa - machine->ranges[i - 1].gpa < machine->ranges[i - 1].bytes)
			return true;
	return false;
}

bool kvm_machine_decode(const void *records, size_t bytes, struct kvm_machine *machine, GError **error)
{
	struct cursor cursor = {records, bytes};
	union record record;
	uint64_t vm;

	memset(machine, 0, sizeof(*machine));
	if (!choose(cursor, &vm, &machine->n_machines, error))
		return false;
	while (next_record(&cursor, &record, sizeof(record)))
		if (record.header.vm == vm && !record_take(machine, &record, error))
			return false;
	qsort(machine->vcpus, machine->n_vcpus, sizeof(machine->vcpus[0]), compare_vcpus);
	qsort(machine->ranges, machine->n_ranges, sizeof(machine->ranges[0]), compare_ranges);
	return !ranges_overlap(machine) || fail(error, KVM_MACHINE_ERROR_RECORD, "its memory slots overlap");
}

const void *kvm_machine_statistics(const void *records, size_t bytes, unsigned id, size_t *n)
{
	const size_t before = offsetof(struct kvm_view_statistics, raw);
	struct cursor cursor = {records, bytes};
	union record record;
	unsigned machines;
	uint64_t vm;

	if (!choose(cursor, &vm, &machines, NULL))
		return NULL;
	while (next_record(&cursor, &record, sizeof(record))) {
		if (record.header.vm != vm || record.header.kind != KVM_VIEW_STATISTICS || record.statistics.id != id ||
		    record.header.bytes < before)
			continue;
		*n = record.header.bytes - before;
		return cursor.at - *n;
	}
	return NULL;
}
