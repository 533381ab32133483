// SPDX-License-Identifier: BSD-2-Clause
#include "run/exec.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "lib/agent/metrics.h"
#include "lib/record/clock.h"
#include "run/agent_clock.h"
#include "run/agent_link.h"
#include "run/exec_output.h"
#include "run/exec_run.h"
#include "ui/message.h"
#include "ui/text.h"

#define PIECE_BYTES 8192u                         /* of the standard input, at a time */
#define CLOCK_PINGS 4u                            /* before the first run */
#define MAPPINGS_SECOND_NS UINT64_C(100000000)    /* after the first query, when the loader may still be running */
#define SILENCE_NS UINT64_C(30000000000)          /* of an agent that is queried every ten seconds or more often */
#define TIME_LIMIT_GRACE_NS UINT64_C(20000000000) /* the agent's own grace period and some more */
#define POWER_OFF_NS UINT64_C(20000000000)

enum exec_state {
	EXEC_BOOTING,
	EXEC_ASKING, /* for the time */
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_ENDING, /* the agent was told to power off the guest */
	EXEC_FAILED,
};

enum { ENTRY_AGENT, ENTRY_INPUT, ENTRY_OUTPUT };
_Static_assert(ENTRY_OUTPUT + 2 == EXEC_POLL_ENTRIES, "two outputs");

struct exec {
	const struct exec_plan *plan;
	struct exec_hooks hooks;
	struct agent_link link;
	struct exec_output *outputs[2];
	struct metrics *metrics; /* of this run */
	enum exec_state state;
	unsigned run; /* 1.., warm-ups first */
	bool window_open;
	bool has_started;
	/* Standard input. */
	bool input_is_terminal;
	bool input_open;
	size_t input_room;
	/* Times by the host's clock; 0: none. */
	struct agent_clock clock;
	uint64_t heard_ns, deadline_ns, started_ns;
	unsigned mappings_asks; /* of this run */
	uint32_t pid;           /* of it in the guest */
	bool said_silence;
	int status;
	char *end_message;
	struct message_rate complaints;
	json_t *runs;
};

struct exec *exec_new(const struct exec_plan *plan, int fd)
{
	struct exec *exec = g_new0(struct exec, 1);

	exec->plan = plan;
	agent_link_init(&exec->link, fd);
	exec->outputs[0] = exec_output_new(STDOUT_FILENO);
	exec->outputs[1] = exec_output_new(STDERR_FILENO);
	exec->input_is_terminal = isatty(STDIN_FILENO);
	exec->status = -1;
	exec->runs = json_array();
	return exec;
}

void exec_free(struct exec *exec)
{
	if (!exec)
		return;
	warn_rate_end(&exec->complaints);
	for (size_t i = 0; i < 2; i++)
		exec_output_free(exec->outputs[i]);
	agent_link_clear(&exec->link);
	metrics_free(exec->metrics);
	json_decref(exec->runs);
	g_free(exec->end_message);
	g_free(exec);
}

void exec_set_hooks(struct exec *exec, const struct exec_hooks *hooks)
{
	exec->hooks = *hooks;
}

bool exec_has_started(const struct exec *exec)
{
	return exec->has_started;
}

bool exec_is_flushed(const struct exec *exec)
{
	return exec_output_pending(exec->outputs[0]) == 0 && exec_output_pending(exec->outputs[1]) == 0;
}

bool exec_writes_here(const struct exec *exec)
{
	return exec_output_writes_here(exec->outputs[0]) || exec_output_writes_here(exec->outputs[1]);
}

int exec_status(const struct exec *exec)
{
	return exec->status;
}

void exec_say_end(const struct exec *exec)
{
	if (exec->end_message)
		say("%s", exec->end_message);
}

/* ---- the runs ---- */

/* "repeat-1", "warmup-1". New string. */
static char *run_name(const struct exec *exec)
{
	if (exec->run <= exec->plan->warmups)
		return g_strdup_printf("warmup-%u", exec->run);
	return g_strdup_printf("repeat-%u", exec->run - exec->plan->warmups);
}

static unsigned runs_wanted(const struct exec *exec)
{
	return exec->plan->warmups + exec->plan->repeats;
}

/* A status line would mix with the command's input or output. */
static bool leaves_no_line(const struct exec *exec)
{
	return exec_writes_here(exec) || exec_output_is_within_line(exec->outputs[0]) ||
	       exec_output_is_within_line(exec->outputs[1]) || (exec->input_open && exec->input_is_terminal);
}

