// SPDX-License-Identifier: BSD-2-Clause
/* A VMM's process and its vCPU threads. */
#ifndef VPROF_ATTACH_QEMU_PROCESS_H
#define VPROF_ATTACH_QEMU_PROCESS_H

#include <jansson.h>
#include <sys/types.h>

#include "guest/guest.h"

/* The process that a thread belongs to; 0 when there is no such thread. */
pid_t qemu_process_of_thread(pid_t thread);

/* What its guest is called: its name on the command line and the number, "vm7-4711", else the command; new string. */
char *qemu_process_name(pid_t pid);

/* Whether its program's file, or else its command, is called so. */
bool qemu_process_is_qemu(pid_t pid);

/* The process that libvirt has started for this UUID (`-uuid UUID`); *n: how many there are. */
pid_t qemu_process_of_uuid(const char *uuid, unsigned *n);

/* From QMP's query-cpus-fast, by cpu-index; returns how many there are, the highest index and one. */
unsigned qemu_threads_from_qmp(const json_t *cpus, pid_t threads[GUEST_VCPUS_MAX]);

/* Where the vCPUs are in QEMU's object tree, by the same answer; new strings in place of the old, NULL where there is
 * none. */
void qemu_paths_from_qmp(const json_t *cpus, char *paths[GUEST_VCPUS_MAX]);

/* From the threads' names, "CPU 0/KVM" or "CPU 0/TCG" (QEMU -name debug-threads=on, which libvirt gives). */
unsigned qemu_threads_from_names(pid_t pid, pid_t threads[GUEST_VCPUS_MAX]);

#endif
