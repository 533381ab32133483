// SPDX-License-Identifier: BSD-2-Clause
/* What attach/ has to have of the processor: in x86/ and arm64/, of which a build has one. */
#ifndef VPROF_ATTACH_VCPU_ARCH_H
#define VPROF_ATTACH_VCPU_ARCH_H

#include "attach/kvm_machine.h"
#include "attach/qemu.h"

/* The page tables that a record of KVM's view has. */
struct kvm_view_vcpu;
struct guest_tables vcpu_arch_tables(const struct kvm_view_vcpu *record);

/* What KVM's view shows of a vCPU, as far as it leads to a kernel; all but its number. */
struct seen_vcpu vcpu_arch_registers(const struct kvm_machine_vcpu *vcpu);

/* Of the guests that the host runs. */
enum guest_processor vcpu_arch_processor(void);

/*
 * The instruction pointer and the mode that a perf sample in the guest has (its `misc` and `ip`), into *regs.
 * `has_kernel` as in vcpu_rings_user.
 */
void vcpu_arch_place(struct guest_regs *regs, uint16_t misc, uint64_t ip, bool has_kernel);

/* Whether they lead there at this moment, and not to what has gone. */
bool vcpu_arch_current(const struct kvm_machine_vcpu *vcpu);

/* Whether no vCPU's page tables are known on this host, so that memory is searched for them. */
bool vcpu_arch_scans(const struct kvm_machine *machine, bool *five_levels);

/* The routes that there are, best first; NULL-terminated. */
extern const struct counter_route *const vcpu_arch_routes[];

#endif