char *exec_progress(const struct exec *exec)
{
	g_autofree char *name = run_name(exec);

	if (leaves_no_line(exec))
		return NULL;
	switch (exec->state) {
	case EXEC_BOOTING:
	case EXEC_ASKING:
		return g_strdup("booting");
	case EXEC_STARTING:
	case EXEC_RUNNING:
		if (exec->run <= exec->plan->warmups)
			return g_steal_pointer(&name);
		return runs_wanted(exec) == 1 ? g_strdup("running")
		                              : g_strdup_printf("%s of %u", name, exec->plan->repeats);
	case EXEC_ENDING:
		return g_strdup("powering off");
	case EXEC_FAILED:
		break;
	}
	return NULL;
}

static void window_close(struct exec *exec)
{
	if (exec->window_open)
		exec->hooks.end(exec->hooks.data);
	exec->window_open = false;
}

/* The guest gets no more requests. */
static void exec_fail(struct exec *exec, int status, char *message)
{
	window_close(exec);
	exec->state = EXEC_FAILED;
	exec->status = status;
	g_free(exec->end_message);
	exec->end_message = message;
}

static void exec_fail_error(struct exec *exec, GError *why)
{
	exec_fail(exec, 1, g_strdup(why->message));
	g_error_free(why);
}

static void exec_end(struct exec *exec)
{
	window_close(exec);
	exec->state = EXEC_ENDING;
	exec->deadline_ns = clock_ns(CLOCK_MONOTONIC) + POWER_OFF_NS;
	agent_say_power_off(exec->link.to_agent);
}

/* Only a single run gets standard input; several would each get a part of it. */
static void input_begin(struct exec *exec)
{
	exec->input_open = runs_wanted(exec) == 1;
	exec->input_room = 0;
	if (!exec->input_open)
		agent_say_stdin_end(exec->link.to_agent);
}

static void run_start(struct exec *exec)
{
	const struct exec_plan *plan = exec->plan;
	const struct agent_order order = {
		.run = ++exec->run,
		.time_limit_ms = plan->time_limit_ms,
		.path = plan->path,
		.folder = plan->folder,
		.arguments = (const char *const *)plan->arguments,
		.variables = (const char *const *)plan->variables,
	};
	GError *error = NULL;

	exec->state = EXEC_STARTING;
	if (exec->run == plan->warmups + 1) {
		exec->window_open = exec->hooks.begin(exec->hooks.data, &error);
		if (!exec->window_open) {
			exec_fail_error(exec, error);
			return;
		}
	}
	if (!agent_say_run(exec->link.to_agent, &order, &error))
		exec_fail_error(exec, error);
}

/* Queries the command's mappings twice, then those of all processes, which takes emulated guests seconds. */
static void ask_mappings(struct exec *exec)
{
	agent_mappings_ask(exec->hooks.mappings, exec->link.to_agent, exec->mappings_asks++ < 2 ? exec->pid : 0);
}

static void check_mappings(struct exec *exec)
{
	uint64_t interval_ns = exec->mappings_asks < 2 ? MAPPINGS_SECOND_NS : AGENT_CLOCK_INTERVAL_MIN_NS;

	if (exec->hooks.mappings && agent_mappings_is_due(exec->hooks.mappings, interval_ns))
		ask_mappings(exec);
}

static uint64_t host_time(const struct exec *exec, uint64_t guest_ns)
{
	return guest_clock_to_host(&exec->clock.clock, guest_ns);
}

static void run_mark(struct exec *exec, bool begins, uint64_t guest_ns)
{
	g_autofree char *name = run_name(exec);

	exec->hooks.mark(name, begins, host_time(exec, guest_ns), exec->hooks.data);
}

static void run_started(struct exec *exec, const struct vprof_agent_started *started)
{
	if (exec->state != EXEC_STARTING || started->run != exec->run)
		return;
	exec->state = EXEC_RUNNING;
	exec->has_started = true;
	exec->started_ns = started->time_ns;
	metrics_free(exec->metrics);
	exec->metrics = metrics_new();
	if (exec->plan->time_limit_ms != 0)
		exec->deadline_ns =
			clock_ns(CLOCK_MONOTONIC) + exec->plan->time_limit_ms * UINT64_C(1000000) + TIME_LIMIT_GRACE_NS;
	run_mark(exec, true, started->time_ns);
	input_begin(exec);
	exec->pid = started->pid;
	exec->mappings_asks = 0;
	if (exec->hooks.mappings && agent_mappings_are_wanted(exec->hooks.mappings))
		ask_mappings(exec);
}

