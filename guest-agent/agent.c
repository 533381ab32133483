// SPDX-License-Identifier: BSD-2-Clause
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "link.h"
#include "marker.h"
#include "processes.h"
#include "program.h"
#include "reader.h"

#define OUTPUT_CHUNK_BYTES 4096u
#define OUTPUT_CHUNK_BYTES_MIN 512u /* no frame is sent for less room */
#define MARKS_AT_ONCE 64u
#define MARKS_HELD_MAX (65536u / 6u) /* that the pipe can hold: "end x" and a newline */
#define DRAIN_TIMEOUT_MS 10000
#define STOP_TIMEOUT_MS 1000

struct agent {
	struct link link;
	struct program program;
	struct marker_pipe marks;
	struct processes processes;
	struct reader reader;
	bool is_init;
	bool over;
	enum agent_end end;
	uint64_t n_marks, n_marks_refused, n_skipped;
};

static volatile sig_atomic_t child_ended, stop_asked;

static void on_child(int number)
{
	(void)number;
	child_ended = 1;
}

static void on_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

void agent_signals(bool is_init)
{
	const struct sigaction child = {.sa_handler = on_child}, stop = {.sa_handler = on_stop};
	sigset_t blocked;

	/* Unblocked only while ppoll waits, so that none arrives between the check of a flag and the wait. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	if (!is_init)
		sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGCHLD, &child, NULL);
	if (!is_init)
		sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool agent_pause(unsigned ms)
{
	const struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	sigset_t none;

	sigemptyset(&none);
	if (!stop_asked)
		ppoll(NULL, 0, &timeout, &none);
	return !stop_asked;
}

static void finish(struct agent *agent, enum agent_end end)
{
	agent->over = true;
	agent->end = end;
}

/* An answer without room is dropped: the host requests more than it reads. */
static void say(struct agent *agent, uint16_t type, const void *fixed, size_t fixed_bytes, const char *tail)
{
	if (!link_send(&agent->link, type, fixed, fixed_bytes, tail, tail ? strlen(tail) : 0))
		finish(agent, AGENT_BROKEN);
}

static void say_hello(struct agent *agent)
{
	const struct vprof_agent_hello hello = {
		.magic = VPROF_AGENT_MAGIC,
		.protocol = VPROF_AGENT_PROTOCOL,
		.time_ns = clock_ns(),
		.is_init = agent->is_init,
		.can = VPROF_AGENT_CAN_READ,
	};
	struct utsname name;

	uname(&name);
	say(agent, VPROF_AGENT_HELLO, &hello, sizeof(hello), name.release);
}

static void say_room(struct agent *agent, size_t bytes)
{
	const struct vprof_agent_stdin_room room = {.bytes = (uint32_t)bytes};

	if (bytes != 0)
		say(agent, VPROF_AGENT_STDIN_ROOM, &room, sizeof(room), NULL);
}

static void say_refused(struct agent *agent, uint32_t run, int error, const char *what)
{
	const struct vprof_agent_refused refused = {.run = run, .error = (uint32_t)error};

	say(agent, VPROF_AGENT_REFUSED, &refused, sizeof(refused), what);
}

/* Reads `max` marks at most; false when there may be more, which have no room. */
static bool marks_read(struct agent *agent, unsigned max)
{
	enum marker_line line = MARKER_READ;
	struct marker marker;

	for (unsigned i = 0; i < max && line != MARKER_NONE; i++) {
		if (link_room(&agent->link, LINK_RESERVE_BYTES / 2, sizeof(marker)) < sizeof(marker))
			return false;
		line = marker_pipe_next(&agent->marks, clock_ns(), &marker);
		agent->n_marks_refused += line == MARKER_MALFORMED;
		agent->n_marks += line == MARKER_READ;
		if (line == MARKER_READ)
			say(agent, VPROF_AGENT_MARK, &marker.mark, sizeof(marker.mark), marker.name);
	}
	return true;
}

/* ---- requests of the host ---- */

/* An answer comes behind the marks that were written before the question. */
static void hear_ping(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	struct vprof_agent_ping ping;

	(void)bytes;
	memcpy(&ping, payload, sizeof(ping));
	marks_read(agent, MARKS_HELD_MAX);
	const struct vprof_agent_pong pong = {.cookie = ping.cookie, .time_ns = clock_ns()};

	say(agent, VPROF_AGENT_PONG, &pong, sizeof(pong), NULL);
}

/* Takes a string with its NUL from the front; NULL if there is none. */
static char *string_take(char **at, const char *end)
{
	char *string = *at, *nul = memchr(string, '\0', (size_t)(end - *at));

	if (nul)
		*at = nul + 1;
	return nul ? string : NULL;
}

/* Takes n strings into list, which has room for n + 1, and ends it with NULL. */
static bool strings_take(char **list, size_t n, char **at, const char *end)
{
	for (size_t i = 0; i < n; i++)
		if ((list[i] = string_take(at, end)) == NULL)
			return false;
	list[n] = NULL;
	return true;
}

static void run_order(struct agent *agent, const struct program_order *order)
{
	const char *what = "start it: another program runs";
	int error = EBUSY;

	if (agent->program.state == PROGRAM_NONE)
		error = program_start(&agent->program, order, &what);
	if (error != 0) {
		say_refused(agent, order->run, error, what);
		return;
	}
	const struct vprof_agent_started started = {
		.run = order->run, .pid = (uint32_t)agent->program.pid, .time_ns = clock_ns()};

	say(agent, VPROF_AGENT_STARTED, &started, sizeof(started), NULL);
	say_room(agent, VPROF_AGENT_STDIN_BYTES_MAX);
}

/* The order in a RUN frame, with its strings in `text`, a copy of the payload, and its lists in `lists`. */
static bool order_read(struct program_order *order, const struct vprof_agent_run *run, char **lists, char *text,
                       size_t bytes)
{
	char *at = text + sizeof(*run), *end = text + bytes;

	if (run->arguments == 0 || run->arguments > bytes || run->variables > bytes - run->arguments)
		return false;
	*order = (struct program_order){.run = run->run, .time_limit_ms = run->time_limit_ms};
	order->path = string_take(&at, end);
	order->folder = string_take(&at, end);
	order->arguments = lists;
	order->variables = lists + run->arguments + 1;
	return order->path && order->folder && strings_take(order->arguments, run->arguments, &at, end) &&
	       strings_take(order->variables, run->variables, &at, end);
}

static void hear_run(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	struct program_order order;
	struct vprof_agent_run run;
	/* Each string has at least one byte, so there are no more strings than bytes. */
	char **lists = calloc(bytes + 2, sizeof(*lists)), *text = malloc(bytes);

	memcpy(&run, payload, sizeof(run));
	if (!lists || !text) {
		say_refused(agent, run.run, ENOMEM, "keep its arguments");
	} else {
		memcpy(text, payload, bytes);
		if (order_read(&order, &run, lists, text, bytes))
			run_order(agent, &order);
		else
			finish(agent, AGENT_BROKEN);
	}
	free(lists);
	free(text);
}

static void hear_stdin(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	if (agent->program.state != PROGRAM_RUNNING)
		return;
	if (agent->program.input < 0)
		say_room(agent, bytes);
	else if (!program_input(&agent->program, payload, bytes))
		finish(agent, AGENT_BROKEN);
}

static void hear_stdin_end(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	(void)payload;
	(void)bytes;
	program_input_end(&agent->program);
}

static void hear_signal(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	struct vprof_agent_signal order;

	(void)bytes;
	memcpy(&order, payload, sizeof(order));
	if (order.number > 0 && order.number < NSIG)
		program_signal(&agent->program, (int)order.number);
}

static void hear_mappings(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	struct vprof_agent_mappings order;

	(void)bytes;
	memcpy(&order, payload, sizeof(order));
	processes_begin(&agent->processes, order.pid);
}

static void say_read_done(struct agent *agent, uint32_t number, int error)
{
	const struct vprof_agent_read_done done = {.number = number, .error = (uint32_t)error};

	say(agent, VPROF_AGENT_READ_DONE, &done, sizeof(done), NULL);
}

static void read_ended(struct agent *agent, int wait_status)
{
	const uint32_t number = agent->reader.number;

	say_read_done(agent, number, reader_ended(&agent->reader, wait_status));
}

static void hear_read(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	struct vprof_agent_read order;
	int error;

	(void)bytes;
	memcpy(&order, payload, sizeof(order));
	error = reader_start(&agent->reader, &order);
	if (error != 0)
		say_read_done(agent, order.number, error);
}

static void hear_stat(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	const struct vprof_agent_statistics statistics = {
		.time_ns = clock_ns(),
		.received_bytes = agent->link.received_bytes,
		.sent_bytes = agent->link.sent_bytes,
		.marks = agent->n_marks,
		.marks_refused = agent->n_marks_refused,
		.skipped = agent->n_skipped,
	};

	(void)payload;
	(void)bytes;
	say(agent, VPROF_AGENT_STATISTICS, &statistics, sizeof(statistics), NULL);
}

static void hear_power_off(struct agent *agent, const uint8_t *payload, size_t bytes)
{
	(void)payload;
	(void)bytes;
	if (!agent->is_init)
		return;
	say(agent, VPROF_AGENT_BYE, NULL, 0, NULL);
	link_drain(&agent->link, DRAIN_TIMEOUT_MS);
	device_drain(agent->link.fd);
	finish(agent, AGENT_POWER_OFF);
}

static const struct {
	uint16_t type;
	size_t bytes_min;
	void (*hear)(struct agent *agent, const uint8_t *payload, size_t bytes);
} hears[] = {
	{VPROF_AGENT_PING, sizeof(struct vprof_agent_ping), hear_ping},
	{VPROF_AGENT_RUN, sizeof(struct vprof_agent_run), hear_run},
	{VPROF_AGENT_STDIN, 0, hear_stdin},
	{VPROF_AGENT_STDIN_END, 0, hear_stdin_end},
	{VPROF_AGENT_SIGNAL, sizeof(struct vprof_agent_signal), hear_signal},
	{VPROF_AGENT_MAPPINGS, sizeof(struct vprof_agent_mappings), hear_mappings},
	{VPROF_AGENT_STAT, 0, hear_stat},
	{VPROF_AGENT_POWER_OFF, 0, hear_power_off},
	{VPROF_AGENT_READ, sizeof(struct vprof_agent_read), hear_read},
};

static void hear(struct agent *agent, const struct vprof_agent_frame *frame, const uint8_t *payload)
{
	for (size_t i = 0; i < sizeof(hears) / sizeof(*hears); i++) {
		if (hears[i].type != frame->type)
			continue;
		if (frame->bytes < hears[i].bytes_min)
			finish(agent, AGENT_BROKEN);
		else
			hears[i].hear(agent, payload, frame->bytes);
		return;
	}
	agent->n_skipped++;
}

static void hear_all(struct agent *agent)
{
	struct vprof_agent_frame frame;
	const uint8_t *payload;
	bool broken = false;

	if (!link_receive(&agent->link))
		finish(agent, AGENT_HOST_GONE);
	while (!agent->over && link_next(&agent->link, &frame, &payload, &broken))
		hear(agent, &frame, payload);
	if (broken)
		finish(agent, AGENT_BROKEN);
}

/* ---- events in the guest ---- */

static size_t output_room(const struct agent *agent)
{
	size_t room = link_room(&agent->link, LINK_RESERVE_BYTES, OUTPUT_CHUNK_BYTES);

	return room >= OUTPUT_CHUNK_BYTES_MIN ? room : 0;
}

/* Forwards the content of pipe i, as far as there is room; false when it is empty. */
static bool output_read(struct agent *agent, size_t i)
{
	struct program *program = &agent->program;
	uint8_t bytes[OUTPUT_CHUNK_BYTES];
	ssize_t n = read(program->output[i], bytes, output_room(agent));

	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		close(program->output[i]);
		program->output[i] = -1;
		return true;
	}
	size_t *left = &program->last_bytes[i];

	*left -= (size_t)n < *left ? (size_t)n : *left;
	link_send(&agent->link, i == 0 ? VPROF_AGENT_STDOUT : VPROF_AGENT_STDERR, NULL, 0, bytes, (size_t)n);
	return true;
}

