// SPDX-License-Identifier: BSD-2-Clause
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES (PATH_MAX + 64u)  /* below /proc/PID/root */
#define LINE_BYTES (PATH_MAX + 128u) /* a path and the numbers before it */
#define PIECE_BYTES 65536u
#define DESCRIPTORS_MAX 64 /* the agent has fewer */
#define READ_SECONDS 30u
/* A file takes at most this part of the guest's memory, so that it does not push out what is used. */
#define MEMORY_PART 4u

/* ---- in the process ---- */

static bool is_dump(const char *path, uint32_t pid)
{
	const char *name = strrchr(path, '/');
	char expected[sizeof("/jit-4294967295.dump")];

	snprintf(expected, sizeof(expected), "/jit-%" PRIu32 ".dump", pid);
	return name && strcmp(name, expected) == 0;
}

/* proc_pid_maps(5): "START-END PERMISSIONS OFFSET DEVICE INODE PATH". */
static bool is_ordered(const struct vprof_agent_read *order, char *line, const char **path)
{
	uint64_t start, end;
	char permissions[5] = "";
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &start, &end, permissions, &at) != 3 ||
	    at == 0 || permissions[2] != 'x' || line[at] != '/')
		return false;
	*path = line + at;
	if (order->what == VPROF_AGENT_READ_JIT_DUMP)
		return is_dump(*path, order->pid);
	return order->address >= start && order->address < end;
}

/* Below the root that the process has. */
static int path_open(uint32_t pid, const char *path)
{
	char below[PATH_BYTES];

	snprintf(below, sizeof(below), "/proc/%" PRIu32 "/root%s", pid, path);
	/* What is there now may be a FIFO. */
	return open(below, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
}

static int mapped_open(const struct vprof_agent_read *order)
{
	char name[64], line[LINE_BYTES];
	const char *path;
	int fd = -1;

	snprintf(name, sizeof(name), "/proc/%" PRIu32 "/maps", order->pid);
	FILE *maps = fopen(name, "re");

	if (!maps)
		return -1;
	errno = ENOENT;
	while (fd < 0 && fgets(line, sizeof(line), maps))
		if (is_ordered(order, line, &path))
			fd = path_open(order->pid, path);
	return fd; /* the process ends soon */
}

static int map_open(uint32_t pid)
{
	char process[64], path[64];

	snprintf(process, sizeof(process), "/proc/%" PRIu32, pid);
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", pid);
	/* A service may have a /tmp of its own: of a process that has ended, that of process 1 is used. */
	return path_open(access(process, F_OK) == 0 ? pid : 1, path);
}

static int ordered_open(const struct vprof_agent_read *order)
{
	switch (order->what) {
	case VPROF_AGENT_READ_MAPPING:
	case VPROF_AGENT_READ_JIT_DUMP:
		return mapped_open(order);
	case VPROF_AGENT_READ_PERF_MAP:
		return map_open(order->pid);
	default:
		errno = EINVAL;
		return -1;
	}
}

/* The agent's: a pipe that is open here, too, would have no end. */
static void descriptors_close(void)
{
	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++)
		close(fd);
}

/* Returns 0 or an errno. The file may grow meanwhile. */
static int file_read(int fd)
{
	static uint8_t piece[PIECE_BYTES];
	struct sysinfo system;
	struct stat status;
	ssize_t n = 0;

	if (fstat(fd, &status) != 0 || sysinfo(&system) != 0)
		return errno;
	if (!S_ISREG(status.st_mode))
		return EINVAL;
	if ((uint64_t)status.st_size > (uint64_t)system.totalram * system.mem_unit / MEMORY_PART)
		return EFBIG;
	for (off_t at = 0; at < status.st_size; at += n)
		if ((n = pread(fd, piece, sizeof(piece), at)) <= 0)
			return n < 0 ? errno : EIO;
	return 0;
}

/* ---- in the agent ---- */

int reader_start(struct reader *reader, const struct vprof_agent_read *order)
{
	if (reader->pid != 0)
		return EBUSY;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		alarm(READ_SECONDS);
		descriptors_close();
		int fd = ordered_open(order);

		_exit(fd < 0 ? errno : file_read(fd));
	}
	*reader = (struct reader){.pid = pid, .number = order->number};
	return 0;
}

int reader_ended(struct reader *reader, int wait_status)
{
	*reader = (struct reader){0};
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : ETIMEDOUT;
}

void reader_stop(struct reader *reader)
{
	if (reader->pid != 0)
		kill(reader->pid, SIGKILL);
	*reader = (struct reader){0};
}
