// SPDX-License-Identifier: BSD-2-Clause
/*
 * The thread of a vCPU: it waits until the VM runs, enters the guest, handles exits and tells the watcher. Between
 * vcpu_launch and vcpu_join it owns the vCPU.
 */
#ifndef VPROF_KVM_VCPU_VCPU_RUN_H
#define VPROF_KVM_VCPU_VCPU_RUN_H

#include "kvm/vcpu/vcpu.h"

/* Starts the thread, which waits for vcpu_go. */
bool vcpu_launch(struct vcpu *vcpu, GError **error);
void vcpu_join(struct vcpu *vcpu);

/* As guest_ops.vcpu_time. */
void vcpu_read_time(struct vcpu *vcpu, bool reset, struct guest_vcpu_time *out);

#endif
