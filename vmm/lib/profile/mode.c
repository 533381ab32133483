// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/mode.h"

#include <linux/perf_event.h>
#include <vprof/recording.h>

enum profile_mode profile_mode_of(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return PROFILE_KERNEL;
	case PERF_RECORD_MISC_USER:
	case PERF_RECORD_MISC_GUEST_USER:
		return PROFILE_USER;
	case PERF_RECORD_MISC_HYPERVISOR:
		return PROFILE_HYPERVISOR;
	default:
		return PROFILE_OTHER;
	}
}

const char *profile_mode_name(enum profile_mode mode)
{
	static const char *const names[] = {
		[PROFILE_KERNEL] = "kernel", [PROFILE_USER] = "user",       [PROFILE_HYPERVISOR] = "vmm",
		[PROFILE_OTHER] = "other",   [PROFILE_WAITING] = "waiting",
	};

	return names[mode];
}

unsigned profile_state_of(uint16_t misc)
{
	return (misc & VPROF_TASK_STATE_MASK) >> VPROF_TASK_STATE_SHIFT;
}

const char *profile_state_name(unsigned state)
{
#define X(id, letter, name) [id] = name,
	static const char *const names[] = {[VPROF_TASK_RUNNING] = "running", VPROF_TASK_STATES(X)};
#undef X

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}
