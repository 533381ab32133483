// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/process/vmm_name.h"

pid_t qemu_process_of_thread(pid_t thread)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)thread);
	g_autofree char *status = NULL;
	const char *at;

	if (!g_file_get_contents(path, &status, NULL, NULL) || !(at = strstr(status, "\nTgid:")))
		return 0;
	return (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10);
}

/* Of the process; "qemu-system-x86", of which nobody wants to type the rest, is "qemu". New string. */
static char *command_name(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
	char *comm = NULL;

	if (!g_file_get_contents(path, &comm, NULL, NULL))
		return g_strdup("process");
	g_strchomp(comm);
	if (g_str_has_prefix(comm, "qemu-system-"))
		comm[strlen("qemu")] = '\0';
	return comm;
}

char *qemu_process_name(pid_t pid)
{
	struct vmm_name vmm = vmm_name_read("/proc", pid);
	g_autofree char *name = vmm.guest ? g_strdup(vmm.guest) : command_name(pid);

	vmm_name_clear(&vmm);
	/* It becomes a part of a file's name. */
	g_strcanon(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-", '-');
	return g_strdup_printf("%s-%d", name, (int)pid);
}

bool qemu_process_is_qemu(pid_t pid)
{
	struct vmm_name name = vmm_name_read("/proc", pid);
	g_autofree char *command = command_name(pid);
	bool is = strcmp(name.vmm, "QEMU") == 0 || (strcmp(name.vmm, "?") == 0 && g_str_has_prefix(command, "qemu"));

	vmm_name_clear(&name);
	return is;
}

/* Arguments are separated by NUL bytes. */
static bool command_line_has(const char *pid, const char *option, const char *value)
{
	g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", pid);
	g_autofree char *text = NULL;
	const char *last = "";
	gsize bytes;

	if (!g_file_get_contents(path, &text, &bytes, NULL))
		return false;
	for (gsize at = 0; at < bytes; at += strlen(text + at) + 1) {
		if (strcmp(last, option) == 0 && strcmp(text + at, value) == 0)
			return true;
		last = text + at;
	}
	return false;
}

pid_t qemu_process_of_uuid(const char *uuid, unsigned *n)
{
	g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
	const char *name;
	pid_t found = 0;

	*n = 0;
	while (processes && (name = g_dir_read_name(processes))) {
		if (!g_ascii_isdigit(name[0]) || !command_line_has(name, "-uuid", uuid))
			continue;
		found = (pid_t)strtol(name, NULL, 10);
		(*n)++;
	}
	return found;
}

unsigned qemu_threads_from_qmp(const json_t *cpus, pid_t threads[GUEST_VCPUS_MAX])
{
	const json_t *cpu;
	unsigned n = 0;
	size_t i;

	memset(threads, 0, GUEST_VCPUS_MAX * sizeof(threads[0]));
	json_array_foreach(cpus, i, cpu) {
		json_int_t index = json_integer_value(json_object_get(cpu, "cpu-index"));
		json_int_t thread = json_integer_value(json_object_get(cpu, "thread-id"));

		if (index < 0 || index >= GUEST_VCPUS_MAX || thread <= 0 || thread > G_MAXINT)
			return 0;
		threads[index] = (pid_t)thread;
		n = MAX(n, (unsigned)index + 1);
	}
	return n;
}

void qemu_paths_from_qmp(const json_t *cpus, char *paths[GUEST_VCPUS_MAX])
{
	const json_t *cpu;
	size_t i;

	for (i = 0; i < GUEST_VCPUS_MAX; i++)
		g_clear_pointer(&paths[i], g_free);
	json_array_foreach(cpus, i, cpu) {
		json_int_t index = json_integer_value(json_object_get(cpu, "cpu-index"));

		if (index >= 0 && index < GUEST_VCPUS_MAX && !paths[index])
			paths[index] = g_strdup(json_string_value(json_object_get(cpu, "qom-path")));
	}
}

static bool is_vcpu_name(const char *comm, unsigned *vcpu)
{
	char kind[8];

	return sscanf(comm, "CPU %u/%7s", vcpu, kind) == 2 && *vcpu < GUEST_VCPUS_MAX;
}

unsigned qemu_threads_from_names(pid_t pid, pid_t threads[GUEST_VCPUS_MAX])
{
	g_autofree char *folder = g_strdup_printf("/proc/%d/task", (int)pid);
	g_autoptr(GDir) tasks = g_dir_open(folder, 0, NULL);
	const char *name;
	unsigned n = 0;

	memset(threads, 0, GUEST_VCPUS_MAX * sizeof(threads[0]));
	while (tasks && (name = g_dir_read_name(tasks))) {
		g_autofree char *path = g_strdup_printf("%s/%s/comm", folder, name);
		g_autofree char *comm = NULL;
		unsigned vcpu;

		if (!g_file_get_contents(path, &comm, NULL, NULL) || !is_vcpu_name(comm, &vcpu))
			continue;
		threads[vcpu] = (pid_t)strtol(name, NULL, 10);
		n = MAX(n, vcpu + 1);
	}
	return n;
}
