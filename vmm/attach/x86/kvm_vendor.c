// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kvm_vendor.h"

#include <glib.h>
#include <unistd.h>

#include "lib/record/processor.h"

bool kvm_vendor_find(enum guest_sample_vendor *vendor)
{
	static const struct {
		const char *module, *flag;
		enum guest_sample_vendor vendor;
	} vendors[] = {
		{"/sys/module/kvm_intel", "vmx", GUEST_SAMPLE_VMX},
		{"/sys/module/kvm_amd", "svm", GUEST_SAMPLE_SVM},
		{"/sys/module/kvm_pvm", NULL, GUEST_SAMPLE_PVM},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(vendors); i++) {
		if (access(vendors[i].module, F_OK) != 0 || (vendors[i].flag && !processor_has(vendors[i].flag)))
			continue;
		*vendor = vendors[i].vendor;
		return true;
	}
	return false;
}