static void say_exited(struct agent *agent)
{
	const struct program *program = &agent->program;
	int status = program->wait_status;
	const struct rusage *usage = &program->usage;
	const struct vprof_agent_exited exited = {
		.run = program->run,
		.status = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0,
		.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0,
		.time_limit = program->time_over,
		.time_ns = program->ended_ns,
		.user_ns = (uint64_t)usage->ru_utime.tv_sec * 1000000000 + (uint64_t)usage->ru_utime.tv_usec * 1000,
		.system_ns = (uint64_t)usage->ru_stime.tv_sec * 1000000000 + (uint64_t)usage->ru_stime.tv_usec * 1000,
		.memory_bytes = (uint64_t)usage->ru_maxrss * 1024,
	};

	say(agent, VPROF_AGENT_EXITED, &exited, sizeof(exited), NULL);
}

/*
 * After the program's end its pipes hold its last output. Other processes may have the pipes open and go on writing, so
 * no more is read than the pipes can have held at that time.
 */
static void program_finish(struct agent *agent)
{
	struct program *program = &agent->program;
	bool more = false;

	for (size_t i = 0; i < 2; i++)
		while (program->output[i] >= 0 && program->last_bytes[i] != 0) {
			if (output_room(agent) == 0) {
				more = true;
				break;
			}
			if (!output_read(agent, i))
				break;
		}
	/* The marks of the program are sent before its end, too. */
	if (more || !marks_read(agent, MARKS_HELD_MAX))
		return;
	say_exited(agent);
	program_close(program);
}