static void run_refused(struct exec *exec, const struct vprof_agent_refused *refused, const char *what)
{
	if (exec->state != EXEC_STARTING || refused->run != exec->run)
		return;
	exec->status = refused->error == ENOENT ? EXEC_STATUS_NOT_FOUND : EXEC_STATUS_NOT_EXECUTABLE;
	exec->end_message = g_strdup_printf("%s: the agent in the guest cannot %s: %s", exec->plan->arguments[0], what,
	                                    g_strerror((int)(refused->error & INT16_MAX)));
	exec_end(exec);
}

static void run_exited(struct exec *exec, const struct vprof_agent_exited *exited)
{
	g_autofree char *name = run_name(exec);

	if (exec->state != EXEC_RUNNING || exited->run != exec->run)
		return;
	exec->deadline_ns = 0;
	run_mark(exec, false, exited->time_ns);
	metrics_end(exec->metrics);
	json_array_append_new(exec->runs, exec_run_json(name, exited, exec->started_ns, exec->metrics));
	exec->status = exec_run_status(exec->plan, exited, &exec->end_message);
	if (exec->status == 0 && exec->run < runs_wanted(exec))
		run_start(exec);
	else
		exec_end(exec);
}

/* ---- what the agent says ---- */

static void take_hello(struct exec *exec, const struct vprof_agent_hello *hello)
{
	if (exec->state != EXEC_BOOTING)
		return;
	if (exec->hooks.mappings)
		agent_mappings_greet(exec->hooks.mappings, hello);
	if (exec->hooks.reads)
		agent_reads_greet(exec->hooks.reads, hello);
	exec->state = EXEC_ASKING;
	agent_clock_ask(&exec->clock, exec->link.to_agent);
}

static void take_pong(struct exec *exec, const struct vprof_agent_pong *pong)
{
	if (!agent_clock_take(&exec->clock, pong) || exec->state != EXEC_ASKING)
		return;
	if (exec->clock.pongs < CLOCK_PINGS)
		agent_clock_ask(&exec->clock, exec->link.to_agent);
	else
		run_start(exec);
}

static void take_mark(struct exec *exec, const struct vprof_agent_mark *mark, const char *name)
{
	uint64_t time_ns;
	bool begins;

	if (agent_clock_mark(&exec->clock, mark, &begins, &time_ns))
		exec->hooks.mark(name, begins, time_ns, exec->hooks.data);
}

static void take_output(struct exec *exec, unsigned stream, const uint8_t *bytes, size_t n)
{
	if (exec->state != EXEC_RUNNING)
		return;
	metrics_put(exec->metrics, stream, bytes, n);
	exec_output_put(exec->outputs[stream], bytes, n);
}

static void take_message(struct exec *exec, const struct agent_message *message)
{
	switch (message->type) {
	case VPROF_AGENT_HELLO:
		take_hello(exec, &message->hello);
		break;
	case VPROF_AGENT_PONG:
		take_pong(exec, &message->pong);
		break;
	case VPROF_AGENT_STARTED:
		run_started(exec, &message->started);
		break;
	case VPROF_AGENT_REFUSED:
		run_refused(exec, &message->refused, message->text);
		break;
	case VPROF_AGENT_STDOUT:
	case VPROF_AGENT_STDERR:
		take_output(exec, message->type == VPROF_AGENT_STDERR, message->bytes, message->n_bytes);
		break;
	case VPROF_AGENT_STDIN_ROOM:
		exec->input_room = MIN(exec->input_room + message->stdin_room.bytes, VPROF_AGENT_STDIN_BYTES_MAX);
		break;
	case VPROF_AGENT_EXITED:
		run_exited(exec, &message->exited);
		break;
	case VPROF_AGENT_MARK:
		take_mark(exec, &message->mark, message->text);
		break;
	case VPROF_AGENT_TASK:
	case VPROF_AGENT_MAPPING:
	case VPROF_AGENT_MAPPINGS_END:
		if (exec->hooks.mappings)
			agent_mappings_take(exec->hooks.mappings, message);
		break;
	case VPROF_AGENT_READ_DONE:
		if (exec->hooks.reads)
			agent_reads_take(exec->hooks.reads, &message->read_done);
		break;
	case VPROF_AGENT_COMPLAINT:
		warn_at_rate(&exec->complaints, "the agent in the guest: %s", message->text);
		break;
	default: /* answers without a query */
		break;
	}
}

static void take_messages(struct exec *exec)
{
	struct agent_message message;
	GError *error = NULL;

	while (exec->state != EXEC_FAILED && agent_stream_next(exec->link.stream, &message, &error))
		take_message(exec, &message);
	if (error && exec->state != EXEC_FAILED)
		exec_fail_error(exec, g_steal_pointer(&error));
	g_clear_error(&error);
}

