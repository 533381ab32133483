// SPDX-License-Identifier: BSD-2-Clause
#include "attach/privilege.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/* As numbers: Debian 12's headers have all of them, older ones not the last two. */
#define CAPABILITY_PERFMON 38
#define CAPABILITY_BPF 39

/* perf events and programs on QEMU's threads, its descriptors in /proc, and rings of more than perf_event_mlock_kb. */
static const uint64_t kept = BIT(CAPABILITY_PERFMON) | BIT(CAPABILITY_BPF) | BIT(CAP_SYS_PTRACE) | BIT(CAP_IPC_LOCK);

/* Before Linux 5.8, CAP_SYS_ADMIN stood for the two. */
static uint64_t kept_here(void)
{
	return prctl(PR_CAPBSET_READ, CAPABILITY_PERFMON) >= 0 ? kept : kept | BIT(CAP_SYS_ADMIN);
}

bool privilege_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const uint64_t keep = kept_here();

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t part = (uint32_t)(keep >> (32 * i));

		data[i].permitted &= part;
		data[i].effective &= part;
		data[i].inheritable = 0;
	}
	/* A process that may not drop from the bounding set is bounded by the sets below. */
	for (unsigned i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		if (!(keep & BIT(i)))
			prctl(PR_CAPBSET_DROP, i);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, data) == 0;
}
