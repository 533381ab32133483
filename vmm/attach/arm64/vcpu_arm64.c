// SPDX-License-Identifier: BSD-2-Clause
#include <linux/perf_event.h>

#include "attach/bpf/kvm_view.h"
#include "attach/kvm_vendor.h"
#include "attach/vcpu_arch.h"

/* KVM is a part of the kernel there, and one for all processors. */
bool kvm_vendor_find(enum guest_sample_vendor *vendor)
{
	*vendor = GUEST_SAMPLE_ARM64;
	return true;
}

struct guest_tables vcpu_arch_tables(const struct kvm_view_vcpu *record)
{
	return (struct guest_tables){.processor = GUEST_ARM64,
	                             .arm64 = {.ttbr0 = record->tables[0],
	                                       .ttbr1 = record->tables[1],
	                                       .tcr = record->tables[2],
	                                       .mmu = record->flags & KVM_VIEW_MMU}};
}

struct seen_vcpu vcpu_arch_registers(const struct kvm_machine_vcpu *vcpu)
{
	return (struct seen_vcpu){
		.regs = {.processor = GUEST_ARM64, .arm64 = {.tables = vcpu->tables.arm64}},
		.vectors = vcpu->vectors,
		.long_mode = vcpu->tables.arm64.mmu,
	};
}

enum guest_processor vcpu_arch_processor(void)
{
	return GUEST_ARM64;
}

/* KVM has both of the last exit, and perf asks for no more. */
void vcpu_arch_place(struct guest_regs *regs, uint16_t misc, uint64_t ip, bool has_kernel G_GNUC_UNUSED)
{
	regs->processor = GUEST_ARM64;
	regs->arm64.pc = ip;
	regs->arm64.el = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_GUEST_USER ? 0 : 1;
	regs->valid = true;
}

bool vcpu_arch_current(const struct kvm_machine_vcpu *vcpu)
{
	return vcpu->tables_current;
}

/* Page tables are known as soon as a vCPU has left its processor for a moment. */
bool vcpu_arch_scans(const struct kvm_machine *machine G_GNUC_UNUSED, bool *five_levels)
{
	*five_levels = false;
	return false;
}

const struct counter_route *const vcpu_arch_routes[] = {&route_bpf, &route_perf, NULL};
