// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a host sends instead of its agent's frames, and what programs of the guest write to the pipe of markers. An
 * odd first byte says that the second half of the rest is for the pipe. Programs are not
 * started: what one is started with is read instead.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"
#include "device.h"
#include "fuzz_target.h"
#include "link.h"
#include "marker.h"
#include "processes.h"
#include "program.h"
#include "reader.h"

#define REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())

static volatile size_t sink; /* so that what is taken is read */

/* ---- in place of program.c, processes.c and reader.c, and of the one pipe that a machine has ---- */

bool __wrap_marker_pipe_open(struct marker_pipe *pipe); // NOLINT: the linker's name for it

bool __wrap_marker_pipe_open(struct marker_pipe *pipe)
{
	*pipe = (struct marker_pipe){.fd = -1};
	return true;
}

static void strings_read(char **strings)
{
	for (; *strings; strings++)
		sink += strlen(*strings);
}

int program_start(struct program *program, const struct program_order *order, const char **what)
{
	REQUIRE(program->state == PROGRAM_NONE && order->arguments[0]);
	sink += strlen(order->path) + strlen(order->folder);
	strings_read(order->arguments);
	strings_read(order->variables);
	*what = "start it";
	if (order->run % 2)
		return ENOENT;
	memset(program, 0, sizeof(*program));
	program->state = PROGRAM_RUNNING;
	program->run = order->run;
	program->input = STDIN_FILENO;
	program->pid = program->output[0] = program->output[1] = -1;
	return 0;
}

bool program_input(struct program *program, const uint8_t *bytes, size_t n)
{
	if (n > sizeof(program->waiting) - program->waiting_n)
		return false;
	memcpy(program->waiting + program->waiting_n, bytes, n);
	program->waiting_n += n;
	return true;
}

void program_input_end(struct program *program)
{
	program->input_ends = true;
}

size_t program_feed(struct program *program)
{
	size_t n = program->waiting_n;

	program->waiting_n = 0;
	return n;
}

void program_signal(const struct program *program, int number)
{
	(void)program;
	REQUIRE(number > 0 && number < NSIG);
}

void program_check_time(struct program *program, uint64_t now_ns)
{
	(void)now_ns;
	program->input = -1; /* nothing here is a pipe */
}

void program_ended(struct program *program, int wait_status, const struct rusage *usage, uint64_t now_ns)
{
	(void)usage;
	program->wait_status = wait_status;
	program->ended_ns = now_ns;
	program->state = PROGRAM_ENDED;
}

void program_close(struct program *program)
{
	program->state = PROGRAM_NONE;
}

void processes_begin(struct processes *processes, uint32_t pid)
{
	processes->walking = true;
	processes->pid = pid;
}

void processes_send(struct processes *processes, struct link *link)
{
	if (processes->walking && link_room(link, LINK_RESERVE_BYTES, 1) != 0)
		processes->walking = !link_send(link, VPROF_AGENT_MAPPINGS_END, NULL, 0, NULL, 0);
}

void processes_end(struct processes *processes)
{
	processes->walking = false;
}

int reader_start(struct reader *reader, const struct vprof_agent_read *order)
{
	reader->number = order->number;
	return order->what == VPROF_AGENT_READ_PERF_MAP ? 0 : EINVAL;
}

int reader_ended(struct reader *reader, int wait_status)
{
	(void)reader;
	return wait_status;
}

void reader_stop(struct reader *reader)
{
	reader->pid = 0;
}

void device_drain(int fd)
{
	(void)fd;
}

/* ---- the two sources ---- */

static void marks_check(const uint8_t *bytes, size_t n)
{
	struct marker_pipe marks = {.fd = memfd_create("marks", MFD_CLOEXEC)};
	enum marker_line line;
	struct marker marker;

	REQUIRE(marks.fd >= 0 && pwrite(marks.fd, bytes, n, 0) == (ssize_t)n);
	while ((line = marker_pipe_next(&marks, 1, &marker)) != MARKER_NONE) {
		if (line != MARKER_READ)
			continue;
		REQUIRE(marker.mark.kind == VPROF_AGENT_MARK_BEGIN || marker.mark.kind == VPROF_AGENT_MARK_END);
		REQUIRE(strlen(marker.name) > 0 && strlen(marker.name) <= VPROF_AGENT_NAME_BYTES_MAX);
	}
	close(marks.fd);
}

/* What does not fit into the socket's buffer is left out. */
static void talk(const uint8_t *bytes, size_t n)
{
	int ends[2], room = 1 << 20;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	sink += (size_t)send(ends[0], bytes, n, MSG_NOSIGNAL);
	shutdown(ends[0], SHUT_WR);
	agent_talk(ends[1], n % 2);
	close(ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t marks = size > 1 && data[0] % 2 ? (size - 1) / 2 : 0;

	if (size < 2)
		return 0;
	marks_check(data + size - marks, marks);
	talk(data + 1, size - 1 - marks);
	return 0;
}