/* As init, the agent is the parent of all orphans, too. */
static void children_reap(struct agent *agent)
{
	struct rusage usage;
	int status;
	pid_t pid;

	child_ended = 0;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (agent->program.state == PROGRAM_RUNNING && pid == agent->program.pid)
			program_ended(&agent->program, status, &usage, clock_ns());
		else if (pid == agent->reader.pid)
			read_ended(agent, status);
	}
}

/* ---- the loop ---- */

enum { WAIT_LINK, WAIT_STDOUT, WAIT_STDERR, WAIT_STDIN, WAIT_MARKS, WAITS };

/* poll ignores a negative descriptor. */
static void waits_fill(const struct agent *agent, struct pollfd *waits)
{
	const struct program *program = &agent->program;
	bool running = program->state == PROGRAM_RUNNING;
	bool read_output = running && output_room(agent) != 0;
	bool write_input = running && (program->waiting_n != 0 || program->input_ends);
	bool read_marks = link_room(&agent->link, LINK_RESERVE_BYTES, OUTPUT_CHUNK_BYTES) != 0;

	waits[WAIT_LINK] = link_poll(&agent->link);
	for (int i = 0; i < 2; i++)
		waits[WAIT_STDOUT + i] = (struct pollfd){read_output ? program->output[i] : -1, POLLIN, 0};
	waits[WAIT_STDIN] = (struct pollfd){write_input ? program->input : -1, POLLOUT, 0};
	waits[WAIT_MARKS] = (struct pollfd){read_marks ? agent->marks.fd : -1, POLLIN, 0};
}

