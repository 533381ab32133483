// SPDX-License-Identifier: BSD-2-Clause
#include "exits/exit_reason.h"

#include <asm/svm.h>
#include <asm/vmx.h>
#include <inttypes.h>
#include <linux/kvm.h> /* the numbers of exceptions */
#include <stdio.h>

#define VMX_BASIC 0xffffu /* the basic exit reason (SDM vol. 3C, 25.9.1); flags are above */

struct exit_reason {
	int64_t number;
	const char *name;
};

static const struct exit_reason vmx[] = {VMX_EXIT_REASONS};
static const struct exit_reason svm[] = {SVM_EXIT_REASONS};

static const char *name_find(const struct exit_reason *reasons, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)reasons[i].number == number)
			return reasons[i].name;
	return NULL;
}

void exit_reason_name(unsigned isa, uint32_t reason, char name[GUEST_EXIT_NAME_BYTES])
{
	const char *known = NULL;

	if (isa == EXIT_ISA_VMX)
		known = name_find(vmx, G_N_ELEMENTS(vmx), reason & VMX_BASIC);
	else if (isa == EXIT_ISA_SVM)
		known = name_find(svm, G_N_ELEMENTS(svm), reason);
	if (!known)
		snprintf(name, GUEST_EXIT_NAME_BYTES, "0x%" PRIx32, reason);
	else if (isa == EXIT_ISA_VMX && reason & VMX_EXIT_REASONS_FAILED_VMENTRY)
		snprintf(name, GUEST_EXIT_NAME_BYTES, "%s FAILED_VMENTRY", known);
	else
		snprintf(name, GUEST_EXIT_NAME_BYTES, "%s", known);
}

bool exit_reason_is_halt(unsigned isa, uint32_t reason)
{
	return isa == EXIT_ISA_VMX ? (reason & VMX_BASIC) == EXIT_REASON_HLT
	                           : isa == EXIT_ISA_SVM && reason == SVM_EXIT_HLT;
}
