// SPDX-License-Identifier: BSD-2-Clause
/* In which mode of the guest a sample fell: the cpumode bits of its misc field, under names that people read. */
#ifndef VPROF_PROFILE_MODE_H
#define VPROF_PROFILE_MODE_H

#include <stdint.h>

enum profile_mode {
	PROFILE_KERNEL,
	PROFILE_USER,
	PROFILE_HYPERVISOR, /* outside the guest; the ip names an exit, or is the host's (vprof/exit.h) */
	PROFILE_OTHER,      /* cpumodes that only recordings of other tools have */
};

enum profile_mode profile_mode_of(uint16_t misc);

/* "kernel", "user", "vmm", "other". */
const char *profile_mode_name(enum profile_mode mode);

#endif