/* Output waits for room in the link, and there is room, for which there will be no event. */
static bool has_more_to_say(const struct agent *agent)
{
	return (agent->processes.walking || agent->program.state == PROGRAM_ENDED) && agent->link.output_n == 0;
}

/* Until the program's deadline; NULL: no limit. */
static const struct timespec *waits_timeout(const struct agent *agent, struct timespec *timeout)
{
	uint64_t now_ns = clock_ns(), deadline_ns = agent->program.deadline_ns;
	uint64_t ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	if (has_more_to_say(agent)) {
		*timeout = (struct timespec){0};
		return timeout;
	}
	if (agent->program.state != PROGRAM_RUNNING || deadline_ns == 0)
		return NULL;
	*timeout = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	return timeout;
}

static void waits_serve(struct agent *agent, const struct pollfd *waits)
{
	/* Reads before anything is sent, so that a terminal that hung up is seen as gone, not as full. */
	if (waits[WAIT_LINK].revents & (POLLIN | POLLHUP | POLLERR))
		hear_all(agent);
	for (size_t i = 0; i < 2; i++)
		if (waits[WAIT_STDOUT + i].revents != 0 && agent->program.output[i] >= 0 && output_room(agent) != 0)
			output_read(agent, i);
	if (waits[WAIT_STDIN].revents != 0)
		say_room(agent, program_feed(&agent->program));
	if (waits[WAIT_MARKS].revents != 0)
		marks_read(agent, MARKS_AT_ONCE);
}

