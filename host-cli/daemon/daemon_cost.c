// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon_cost.h"

#include <glib.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/process/process_load.h"

/* The second number of /proc/PID/statm, in pages (proc(5)). */
static uint64_t resident_bytes(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/statm", (int)pid);
	g_autofree char *text = NULL;
	unsigned long long resident = 0;

	if (g_file_get_contents(path, &text, NULL, NULL) && sscanf(text, "%*u %llu", &resident) == 1)
		return resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

json_t *daemon_cost(pid_t pid)
{
	const struct process_load load = process_load_read(PROCESS_LOAD_PROC, NULL, pid);
	const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

	return json_pack("{s:i, s:I, s:I}", "pid", (int)pid, "cpu-ns", (json_int_t)(load.cpu_ticks * tick_ns),
	                 "resident-bytes", (json_int_t)resident_bytes(pid));
}
