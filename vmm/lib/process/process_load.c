// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/process_load.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * "PID (NAME) STATE PPID ...": proc_pid_stat(5). The name may have blanks and brackets, so fields count from its end:
 * 14 utime, 15 stime, 22 starttime.
 */
static bool stat_parse(const char *text, struct process_load *load)
{
	const char *fields = strrchr(text, ')');
	uint64_t user, system;

	if (!fields || sscanf(fields + 1,
	                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
	                      " %*d %*d %*d %*d %*d %*d %" SCNu64,
	                      &user, &system, &load->start_ticks) != 3)
		return false;
	load->cpu_ticks = user + system;
	return true;
}

/* One machine's number of exits, which KVM adds up over its vCPUs when the file is read. */
static void exits_add(const char *kvm, const char *machine, struct process_load *load)
{
	g_autofree char *path = g_build_filename(kvm, machine, "exits", NULL);
	g_autofree char *text = NULL;
	uint64_t exits;

	if (!g_file_get_contents(path, &text, NULL, NULL) || sscanf(text, "%" SCNu64, &exits) != 1)
		return;
	load->exits += exits;
	load->exits_known = true;
}

/* Named after the thread that made the machine, and its descriptor: "4711-8" (kvm_create_vm_debugfs). */
static bool is_machine_of(const char *proc, pid_t pid, const char *machine)
{
	const int digits = (int)strspn(machine, "0123456789");
	g_autofree char *thread = g_strdup_printf("%s/%d/task/%.*s", proc, (int)pid, digits, machine);

	return digits > 0 && machine[digits] == '-' && g_file_test(thread, G_FILE_TEST_IS_DIR);
}

struct process_load process_load_read(const char *proc, const char *kvm, pid_t pid)
{
	g_autofree char *path = g_strdup_printf("%s/%d/stat", proc, (int)pid);
	g_autofree char *text = NULL;
	g_autoptr(GDir) machines = kvm ? g_dir_open(kvm, 0, NULL) : NULL;
	struct process_load load = {.start_ticks = 0};
	const char *name;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !stat_parse(text, &load))
		return (struct process_load){.start_ticks = 0};
	while (machines && (name = g_dir_read_name(machines)))
		if (is_machine_of(proc, pid, name))
			exits_add(kvm, name, &load);
	return load;
}

struct process_rate process_load_rate(const struct process_load *from, const struct process_load *to, double seconds,
                                      double ticks_s)
{
	struct process_rate rate = PROCESS_RATE_UNKNOWN;

	if (to->start_ticks == 0 || from->start_ticks != to->start_ticks || seconds <= 0)
		return rate;
	if (to->cpu_ticks >= from->cpu_ticks)
		rate.cpus = (double)(to->cpu_ticks - from->cpu_ticks) / ticks_s / seconds;
	/* A machine that has gone takes its exits along. */
	if (from->exits_known && to->exits_known && to->exits >= from->exits)
		rate.exits_s = (double)(to->exits - from->exits) / seconds;
	return rate;
}
