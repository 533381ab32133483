// SPDX-License-Identifier: BSD-2-Clause
/* The exits that are the same for each architecture. */
#ifndef VPROF_KVM_VCPU_VCPU_EXIT_H
#define VPROF_KVM_VCPU_VCPU_EXIT_H

#include "kvm/vcpu/vcpu.h"

/*
 * On the vCPU's thread, for an exit for which the architecture has nothing of its own to do. One that is not known ends
 * the guest.
 */
void vcpu_exit_handle(struct vcpu *vcpu);

#endif
