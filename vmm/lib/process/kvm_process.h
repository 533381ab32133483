// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes that have virtual machines, by what /proc says of their files: KVM names the file of a machine
 * "anon_inode:kvm-vm" and that of a vCPU "anon_inode:kvm-vcpu:ID" (virt/kvm/kvm_main.c). Names of programs, of threads
 * and of files on disk play no part, nor do namespaces: process ids are those of the /proc that is read.
 */
#ifndef VPROF_PROCESS_KVM_PROCESS_H
#define VPROF_PROCESS_KVM_PROCESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#define KVM_PROCESS_VCPUS_MAX 64u /* as many as vprof profiles */

struct kvm_process {
	pid_t pid;
	unsigned n_vms;                           /* files of machines; a machine may be open more than once */
	unsigned n_vcpus;                         /* different vCPU ids, also those beyond the array */
	unsigned vcpu_ids[KVM_PROCESS_VCPUS_MAX]; /* ascending: APIC ids, which may have gaps */
};

enum kvm_process_state {
	KVM_PROCESS_NONE,   /* it has no vCPU */
	KVM_PROCESS_GONE,   /* there is no such process */
	KVM_PROCESS_VMM,    /* it has files of vCPUs; those of machines may be closed, vCPUs keep them alive */
	KVM_PROCESS_DENIED, /* its files are not for us: another user's, without CAP_SYS_PTRACE */
};

/* `proc`: "/proc"; tests have others. *out is filled in for KVM_PROCESS_VMM. */
enum kvm_process_state kvm_process_read(const char *proc, pid_t pid, struct kvm_process *out);

/* The id of the vCPU that an open file is; false for other files. `path`: of a descriptor, "/proc/PID/fd/N". */
bool kvm_process_file_vcpu(const char *path, unsigned *id);

/*
 * All of them, by ascending process id: an array of struct kvm_process, the caller's. A child that has inherited such
 * files is among them. *denied: how many processes could not be looked into; may be NULL.
 */
GArray *kvm_process_list(const char *proc, unsigned *denied);

#endif
