// SPDX-License-Identifier: BSD-2-Clause
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"

#define GRACE_NS UINT64_C(5000000000) /* between SIGTERM and SIGKILL after the time limit */
#define PIPES 3

/* In the child, which calls only functions that are safe after fork. */
struct child {
	const struct program_order *order;
	char **environment;
	int ends[PIPES]; /* its own ends of the pipes */
	int report;      /* closed by a successful execve(2); otherwise it gives an errno and the step */
};

enum child_step { STEP_FOLDER, STEP_EXECUTE };
static const char *const step_names[] = {"change to its working directory", "execute it"};

struct child_report {
	int error;
	enum child_step step;
};

static void child_fail(const struct child *child, enum child_step step)
{
	const struct child_report report = {errno, step};

	/* There is no way to report that this fails. */
	if (write(child->report, &report, sizeof(report)) != sizeof(report))
		_exit(126);
	_exit(127);
}

static void child_run(const struct child *child)
{
	sigset_t none;

	/* Its output has no reader once the agent is gone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < PIPES; i++)
		dup2(child->ends[i], i);
	if (chdir(child->order->folder) != 0)
		child_fail(child, STEP_FOLDER);
	environ = child->environment;
	/* A name without a slash is searched for in PATH. */
	if (!strchr(child->order->path, '/'))
		execvp(child->order->path, child->order->arguments);
	else
		execve(child->order->path, child->order->arguments, child->environment);
	child_fail(child, STEP_EXECUTE);
}

static size_t list_length(char **list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* The slot of the variable that `text` sets, or the first free one. */
static size_t variable_slot(char **list, const char *text)
{
	size_t name_bytes = strcspn(text, "=") + 1, i;

	for (i = 0; list[i]; i++)
		if (strncmp(list[i], text, name_bytes) == 0)
			break;
	return i;
}

/* The strings are not copied. */
static char **environment_new(char **more)
{
	char **list = calloc(list_length(environ) + list_length(more) + 1, sizeof(*list));

	for (size_t i = 0; list && environ[i]; i++)
		list[variable_slot(list, environ[i])] = environ[i];
	for (size_t i = 0; list && more[i]; i++)
		list[variable_slot(list, more[i])] = more[i];
	return list;
}

static void fds_close(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Pipe i has ours[i] and theirs[i]; the program reads from the first and writes to the others. */
static bool pipes_open(int *ours, int *theirs)
{
	for (size_t i = 0; i < PIPES; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) != 0)
			return false;
		ours[i] = ends[i == 0 ? 1 : 0];
		theirs[i] = ends[i == 0 ? 0 : 1];
		fcntl(ours[i], F_SETFL, O_NONBLOCK);
	}
	return true;
}

/* Returns the pid, once the program is executing; or -1 with errno and *what. */
static pid_t child_start(struct child *child, const char **what)
{
	struct child_report report = {0};
	int ends[2];
	pid_t pid;

	*what = "make a process";
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	child->report = ends[1];
	pid = fork();
	if (pid == 0)
		child_run(child);
	close(ends[1]);
	if (pid > 0 && read(ends[0], &report, sizeof(report)) == sizeof(report)) {
		/* When this pid is reaped, no program has it. */
		*what = step_names[report.step];
		errno = report.error;
		pid = -1;
	}
	close(ends[0]);
	return pid;
}

static void program_begin(struct program *program, const struct program_order *order, pid_t pid, const int *ours)
{
	memset(program, 0, sizeof(*program));
	program->state = PROGRAM_RUNNING;
	program->run = order->run;
	program->pid = pid;
	program->input = ours[0];
	program->output[0] = ours[1];
	program->output[1] = ours[2];
	setpgid(pid, pid); /* so that a signal finds the group even before the child has set it */
	if (order->time_limit_ms != 0)
		program->deadline_ns = clock_ns() + order->time_limit_ms * UINT64_C(1000000);
}

int program_start(struct program *program, const struct program_order *order, const char **what)
{
	int ours[PIPES] = {-1, -1, -1};
	struct child child = {.order = order, .ends = {-1, -1, -1}, .environment = environment_new(order->variables)};
	int error = 0;
	pid_t pid = -1;

	*what = "make its pipes";
	if (child.environment && pipes_open(ours, child.ends))
		pid = child_start(&child, what);
	if (pid < 0) {
		error = errno;
		fds_close(ours, PIPES);
	} else {
		program_begin(program, order, pid, ours);
	}
	fds_close(child.ends, PIPES);
	free(child.environment);
	return error;
}

bool program_input(struct program *program, const uint8_t *bytes, size_t n)
{
	if (n > sizeof(program->waiting) - program->waiting_n)
		return false;
	memmove(program->waiting, program->waiting + program->waiting_at, program->waiting_n);
	program->waiting_at = 0;
	memcpy(program->waiting + program->waiting_n, bytes, n);
	program->waiting_n += n;
	return true;
}

void program_input_end(struct program *program)
{
	program->input_ends = true;
}

static void input_close(struct program *program)
{
	fds_close(&program->input, 1);
	program->waiting_n = 0;
}

size_t program_feed(struct program *program)
{
	ssize_t n = 0;

	if (program->input < 0)
		return 0;
	if (program->waiting_n != 0)
		n = write(program->input, program->waiting + program->waiting_at, program->waiting_n);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/* The program reads no more; input from the host is discarded. */
		n = (ssize_t)program->waiting_n;
		input_close(program);
		return (size_t)n;
	}
	if (n > 0) {
		program->waiting_at += (size_t)n;
		program->waiting_n -= (size_t)n;
	}
	if (program->waiting_n == 0 && program->input_ends)
		input_close(program);
	return n > 0 ? (size_t)n : 0;
}

void program_signal(const struct program *program, int number)
{
	if (program->state == PROGRAM_RUNNING)
		kill(-program->pid, number);
}

void program_check_time(struct program *program, uint64_t now_ns)
{
	if (program->state != PROGRAM_RUNNING || program->deadline_ns == 0 || now_ns < program->deadline_ns)
		return;
	program_signal(program, program->time_over ? SIGKILL : SIGTERM);
	program->time_over = true;
	program->deadline_ns = now_ns + GRACE_NS;
}

/* The capacity of a pipe in bytes; 0 when the program has closed it. */
static size_t pipe_bytes(int fd)
{
	int bytes = fd >= 0 ? fcntl(fd, F_GETPIPE_SZ) : 0;

	return bytes > 0 ? (size_t)bytes : 0;
}

void program_ended(struct program *program, int wait_status, const struct rusage *usage, uint64_t now_ns)
{
	kill(-program->pid, SIGKILL);
	program->state = PROGRAM_ENDED;
	program->wait_status = wait_status;
	program->usage = *usage;
	program->ended_ns = now_ns;
	for (size_t i = 0; i < 2; i++)
		program->last_bytes[i] = pipe_bytes(program->output[i]);
	input_close(program);
}

void program_close(struct program *program)
{
	input_close(program);
	fds_close(program->output, 2);
	program->state = PROGRAM_NONE;
}
