// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probe.h"

#include <pwd.h>
#include <sys/stat.h>

static json_t *kernel_json(const struct qemu_guest *qemu)
{
	return json_pack("{s:b, s:s*, s:s*, s:s*}", "known", qemu->kernel.image != NULL, "release", qemu->guest.release,
	                 "build-id", qemu->guest.build_id, "why", qemu->guest.kernel_why);
}

static json_t *part_json(bool usable, const char *why)
{
	return json_pack("{s:b, s:s*}", "usable", usable, "why", usable ? NULL : why);
}

char *probe_user(const struct qemu_guest *qemu)
{
	g_autofree char *path = g_strdup_printf("/proc/%d", (int)qemu->pid);
	struct stat status;

	if (stat(path, &status) != 0)
		return g_strdup("?");
	const struct passwd *user = getpwuid(status.st_uid);

	return user ? g_strdup(user->pw_name) : g_strdup_printf("%u", (unsigned)status.st_uid);
}

json_t *probe_json(const struct qemu_guest *qemu, const char *user, json_t *routes)
{
	return json_pack("{s:s, s:i, s:s, s:s*, s:i, s:I, s:o, s:o, s:o, s:o}", "name", qemu->guest.name, "pid",
	                 (int)qemu->pid, "user", user, "accelerator", qemu->accelerator, "vcpus",
	                 (int)qemu->guest.vcpus, "memory-bytes", (json_int_t)qemu->guest.memory_bytes, "monitor",
	                 part_json(qemu->monitor, qemu->monitor_why), "memory",
	                 part_json(qemu->memory, qemu->memory_why), "kernel", kernel_json(qemu), "routes", routes);
}

void probe_describe(struct qemu_guest *qemu, FILE *stream)
{
	fprintf(stream, "vprof-attach: %s is process %d, with %u vCPUs by %s\n", qemu->guest.name, (int)qemu->pid,
	        qemu->guest.vcpus, qemu->accelerator ? qemu->accelerator : "an unknown accelerator");
	if (qemu->memory_why)
		fprintf(stream, "vprof-attach: its memory: %s\n", qemu->memory_why);
	if (qemu->kernel.image)
		fprintf(stream, "vprof-attach: it runs %s, build-id %s\n",
		        qemu->guest.release ? qemu->guest.release : "a kernel", qemu->guest.build_id);
	else
		fprintf(stream, "vprof-attach: its kernel: %s\n", qemu->guest.kernel_why);
}
