// SPDX-License-Identifier: BSD-2-Clause
/* How busy the processes of guests are, from /proc and from KVM's statistics in debugfs. */
#ifndef VPROF_PROCESS_PROCESS_LOAD_H
#define VPROF_PROCESS_PROCESS_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_LOAD_PROC "/proc"
#define PROCESS_LOAD_KVM "/sys/kernel/debug/kvm" /* root's */

/* What has been counted since the process started. */
struct process_load {
	uint64_t start_ticks; /* when it started; 0: there is no such process */
	uint64_t cpu_ticks;   /* CPU time of all its threads, in clock ticks (sysconf(_SC_CLK_TCK)) */
	uint64_t exits;       /* of all its vCPUs */
	bool exits_known;
};

/* Between two readings of the same process. */
struct process_rate {
	double cpus;    /* 1: one CPU all the time; negative: not known */
	double exits_s; /* per second; negative: not known */
};

#define PROCESS_RATE_UNKNOWN ((struct process_rate){.cpus = -1, .exits_s = -1})

/* `proc`, `kvm`: PROCESS_LOAD_PROC and PROCESS_LOAD_KVM; tests have others. `kvm` NULL: exits are not counted. */
struct process_load process_load_read(const char *proc, const char *kvm, pid_t pid);

/* ticks_s: clock ticks in a second. */
struct process_rate process_load_rate(const struct process_load *from, const struct process_load *to, double seconds,
                                      double ticks_s);

#endif
