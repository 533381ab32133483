// SPDX-License-Identifier: BSD-2-Clause
/* What a VM does in a way of its architecture: kvm/x86 and kvm/arm64 each have all of it. Errors: HOST_ERROR. */
#ifndef VPROF_KVM_VM_ARCH_H
#define VPROF_KVM_VM_ARCH_H

#include <glib.h>

#include "kvm/vm_config.h"

struct image;
struct guest_msr_range;
struct kvm_pmu_event_filter;
struct vm;

/* KVM is open, and nothing else is there: makes vm->arch, sets vm->machine.arch and vm->guest.processor. */
void vm_arch_new(struct vm *vm, const struct vm_config *config);
void vm_arch_free(struct vm *vm);

/* What differs on this host, and what it wants on Linux' command line; NULL-terminated; NULL: nothing. */
const char *const *vm_arch_quirks(const struct vm *vm);
const char *const *vm_arch_options(const struct vm *vm);

/* KVM_CREATE_VM, and what comes before the vCPUs: the guest's memory, interrupt controllers and timers, its PMU. */
bool vm_arch_create(struct vm *vm, const struct vm_config *config, GError **error);
/* Makes the vCPU after those that are there, of `n`: vcpu_init. */
bool vm_arch_vcpu(struct vm *vm, unsigned n, GError **error);
/* With vCPUs and devices: the kernel, and the state in which the first vCPU starts. */
bool vm_arch_load(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error);

/*
 * Of --pmu-filter: action is KVM_PMU_EVENT_ALLOW or _DENY, of `n` events, 1..PMU_FILTER_EVENTS_MAX. On x86-64 it is for
 * KVM_SET_PMU_EVENT_FILTER (Documentation/virt/kvm/api.rst), names are those of the architectural events of Intel
 * processors, and rNNNN is unit mask and event. On arm64 it is a list for each vCPU's device (devices/vcpu.rst), names
 * are perf's, and rNNNN is the event's number. Free with g_free. Errors: G_OPTION_ERROR.
 */
struct kvm_pmu_event_filter *vm_arch_pmu_filter(uint8_t action, const char *const *events, size_t n, GError **error);

/* As guest_debug_ops.msrs_watch. */
bool vm_arch_msrs_watch(struct vm *vm, const struct guest_msr_range *ranges, size_t n, GError **error);

/* An interrupt of devices_host.irq as KVM_IRQ_LINE takes it. */
unsigned vm_arch_irq(unsigned irq);

#endif
