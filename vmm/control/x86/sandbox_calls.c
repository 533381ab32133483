// SPDX-License-Identifier: BSD-2-Clause
#include <glib.h>
#include <linux/kvm.h>
#include <seccomp.h>

#include "control/sandbox.h"

#define ALL (SANDBOX_CONTROL | SANDBOX_VCPU | SANDBOX_DEVICE)
#define VCPU (SANDBOX_CONTROL | SANDBOX_VCPU) /* the main thread once the vCPU's has ended, too */

const struct sandbox_call sandbox_processor_calls[] = {
	{SCMP_SYS(poll), SANDBOX_CONTROL | SANDBOX_DEVICE}, /* the main loop; a console that is not read */
	/* By other names on other processors. */
	{SCMP_SYS(access), SANDBOX_ATTACH | SANDBOX_ASKER},
	{SCMP_SYS(readlink), SANDBOX_ATTACH | SANDBOX_ASKER},
	{SCMP_SYS(stat), SANDBOX_ATTACH | SANDBOX_ASKER},
	{SCMP_SYS(lstat), SANDBOX_ATTACH | SANDBOX_ASKER},
};
const size_t sandbox_processor_calls_n = G_N_ELEMENTS(sandbox_processor_calls);

const int sandbox_processor_lookups[] = {SCMP_SYS(open), SCMP_SYS(access), SCMP_SYS(readlink), SCMP_SYS(stat),
                                         SCMP_SYS(lstat)};
const size_t sandbox_processor_lookups_n = G_N_ELEMENTS(sandbox_processor_lookups);

const struct sandbox_ioctl sandbox_processor_ioctls[] = {
	/* Of the VM. */
	{KVM_X86_SET_MSR_FILTER, SANDBOX_CONTROL}, /* probes of MSRs */
	{KVM_SIGNAL_MSI, VCPU},                    /* the interrupt of the guest's PMU */
	/* Of a vCPU: what a sample, a probe, a report of a crash and the quirks of a host read and write. */
	{KVM_GET_REGS, VCPU},
	{KVM_SET_REGS, VCPU},
	{KVM_GET_SREGS, VCPU},
	{KVM_SET_SREGS, VCPU},
	{KVM_GET_FPU, VCPU},
	{KVM_SET_FPU, VCPU},
	{KVM_GET_MSRS, VCPU},
	{KVM_SET_MSRS, VCPU},
	{KVM_GET_LAPIC, VCPU},
	{KVM_GET_VCPU_EVENTS, VCPU},
	{KVM_SET_VCPU_EVENTS, VCPU},
	{KVM_GET_DEBUGREGS, VCPU},
	{KVM_SET_DEBUGREGS, VCPU},
	{KVM_GET_TSC_KHZ, VCPU},
	{KVM_TRANSLATE, VCPU},
	{KVM_NMI, VCPU},
};
const size_t sandbox_processor_ioctls_n = G_N_ELEMENTS(sandbox_processor_ioctls);
