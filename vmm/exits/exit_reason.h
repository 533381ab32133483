// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of the processor's exit reasons, which perf and KVM's trace points use: those of uapi asm/vmx.h and asm/svm.h,
 * and on arm64 of exception classes.
 */
#ifndef VPROF_EXITS_EXIT_REASON_H
#define VPROF_EXITS_EXIT_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/guest.h"

/* isa of kvm:kvm_exit (KVM_ISA_* in arch/x86/kvm/trace.h). */
#define EXIT_ISA_VMX 1u
#define EXIT_ISA_SVM 2u

/* "EPT_VIOLATION", "npf", "DABT_LOW"; the number in hex where there is no name. */
void exit_reason_name(unsigned isa, uint32_t reason, char name[GUEST_EXIT_NAME_BYTES]);

/* Whether the guest left with HLT, or WFI or WFE. */
bool exit_reason_is_halt(unsigned isa, uint32_t reason);

#endif
