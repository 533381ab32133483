// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/vmm_name.h"

#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 65536u /* bytes of a command line that are looked at */

static char *name_copy(const char *text, size_t bytes)
{
	return bytes > 0 ? g_strndup(text, MIN(bytes, VMM_NAME_MAX)) : NULL;
}

/* ---- what the value of an option names ---- */

static char *name_whole(const char *value)
{
	return name_copy(value, strlen(value));
}

/* QEMU's "NAME,debug-threads=on" or "debug-threads=on,guest=NAME", with ",," for a comma (util/keyval.c). */
static char *name_of_qemu(const char *value)
{
	g_autoptr(GString) part = g_string_new(NULL);

	for (bool first = true;; first = false) {
		g_string_truncate(part, 0);
		for (; *value && (value[0] != ',' || value[1] == ','); value++) {
			value += value[0] == ',';
			g_string_append_c(part, *value);
		}
		if (g_str_has_prefix(part->str, "guest="))
			return name_whole(part->str + strlen("guest="));
		if (first && !strchr(part->str, '='))
			return name_whole(part->str);
		if (!*value)
			return NULL;
		value++;
	}
}

/* "/run/NAME.sock" or "path=/run/NAME.sock,..."; a descriptor ("fd=7") names nothing. */
static char *name_of_socket(const char *value)
{
	const char *path = g_str_has_prefix(value, "path=") ? value + strlen("path=") : value;
	g_autofree char *file = NULL, *name = NULL;
	char *dot;

	if (g_str_has_prefix(value, "fd="))
		return NULL;
	file = g_strndup(path, strcspn(path, ","));
	name = g_path_get_basename(file);
	dot = strrchr(name, '.');
	return name_copy(name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

/* ---- the monitors ---- */

struct monitor_row {
	const char *vmm;
	const char *programs[3]; /* what the names of their files begin with */
	const char *options[2];  /* that name the guest; none: the last argument does */
	char *(*name)(const char *value);
};

/* The options are those of each program's manual; gVisor's runsc starts itself as "runsc-sandbox ... boot ... ID". */
static const struct monitor_row monitors[] = {
	{"QEMU", {"qemu-system", "qemu-kvm", "kvm"}, {"-name", "--name"}, name_of_qemu},
	{"Firecracker", {"firecracker"}, {"--id"}, name_whole},
	{"Cloud Hypervisor", {"cloud-hypervisor"}, {"--api-socket", "--api-sock"}, name_of_socket},
	{"crosvm", {"crosvm"}, {"-s", "--socket"}, name_of_socket},
	{"kvmtool", {"lkvm", "lkvm-static"}, {"--name"}, name_whole},
	{"gVisor", {"runsc"}, {NULL}, name_whole},
	{"VirtualBox", {"VBoxHeadless", "VirtualBoxVM"}, {"--comment", "--startvm"}, name_whole},
	{"vprof", {"vprof-vmm"}, {"--name"}, name_whole},
};

/* "firecracker-v1.16.1-x86_64" and "runsc-sandbox" are known, "kvmd" is not. */
static bool program_is(const char *file, const char *program)
{
	return g_str_has_prefix(file, program) && !g_ascii_isalnum(file[strlen(program)]);
}

static const struct monitor_row *monitor_find(const char *file)
{
	for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++)
		for (size_t j = 0; j < G_N_ELEMENTS(monitors[i].programs) && monitors[i].programs[j]; j++)
			if (program_is(file, monitors[i].programs[j]))
				return &monitors[i];
	return NULL;
}

/* ---- command lines ---- */

/* The value of an option, from its argument on: "--id=NAME", or "--id" and "NAME" after it. NULL: another argument. */
static const char *option_value(char **arguments, const char *option)
{
	const size_t n = strlen(option);

	if (strncmp(arguments[0], option, n) != 0)
		return NULL;
	if (arguments[0][n] == '=')
		return arguments[0] + n + 1;
	return arguments[0][n] == '\0' ? arguments[1] : NULL;
}

static const char *value_of(char **arguments, const char *option)
{
	const char *value = NULL;

	for (; option && *arguments && !value; arguments++)
		value = option_value(arguments, option);
	return value;
}

static char *guest_name(const struct monitor_row *monitor, char **arguments)
{
	const guint n = g_strv_length(arguments);

	if (!monitor->options[0])
		return n > 1 ? monitor->name(arguments[n - 1]) : NULL;
	for (size_t i = 0; i < G_N_ELEMENTS(monitor->options); i++) {
		const char *value = value_of(arguments, monitor->options[i]);

		if (value)
			return monitor->name(value);
	}
	return NULL;
}

/* The arguments as a NULL-terminated array. */
static char **arguments_split(const char *text, size_t bytes)
{
	GPtrArray *list = g_ptr_array_new();

	for (size_t at = 0; at < bytes; at += strnlen(text + at, bytes - at) + 1)
		g_ptr_array_add(list, g_strndup(text + at, strnlen(text + at, bytes - at)));
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_free(list, FALSE);
}

/* "/usr/bin/lkvm (deleted)": "lkvm". The path that the kernel shows has that mark when the file is gone. */
static char *file_name(const char *program)
{
	static const char mark[] = " (deleted)";
	char *name = g_path_get_basename(program);

	if (g_str_has_suffix(name, mark) && !g_str_equal(name, mark))
		name[strlen(name) - strlen(mark)] = '\0';
	return name;
}

struct vmm_name vmm_name_parse(const char *program, const char *arguments, size_t bytes)
{
	g_auto(GStrv) list = arguments_split(arguments, bytes);
	g_autofree char *file = program ? file_name(program) : NULL, *self = list[0] ? file_name(list[0]) : NULL;
	const struct monitor_row *monitor = file ? monitor_find(file) : NULL;
	const char *other = file ? file : self;
	struct vmm_name name = {.vmm = NULL};

	/* A program that runs from memory, as Firecracker's snapshots and gVisor may, is known by its first argument.
	 */
	if (!monitor && self)
		monitor = monitor_find(self);
	if (!monitor) {
		name.vmm = name_whole(other ? other : "?");
		return name;
	}
	name.vmm = g_strdup(monitor->vmm);
	name.guest = guest_name(monitor, list);
	name.uuid = g_strdup(value_of(list, "-uuid"));
	return name;
}

/* ---- processes ---- */

/* The first bytes of a file of /proc; returns how many, 0 without. */
static size_t file_read(const char *path, char *bytes, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return 0;
	while (n < max && (got = read(fd, bytes + n, max - n)) > 0)
		n += (size_t)got;
	close(fd);
	return n;
}

struct vmm_name vmm_name_read(const char *proc, pid_t pid)
{
	g_autofree char *program_path = g_strdup_printf("%s/%d/exe", proc, (int)pid);
	g_autofree char *arguments_path = g_strdup_printf("%s/%d/cmdline", proc, (int)pid);
	g_autofree char *program = g_file_read_link(program_path, NULL);
	g_autofree char *arguments = g_malloc(ARGUMENTS_MAX);

	return vmm_name_parse(program, arguments, file_read(arguments_path, arguments, ARGUMENTS_MAX));
}

void vmm_name_clear(struct vmm_name *name)
{
	g_clear_pointer(&name->vmm, g_free);
	g_clear_pointer(&name->guest, g_free);
	g_clear_pointer(&name->uuid, g_free);
}