static void agent_turn(struct agent *agent)
{
	struct pollfd waits[WAITS] = {0};
	struct timespec timeout;
	sigset_t none;
	int ready;

	sigemptyset(&none);
	waits_fill(agent, waits);
	ready = stop_asked ? 0 : ppoll(waits, WAITS, waits_timeout(agent, &timeout), &none);
	if (ready > 0)
		waits_serve(agent, waits);
	if (child_ended)
		children_reap(agent);
	program_check_time(&agent->program, clock_ns());
	if (agent->program.state == PROGRAM_ENDED)
		program_finish(agent);
	processes_send(&agent->processes, &agent->link);
	if (!agent->over && !link_flush(&agent->link))
		finish(agent, AGENT_HOST_GONE);
	if (!agent->over && stop_asked)
		finish(agent, AGENT_STOPPED);
}

/* What was marked until now is sent; later marks are refused, as there is no pipe. */
static void marks_finish(struct agent *agent)
{
	marker_pipe_remove(&agent->marks);
	marks_read(agent, MARKS_HELD_MAX);
	link_drain(&agent->link, STOP_TIMEOUT_MS);
}

/* No client waits for the program any more. */
static void program_abandon(struct program *program)
{
	program_signal(program, SIGKILL);
	if (program->state != PROGRAM_NONE)
		program_close(program);
}

enum agent_end agent_talk(int fd, bool is_init)
{
	/* Too large for a stack; there is only one conversation at a time. */
	static struct agent agent;

	memset(&agent, 0, sizeof(agent));
	agent.is_init = is_init;
	agent.marks.fd = agent.program.input = agent.program.output[0] = agent.program.output[1] = -1;
	link_open(&agent.link, fd);
	say_hello(&agent);
	if (!marker_pipe_open(&agent.marks))
		say(&agent, VPROF_AGENT_COMPLAINT, NULL, 0,
		    "cannot make " VPROF_AGENT_MARK_PATH ": there will be no markers");
	while (!agent.over)
		agent_turn(&agent);
	if (agent.end == AGENT_STOPPED)
		marks_finish(&agent);
	program_abandon(&agent.program);
	processes_end(&agent.processes);
	reader_stop(&agent.reader);
	marker_pipe_close(&agent.marks);
	link_close(&agent.link);
	return agent.end;
}
