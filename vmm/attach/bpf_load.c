// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf_load.h"

#include <errno.h>

#include "attach/guest_program.h"
#include "exits/bpf_complaint.h"

void bpf_load_begin(void)
{
	bpf_complaint_begin();
}

void bpf_load_end(int number, GError **error)
{
	const char *complaint = bpf_complaint_end();

	if (number == EPERM || number == EACCES)
		g_set_error(
			error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_DENIED,
			"the kernel lets us load no BPF program (%s); run vprof as root, or with CAP_BPF and CAP_PERFMON, and with CAP_SYS_ADMIN where KVM is a module (to read its BTF)",
			g_strerror(number));
	else if (number != 0)
		g_set_error(
			error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL,
			"the kernel does not take the BPF program (%s: %s); it needs Linux 5.17 or newer with BTF of its KVM (CONFIG_DEBUG_INFO_BTF)",
			g_strerror(number), complaint);
}
