// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/kvm_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VM_NAME "anon_inode:kvm-vm"
#define VCPU_NAME "anon_inode:kvm-vcpu:"
#define FILE_NAME_BYTES 64u /* longer names are of other files */
#define PIDS_MAX 4194304u   /* PID_MAX_LIMIT (include/linux/threads.h) */

/* The number that a string is, all of it; false for others. */
static bool number_parse(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	if (!g_ascii_isdigit(text[0]))
		return false;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && *number <= max;
}

static void vcpu_add(GArray *ids, unsigned id)
{
	for (guint i = 0; i < ids->len; i++)
		if (g_array_index(ids, unsigned, i) == id)
			return;
	g_array_append_val(ids, id);
}

/* What a file is, as the link of its descriptor says; "" if that cannot be read. */
static void file_read(const char *path, char target[FILE_NAME_BYTES])
{
	ssize_t n = readlink(path, target, FILE_NAME_BYTES - 1);

	target[MAX(n, 0)] = '\0';
}

static bool vcpu_parse(const char *target, unsigned *id)
{
	unsigned long number;

	if (!g_str_has_prefix(target, VCPU_NAME) || !number_parse(target + strlen(VCPU_NAME), G_MAXUINT, &number))
		return false;
	*id = (unsigned)number;
	return true;
}

bool kvm_process_file_vcpu(const char *path, unsigned *id)
{
	char target[FILE_NAME_BYTES];

	file_read(path, target);
	return vcpu_parse(target, id);
}

/* The files of a table of descriptors; false when the folder cannot be read, errno says why. */
static bool files_read(const char *folder, struct kvm_process *found, GArray *ids, unsigned *n_files)
{
	g_autoptr(GDir) files = g_dir_open(folder, 0, NULL);
	const char *name;

	*n_files = 0;
	while (files && (name = g_dir_read_name(files))) {
		g_autofree char *path = g_build_filename(folder, name, NULL);
		char target[FILE_NAME_BYTES];
		unsigned id;

		(*n_files)++;
		file_read(path, target);
		if (strcmp(target, VM_NAME) == 0)
			found->n_vms++;
		else if (vcpu_parse(target, &id))
			vcpu_add(ids, id);
	}
	return files != NULL;
}

/* A process of which the first thread has ended shows its files below the others. */
static void threads_read(const char *folder, struct kvm_process *found, GArray *ids)
{
	g_autofree char *tasks = g_build_filename(folder, "task", NULL);
	g_autoptr(GDir) threads = g_dir_open(tasks, 0, NULL);
	const char *name;
	unsigned n_files = 0;

	while (threads && n_files == 0 && (name = g_dir_read_name(threads))) {
		g_autofree char *files = g_build_filename(tasks, name, "fd", NULL);

		files_read(files, found, ids, &n_files);
	}
}

static int compare_ids(const void *one, const void *other)
{
	const unsigned *left = one, *right = other;

	return (*left > *right) - (*left < *right);
}

enum kvm_process_state kvm_process_read(const char *proc, pid_t pid, struct kvm_process *out)
{
	g_autofree char *folder = g_strdup_printf("%s/%d", proc, (int)pid);
	g_autofree char *files = g_build_filename(folder, "fd", NULL);
	g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(unsigned));
	struct kvm_process found = {.pid = pid};
	unsigned n_files;

	if (!files_read(files, &found, ids, &n_files))
		return access(folder, F_OK) == 0 ? KVM_PROCESS_DENIED : KVM_PROCESS_GONE;
	if (n_files == 0)
		threads_read(folder, &found, ids);
	if (ids->len == 0)
		return KVM_PROCESS_NONE;
	g_array_sort(ids, compare_ids);
	found.n_vcpus = ids->len;
	memcpy(found.vcpu_ids, ids->data, MIN(ids->len, KVM_PROCESS_VCPUS_MAX) * sizeof(unsigned));
	*out = found;
	return KVM_PROCESS_VMM;
}

static int compare_pids(const void *one, const void *other)
{
	const struct kvm_process *left = one, *right = other;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

GArray *kvm_process_list(const char *proc, unsigned *denied)
{
	g_autoptr(GDir) processes = g_dir_open(proc, 0, NULL);
	GArray *list = g_array_new(FALSE, FALSE, sizeof(struct kvm_process));
	unsigned n_denied = 0;
	const char *name;
	unsigned long pid;

	while (processes && (name = g_dir_read_name(processes))) {
		struct kvm_process found;

		if (!number_parse(name, PIDS_MAX, &pid))
			continue;
		switch (kvm_process_read(proc, (pid_t)pid, &found)) {
		case KVM_PROCESS_VMM:
			g_array_append_val(list, found);
			break;
		case KVM_PROCESS_DENIED:
			n_denied++;
			break;
		case KVM_PROCESS_NONE:
		case KVM_PROCESS_GONE:
			break;
		}
	}
	g_array_sort(list, compare_pids);
	if (denied)
		*denied = n_denied;
	return list;
}
