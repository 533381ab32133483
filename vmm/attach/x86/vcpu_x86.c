// SPDX-License-Identifier: BSD-2-Clause
#include "attach/guest_memory.h"
#include "attach/kernel_scan.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_rings.h"

/* Steps of a search: one in so many. */
#define LAZY_TRIES 10u

struct hmp_registers vcpu_arch_registers(const struct kvm_machine_vcpu *vcpu)
{
	return (struct hmp_registers){
		.regs = {.cr3 = vcpu->cr3, .la57 = vcpu->la57},
		.idt = vcpu->idt,
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
	regs->cpl = vcpu_rings_cpl(misc, ip, has_kernel);
}

bool vcpu_arch_current(const struct kvm_machine_vcpu *vcpu)
{
	return vcpu->cr3_current;
}

size_t vcpu_arch_scan(struct qemu_guest *qemu, struct hmp_registers *registers)
{
	const struct kvm_machine *machine = &qemu->machine;
	bool la57 = false;

	for (unsigned i = 0; i < machine->n_vcpus; i++) {
		if (machine->vcpus[i].cr3_current)
			return 0;
		la57 |= machine->vcpus[i].la57;
	}
	if (!qemu->view || qemu->kernel_tries % LAZY_TRIES != 0)
		return 0;
	uint64_t top = kernel_scan(&qemu->guest, guest_memory_next, qemu->memory, la57);

	qemu->scanned_tables = top;
	*registers = (struct hmp_registers){.regs = {.cr3 = top, .la57 = la57}, .long_mode = true};
	return top != 0;
}

const struct counter_route *const vcpu_arch_routes[] = {&route_bpf, &route_perf, &route_monitor, NULL};
