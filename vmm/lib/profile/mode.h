// SPDX-License-Identifier: BSD-2-Clause
/* What misc of a sample says of it: in which mode of the guest it fell, and what its task did, under names that people
 * read. */
#ifndef VPROF_PROFILE_MODE_H
#define VPROF_PROFILE_MODE_H

#include <stdint.h>

enum profile_mode {
	PROFILE_KERNEL,
	PROFILE_USER,
	PROFILE_HYPERVISOR, /* outside the guest; the ip names an exit, or is the host's (vprof/exit.h) */
	PROFILE_OTHER,      /* cpumodes that only recordings of other tools have */
	PROFILE_WAITING,    /* of frames of tasks that wait, where call_tree_tell_waits has them told apart */
};

enum profile_mode profile_mode_of(uint16_t misc);

/* "kernel", "user", "vmm", "other", "waiting". */
const char *profile_mode_name(enum profile_mode mode);

/* enum vprof_task_state (vprof/recording.h), or a number that has no name. */
unsigned profile_state_of(uint16_t misc);
/* "running", "sleeping"; "unknown" for other numbers. */
const char *profile_state_name(unsigned state);

#endif