/* False if nothing is available now. */
static bool receive(struct exec *exec)
{
	if (agent_link_receive(&exec->link) <= 0)
		return false;
	exec->heard_ns = clock_ns(CLOCK_MONOTONIC);
	exec->said_silence = false;
	take_messages(exec);
	return true;
}

void exec_guest_ended(struct exec *exec)
{
	while (!exec_output_is_full(exec->outputs[0]) && !exec_output_is_full(exec->outputs[1]) && receive(exec))
		;
	window_close(exec);
}

/* ---- the streams ---- */

static void input_read(struct exec *exec)
{
	uint8_t bytes[PIECE_BYTES];
	ssize_t n = read(STDIN_FILENO, bytes, MIN(exec->input_room, sizeof(bytes)));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		exec->input_open = false;
		agent_say_stdin_end(exec->link.to_agent);
		return;
	}
	exec->input_room -= (size_t)n;
	agent_say_stdin(exec->link.to_agent, bytes, (size_t)n);
}

static void output_write(struct exec *exec, size_t i)
{
	/* As a pipe to a local command would behave. */
	if (!exec_output_write(exec->outputs[i]))
		exec_signal(exec, SIGPIPE);
}

bool exec_signal(struct exec *exec, int number)
{
	if (exec->state != EXEC_RUNNING)
		return false;
	agent_say_signal(exec->link.to_agent, number);
	return true;
}

/* ---- the loop's view ---- */

/* A background job that reads its terminal would be stopped. */
static bool wants_input(const struct exec *exec)
{
	return exec->state == EXEC_RUNNING && exec->input_open && exec->input_room != 0 &&
	       (!exec->input_is_terminal || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

void exec_poll(const struct exec *exec, struct pollfd entries[EXEC_POLL_ENTRIES])
{
	/* A slow reader of the output makes the command wait. */
	bool full = exec_output_is_full(exec->outputs[0]) || exec_output_is_full(exec->outputs[1]);

	entries[ENTRY_AGENT] = agent_link_poll(&exec->link, full ? 0 : POLLIN);
	entries[ENTRY_INPUT] = (struct pollfd){.fd = wants_input(exec) ? STDIN_FILENO : -1, .events = POLLIN};
	for (size_t i = 0; i < 2; i++)
		entries[ENTRY_OUTPUT + i] = exec_output_poll(exec->outputs[i]);
}

/* Pings during the command keep the clock right and show that the guest is alive. */
static void check_time(struct exec *exec)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (exec->state == EXEC_RUNNING && agent_clock_is_due(&exec->clock))
		agent_clock_ask(&exec->clock, exec->link.to_agent);
	if (exec->state == EXEC_RUNNING)
		check_mappings(exec);
	if (exec->state == EXEC_RUNNING && exec->hooks.reads)
		agent_reads_ask(exec->hooks.reads, exec->link.to_agent);
	if (exec->state == EXEC_RUNNING && now_ns - exec->heard_ns >= SILENCE_NS && !exec->said_silence) {
		warn("the agent in the guest has not answered for %u s", (unsigned)(SILENCE_NS / 1000000000));
		exec->said_silence = true;
	}
	if (exec->state == EXEC_RUNNING && exec->deadline_ns != 0 && now_ns >= exec->deadline_ns)
		exec_fail(
			exec, EXEC_STATUS_TIME_LIMIT,
			g_strdup_printf(
				"the time limit of %u s is over, and the agent in the guest has not ended the command",
				exec->plan->time_limit_ms / 1000));
}

void exec_serve(struct exec *exec, const struct pollfd entries[EXEC_POLL_ENTRIES])
{
	if ((entries[ENTRY_AGENT].revents & POLLIN) != 0)
		receive(exec);
	if ((entries[ENTRY_INPUT].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		input_read(exec);
	for (size_t i = 0; i < 2; i++)
		if (entries[ENTRY_OUTPUT + i].revents != 0)
			output_write(exec, i);
	check_time(exec);
	agent_link_transmit(&exec->link);
}

bool exec_wants_end(const struct exec *exec)
{
	return exec->state == EXEC_FAILED ||
	       (exec->state == EXEC_ENDING && clock_ns(CLOCK_MONOTONIC) >= exec->deadline_ns);
}

json_t *exec_json(const struct exec *exec)
{
	json_t *words = json_array();

	for (char **word = exec->plan->arguments; *word; word++)
		json_array_append_new(words, text_json(*word));
	return json_pack("{s:o, s:O}", "command", words, "runs", exec->runs);
}
