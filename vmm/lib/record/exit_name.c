// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/exit_name.h"

#include <inttypes.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdio.h>
#include <vprof/exit.h>

struct exit_name {
	const char *name;
	bool has_detail; /* the low bits of the ip say which port, address or MSR */
};

/* By KVM_EXIT_*. The last four by number: Debian 12's linux/kvm.h ends at KVM_EXIT_NOTIFY. */
static const struct exit_name names[] = {
	[KVM_EXIT_UNKNOWN] = {"unknown"},
	[KVM_EXIT_EXCEPTION] = {"exception"},
	[KVM_EXIT_IO] = {"io", true},
	[KVM_EXIT_HYPERCALL] = {"hypercall"},
	[KVM_EXIT_DEBUG] = {"debug"},
	[KVM_EXIT_HLT] = {"hlt"},
	[KVM_EXIT_MMIO] = {"mmio", true},
	[KVM_EXIT_IRQ_WINDOW_OPEN] = {"irq-window-open"},
	[KVM_EXIT_SHUTDOWN] = {"shutdown"},
	[KVM_EXIT_FAIL_ENTRY] = {"fail-entry"},
	[KVM_EXIT_INTR] = {"intr"},
	[KVM_EXIT_SET_TPR] = {"set-tpr"},
	[KVM_EXIT_TPR_ACCESS] = {"tpr-access"},
	[KVM_EXIT_S390_SIEIC] = {"s390-sieic"},
	[KVM_EXIT_S390_RESET] = {"s390-reset"},
	[KVM_EXIT_DCR] = {"dcr"},
	[KVM_EXIT_NMI] = {"nmi"},
	[KVM_EXIT_INTERNAL_ERROR] = {"internal-error"},
	[KVM_EXIT_OSI] = {"osi"},
	[KVM_EXIT_PAPR_HCALL] = {"papr-hcall"},
	[KVM_EXIT_S390_UCONTROL] = {"s390-ucontrol"},
	[KVM_EXIT_WATCHDOG] = {"watchdog"},
	[KVM_EXIT_S390_TSCH] = {"s390-tsch"},
	[KVM_EXIT_EPR] = {"epr"},
	[KVM_EXIT_SYSTEM_EVENT] = {"system-event"},
	[KVM_EXIT_S390_STSI] = {"s390-stsi"},
	[KVM_EXIT_IOAPIC_EOI] = {"ioapic-eoi"},
	[KVM_EXIT_HYPERV] = {"hyperv"},
	[KVM_EXIT_ARM_NISV] = {"arm-nisv"},
	[KVM_EXIT_X86_RDMSR] = {"rdmsr", true},
	[KVM_EXIT_X86_WRMSR] = {"wrmsr", true},
	[KVM_EXIT_DIRTY_RING_FULL] = {"dirty-ring-full"},
	[KVM_EXIT_AP_RESET_HOLD] = {"ap-reset-hold"},
	[KVM_EXIT_X86_BUS_LOCK] = {"bus-lock"},
	[KVM_EXIT_XEN] = {"xen"},
	[KVM_EXIT_RISCV_SBI] = {"riscv-sbi"},
	[KVM_EXIT_RISCV_CSR] = {"riscv-csr"},
	[KVM_EXIT_NOTIFY] = {"notify"},
	[38] = {"loongarch-iocsr"},
	[39] = {"memory-fault", true},
	[40] = {"tdx"},
	[41] = {"arm-sea"},
};

size_t exit_name_count(void)
{
	return sizeof(names) / sizeof(names[0]);
}

const char *exit_name_of_reason(uint64_t reason)
{
	if (reason == VPROF_EXIT_REASON_VMM)
		return "vmm";
	if (reason == VPROF_EXIT_REASON_NESTED)
		return "nested guest";
	return reason < exit_name_count() ? names[reason].name : NULL;
}

void exit_name_format(uint64_t exit_ip, char name[EXIT_NAME_BYTES])
{
	const uint64_t reason = vprof_exit_reason(exit_ip);
	const char *word = exit_name_of_reason(reason);

	if (reason == VPROF_EXIT_REASON_NESTED)
		snprintf(name, EXIT_NAME_BYTES, "%s", word);
	else if (!word)
		snprintf(name, EXIT_NAME_BYTES, "exit:%" PRIu64, reason);
	else if (reason < exit_name_count() && names[reason].has_detail)
		snprintf(name, EXIT_NAME_BYTES, "exit:%s:0x%" PRIx64, word, vprof_exit_detail(exit_ip));
	else
		snprintf(name, EXIT_NAME_BYTES, "exit:%s", word);
}
