// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions that Linux uses at CPL 0 and KVM's emulator (arch/x86/kvm/emulate.c) refuses. KVM hands over their
 * bytes (KVM_CAP_EXIT_ON_EMULATION_FAILURE).
 */
#ifndef VPROF_KVM_HOST_X86_HOST_PVM_EMULATE_H
#define VPROF_KVM_HOST_X86_HOST_PVM_EMULATE_H

#include "kvm/host/x86/host_quirks.h"

/* Executes the instruction at RIP. False: it is none of those that pvm cannot emulate. */
bool host_pvm_emulate(const struct memory *memory, const struct host_vcpu *vcpu);

#endif
