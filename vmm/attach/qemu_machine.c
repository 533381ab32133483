// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "attach/guest_memory.h"
#include "attach/qemu.h"
#include "attach/qemu_process.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_calls.h"

/* Looks, a second apart, at a process without vCPUs, before its guest is taken to have ended. */
#define GONE_TICKS 5u

static unsigned number_of(const struct kvm_machine *machine, unsigned i)
{
	return vcpu_number(machine->vcpus[i].id, i, machine->vcpus[machine->n_vcpus - 1].id);
}

static bool any_in_kvm(const struct kvm_machine *machine)
{
	for (unsigned i = 0; i < machine->n_vcpus; i++)
		if (machine->vcpus[i].in_kvm)
			return true;
	return false;
}

bool qemu_machine_open(struct qemu_guest *qemu, GError **error)
{
	qemu->view = kvm_view_open(qemu->pid, error);
	if (qemu->view && kvm_view_read(qemu->view, &qemu->machine, error)) {
		qemu->guest.vcpus = qemu_machine_threads(qemu, qemu->threads);
		/* QEMU tells KVM how many there can be; KVM's own limit is far above ours. */
		if (qemu->machine.ids_max <= GUEST_VCPUS_MAX)
			qemu->guest.vcpus = MAX(qemu->guest.vcpus, qemu->machine.ids_max);
		qemu->guest.memory_bytes = qemu->machine.memory_bytes;
		atomic_store_explicit(&qemu->runs, any_in_kvm(&qemu->machine), memory_order_relaxed);
		return true;
	}
	g_clear_pointer(&qemu->view, kvm_view_close);
	return false;
}

unsigned qemu_machine_threads(const struct qemu_guest *qemu, pid_t threads[GUEST_VCPUS_MAX])
{
	const struct kvm_machine *machine = &qemu->machine;
	unsigned n = 0;

	memset(threads, 0, GUEST_VCPUS_MAX * sizeof(threads[0]));
	for (unsigned i = 0; i < machine->n_vcpus; i++) {
		unsigned number = number_of(machine, i);
		pid_t thread = machine->vcpus[i].thread;

		/* KVM remembers a thread that has ended, as that of a vCPU that was unplugged. */
		if (thread && qemu_process_of_thread(thread) == qemu->pid)
			threads[number] = thread;
		n = number + 1;
	}
	return n;
}

unsigned qemu_machine_id(const struct qemu_guest *qemu, unsigned vcpu)
{
	const struct kvm_machine *machine = &qemu->machine;

	for (unsigned i = 0; i < machine->n_vcpus; i++)
		if (number_of(machine, i) == vcpu)
			return machine->vcpus[i].id;
	return vcpu;
}

size_t qemu_machine_registers(const struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX])
{
	const struct kvm_machine *machine = &qemu->machine;

	for (unsigned i = 0; i < machine->n_vcpus; i++) {
		registers[i] = vcpu_arch_registers(&machine->vcpus[i]);
		registers[i].vcpu = number_of(machine, i);
	}
	return machine->n_vcpus;
}

bool qemu_machine_logged(const struct qemu_guest *qemu)
{
	return qemu->machine.memory_bytes > 0 && qemu->machine.logged_bytes == qemu->machine.memory_bytes;
}

/* ---- what becomes of it ---- */

/* A VMM that ends has no vCPUs a moment before, and one that reboots its guest by making another for longer.
 */
static void follow_gone(struct qemu_guest *qemu)
{
	if (++qemu->gone_ticks == GONE_TICKS)
		qemu_life_end(qemu, GUEST_END_STOPPED, "the VMM has ended the guest, and runs on without it");
}

/* Of all vCPUs, since they were made; 0: not known. */
static uint64_t exits_of(struct qemu_guest *qemu)
{
	struct guest_counter counters[GUEST_COUNTERS_MAX];
	uint64_t exits = 0;

	for (unsigned i = 0; i < qemu->machine.n_vcpus; i++) {
		size_t n = kvm_view_counters(qemu->view, qemu->machine.vcpus[i].id, counters);

		for (size_t j = 0; j < n; j++)
			if (strcmp(counters[j].name, "exits") == 0)
				exits += counters[j].value;
	}
	return exits;
}

/*
 * Where halted vCPUs are in KVM, too, one that is not may have left it for a moment: a guest is paused if none has
 * entered it from one look to the next. libvirt tells pauses itself.
 */
static void follow_runs(struct qemu_guest *qemu)
{
	uint64_t exits = any_in_kvm(&qemu->machine) ? 0 : exits_of(qemu);

	if (any_in_kvm(&qemu->machine) || (exits != qemu->last_exits && qemu->last_exits != 0))
		atomic_store_explicit(&qemu->runs, true, memory_order_relaxed);
	else if (exits != 0 && exits == qemu->last_exits && qemu->machine.halts && !qemu->domain)
		atomic_store_explicit(&qemu->runs, false, memory_order_relaxed);
	qemu->last_exits = exits;
}

void qemu_machine_follow(struct qemu_guest *qemu)
{
	g_autofree struct kvm_machine *machine = g_new(struct kvm_machine, 1);

	g_autoptr(GError) error = NULL;

	if (!kvm_view_read(qemu->view, machine, &error)) {
		if (g_error_matches(error, KVM_MACHINE_ERROR, KVM_MACHINE_ERROR_NONE))
			follow_gone(qemu);
		return;
	}
	qemu->gone_ticks = 0;
	qemu->machine = *machine;
	follow_runs(qemu);
	if (qemu->memory)
		guest_memory_set(qemu->memory, machine->ranges, machine->n_ranges);
}
