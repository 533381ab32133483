// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf/kvm_view.h"
#include "attach/guest_memory.h"
#include "attach/kernel_scan.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_rings.h"

/* Steps of a search: one in so many. */
#define LAZY_TRIES 10u

struct guest_tables vcpu_arch_tables(const struct kvm_view_vcpu *record)
{
	return (struct guest_tables){.cr3 = record->tables[0], .la57 = record->flags & KVM_VIEW_FIVE_LEVELS};
}

struct hmp_registers vcpu_arch_registers(const struct kvm_machine_vcpu *vcpu)
{
	return (struct hmp_registers){
		.regs = {.cr3 = vcpu->tables.cr3, .la57 = vcpu->tables.la57},
		.vectors = vcpu->vectors,
		.long_mode = vcpu->long_mode,
	};
}

enum guest_processor vcpu_arch_processor(void)
{
	return GUEST_X86_64;
}

void vcpu_arch_place(struct guest_regs *regs, uint16_t misc, uint64_t ip, bool has_kernel)
{
	regs->rip = ip;
	regs->valid = true;
	regs->cpl = vcpu_rings_user(misc, ip, has_kernel) ? 3 : 0;
}

bool vcpu_arch_current(const struct kvm_machine_vcpu *vcpu)
{
	return vcpu->tables_current;
}

size_t vcpu_arch_scan(struct qemu_guest *qemu, struct hmp_registers *registers)
{
	const struct kvm_machine *machine = &qemu->machine;
	bool la57 = false;

	for (unsigned i = 0; i < machine->n_vcpus; i++) {
		if (machine->vcpus[i].tables_current)
			return 0;
		la57 |= machine->vcpus[i].tables.la57;
	}
	if (!qemu->view || qemu->kernel_tries % LAZY_TRIES != 0)
		return 0;
	uint64_t top = kernel_scan(&qemu->guest, guest_memory_next, qemu->memory, la57);

	qemu->scanned = top != 0;
	qemu->scanned_regs = (struct guest_regs){.cr3 = top, .la57 = la57};
	*registers = (struct hmp_registers){.regs = qemu->scanned_regs, .long_mode = true};
	return top != 0;
}

const struct counter_route *const vcpu_arch_routes[] = {&route_bpf, &route_perf, &route_monitor, NULL};
