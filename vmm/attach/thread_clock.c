// SPDX-License-Identifier: BSD-2-Clause
#include "attach/thread_clock.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Fields of /proc/PID/stat, as proc(5) numbers them; behind the name comes the third. */
enum { FIELD_AFTER_NAME = 3, FIELD_UTIME = 14, FIELD_GUEST_TIME = 43 };

/* The name in front is in parentheses, and may have spaces and parentheses of its own. */
static bool stat_fields(const char *stat, uint64_t *utime, uint64_t *guest_time)
{
	const char *name_end = strrchr(stat, ')');
	g_auto(GStrv) fields = name_end && name_end[1] == ' ' ? g_strsplit(name_end + 2, " ", 0) : NULL;

	if (!fields || g_strv_length(fields) <= FIELD_GUEST_TIME - FIELD_AFTER_NAME)
		return false;
	*utime = g_ascii_strtoull(fields[FIELD_UTIME - FIELD_AFTER_NAME], NULL, 10);
	*guest_time = g_ascii_strtoull(fields[FIELD_GUEST_TIME - FIELD_AFTER_NAME], NULL, 10);
	return true;
}

bool thread_clock_parse(const char *schedstat, const char *stat, uint64_t ticks_hz, struct thread_clock *clock)
{
	struct thread_clock found;
	uint64_t user, guest;

	/* "time on a CPU, run delay, timeslices" in ns (Documentation/scheduler/sched-stats.rst). */
	if (sscanf(schedstat, "%" SCNu64 " %" SCNu64, &found.cpu_ns, &found.runnable_ns) != 2 ||
	    !stat_fields(stat, &user, &guest))
		return false;
	found.user_ns = user * (UINT64_C(1000000000) / ticks_hz);
	found.guest_ns = guest * (UINT64_C(1000000000) / ticks_hz);
	*clock = found;
	return true;
}

static char *thread_file(pid_t pid, pid_t thread, const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/%s", (int)pid, (int)thread, name);
	char *text = NULL;

	g_file_get_contents(path, &text, NULL, NULL);
	return text;
}

bool thread_clock_read(pid_t pid, pid_t thread, struct thread_clock *clock)
{
	g_autofree char *schedstat = thread_file(pid, thread, "schedstat");
	g_autofree char *stat = thread_file(pid, thread, "stat");

	return schedstat && stat && thread_clock_parse(schedstat, stat, (uint64_t)sysconf(_SC_CLK_TCK), clock);
}
