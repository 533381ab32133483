// SPDX-License-Identifier: BSD-2-Clause
/* Between host_pvm.c and host_pvm_emulate.c. */
#ifndef VPROF_KVM_HOST_PVM_PRIV_H
#define VPROF_KVM_HOST_PVM_PRIV_H

#include "kvm/memory.h"
#include "kvm/vcpu.h"

/* Does what the instruction at RIP does, when it is one of those that pvm cannot emulate at CPL 0. */
bool host_pvm_emulate(const struct memory *memory, struct vcpu *vcpu);

#endif
