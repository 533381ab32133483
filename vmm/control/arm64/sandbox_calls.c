// SPDX-License-Identifier: BSD-2-Clause
#include <glib.h>
#include <linux/kvm.h>
#include <seccomp.h>

#include "control/sandbox.h"

const struct sandbox_call sandbox_processor_calls[] = {{0}};
const size_t sandbox_processor_calls_n = 0;

const int sandbox_processor_lookups[] = {0};
const size_t sandbox_processor_lookups_n = 0;

const struct sandbox_ioctl sandbox_processor_ioctls[] = {
	/* Of a vCPU: what a sample and a report of a crash read. */
	{KVM_GET_ONE_REG, SANDBOX_CONTROL | SANDBOX_VCPU},
	{KVM_SET_ONE_REG, SANDBOX_CONTROL | SANDBOX_VCPU},
};
const size_t sandbox_processor_ioctls_n = G_N_ELEMENTS(sandbox_processor_ioctls);
