// SPDX-License-Identifier: BSD-2-Clause
#include "processes.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC_PATH_BYTES 64u
#define LINE_BYTES (PATH_MAX + 128u) /* a path and the numbers before it */
#define COMM_BYTES 64u               /* 16 of a task, up to 64 of a kernel worker */

_Static_assert(sizeof(struct vprof_agent_frame) + sizeof(struct vprof_agent_mapping) + LINE_BYTES <= LINK_RESERVE_BYTES,
               "one step of the walk finds room in what output leaves");

static void process_close(struct processes *processes)
{
	if (processes->tasks)
		closedir(processes->tasks);
	if (processes->maps)
		fclose(processes->maps);
	processes->tasks = NULL;
	processes->maps = NULL;
}

/* A process that has ended meanwhile has no folder any more, and is left out. */
static void process_open(struct processes *processes, uint32_t pid)
{
	char path[PROC_PATH_BYTES];

	process_close(processes);
	processes->pid = pid;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	processes->tasks = opendir(path);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	processes->maps = fopen(path, "re");
}

/* The next entry of a folder that is a number. */
static bool number_next(DIR *folder, uint32_t *number)
{
	const struct dirent *entry;

	while ((entry = readdir(folder)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		*number = (uint32_t)strtoul(entry->d_name, NULL, 10);
		return true;
	}
	return false;
}

static void task_send(const struct processes *processes, uint32_t tid, struct link *link)
{
	const struct vprof_agent_task task = {.pid = processes->pid, .tid = tid};
	char path[PROC_PATH_BYTES], comm[COMM_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", processes->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, comm, sizeof(comm));
	close(fd);
	if (n > 0)
		link_send(link, VPROF_AGENT_TASK, &task, sizeof(task), comm, (size_t)n - (comm[n - 1] == '\n'));
}

/* proc_pid_maps(5): "START-END PERMISSIONS OFFSET DEVICE INODE PATH". Only code in files is reported. */
static void mapping_send(const struct processes *processes, char *line, struct link *link)
{
	struct vprof_agent_mapping mapping = {.pid = processes->pid};
	char permissions[5] = "";
	uint64_t end;
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.start, &end, permissions,
	           &mapping.offset, &path) != 4 ||
	    path == 0 || permissions[2] != 'x' || line[path] == '\0' || end <= mapping.start)
		return;
	mapping.bytes = end - mapping.start;
	link_send(link, VPROF_AGENT_MAPPING, &mapping, sizeof(mapping), line + path, strlen(line + path));
}

void processes_begin(struct processes *processes, uint32_t pid)
{
	processes_end(processes);
	processes->walking = true;
	if (pid == 0)
		processes->folder = opendir("/proc");
	else
		process_open(processes, pid);
}

void processes_end(struct processes *processes)
{
	process_close(processes);
	if (processes->folder)
		closedir(processes->folder);
	*processes = (struct processes){0};
}

/* Reports one task or one mapping, or opens the next process; false at the end. */
static bool processes_step(struct processes *processes, struct link *link)
{
	char line[LINE_BYTES];
	uint32_t number;

	if (processes->tasks && number_next(processes->tasks, &number)) {
		task_send(processes, number, link);
		return true;
	}
	if (processes->maps && fgets(line, sizeof(line), processes->maps)) {
		mapping_send(processes, line, link);
		return true;
	}
	process_close(processes);
	if (!processes->folder || !number_next(processes->folder, &number))
		return false;
	process_open(processes, number);
	return true;
}

void processes_send(struct processes *processes, struct link *link)
{
	/* Uses at most half of the reserve: output and other frames continue meanwhile. */
	while (processes->walking && link_room(link, LINK_RESERVE_BYTES / 2, LINE_BYTES) == LINE_BYTES) {
		if (processes_step(processes, link))
			continue;
		processes_end(processes);
		link_send(link, VPROF_AGENT_MAPPINGS_END, NULL, 0, NULL, 0);
	}
}
