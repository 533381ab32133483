// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf/kvm_view.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_rings.h"

struct guest_tables vcpu_arch_tables(const struct kvm_view_vcpu *record)
{
	return (struct guest_tables){.cr3 = record->tables[0], .la57 = record->flags & KVM_VIEW_FIVE_LEVELS};
}

struct seen_vcpu vcpu_arch_registers(const struct kvm_machine_vcpu *vcpu)
{
	return (struct seen_vcpu){
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

bool vcpu_arch_scans(const struct kvm_machine *machine, bool *five_levels)
{
	*five_levels = false;
	for (unsigned i = 0; i < machine->n_vcpus; i++) {
		if (machine->vcpus[i].tables_current)
			return false;
		*five_levels |= machine->vcpus[i].tables.la57;
	}
	return true;
}

const struct counter_route *const vcpu_arch_routes[] = {&route_bpf, &route_perf, &route_monitor, NULL};
