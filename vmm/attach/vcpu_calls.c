// SPDX-License-Identifier: BSD-2-Clause
#include "attach/vcpu_calls.h"

#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define ROUNDS 100u
#define ROUND_US 3000u

int vcpu_calls_parse(const char *text)
{
	unsigned long number, file, request;

	/* "16 0xf 0xae80 ...": number and arguments (fs/proc/base.c, proc_pid_syscall); "running" */
	if (sscanf(text, "%lu 0x%lx 0x%lx", &number, &file, &request) != 3 || number != SYS_ioctl ||
	    request != KVM_RUN || file > G_MAXINT)
		return -1;
	return (int)file;
}

unsigned vcpu_number(unsigned id, unsigned i, unsigned last_id)
{
	return last_id < GUEST_VCPUS_MAX ? id : i;
}

/* Which of the process's vCPUs a thread runs; false: none, or it does not show. */
static bool thread_vcpu(const struct kvm_process *process, const char *thread, unsigned *i)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task/%s/syscall", (int)process->pid, thread);
	g_autofree char *text = NULL;
	unsigned id;
	int file = g_file_get_contents(path, &text, NULL, NULL) ? vcpu_calls_parse(text) : -1;

	if (file < 0)
		return false;
	g_autofree char *link = g_strdup_printf("/proc/%d/task/%s/fd/%d", (int)process->pid, thread, file);

	if (!kvm_process_file_vcpu(link, &id))
		return false;
	for (*i = 0; *i < process->n_vcpus; (*i)++)
		if (process->vcpu_ids[*i] == id)
			return true;
	return false;
}

/* Returns how many are known then. */
static unsigned round_look(const struct kvm_process *process, pid_t found[GUEST_VCPUS_MAX])
{
	g_autofree char *folder = g_strdup_printf("/proc/%d/task", (int)process->pid);
	g_autoptr(GDir) threads = g_dir_open(folder, 0, NULL);
	unsigned n = 0, i;
	const char *name;

	while (threads && (name = g_dir_read_name(threads)))
		if (thread_vcpu(process, name, &i))
			found[i] = (pid_t)strtol(name, NULL, 10);
	for (i = 0; i < process->n_vcpus; i++)
		n += found[i] != 0;
	return n;
}

unsigned vcpu_calls_find(const struct kvm_process *process, pid_t threads[GUEST_VCPUS_MAX])
{
	const unsigned n = process->n_vcpus;
	pid_t found[GUEST_VCPUS_MAX] = {0};
	unsigned number = 0;

	memset(threads, 0, GUEST_VCPUS_MAX * sizeof(threads[0]));
	if (n > MIN(GUEST_VCPUS_MAX, KVM_PROCESS_VCPUS_MAX))
		return 0;
	for (unsigned round = 0; round_look(process, found) < n; round++) {
		if (round == ROUNDS)
			return 0;
		g_usleep(ROUND_US);
	}
	for (unsigned i = 0; i < n; i++) {
		number = vcpu_number(process->vcpu_ids[i], i, process->vcpu_ids[n - 1]);
		threads[number] = found[i];
	}
	return number + 1;
}
