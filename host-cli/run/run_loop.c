// SPDX-License-Identifier: BSD-2-Clause
#include "run/run_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <vprof/control.h>

#include "engine/engine_process.h"
#include "run/run_terminal.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/text.h"

/* The longest time between two drains, for slow sampling, which fills rings slowly. */
#define DRAIN_INTERVAL_MS 250

/* An engine that does not stop its guest within this time is stuck. */
#define STOP_TIMEOUT_US INT64_C(20000000)

enum {
	ENTRY_CONTROL,
	ENTRY_ENGINE,
	ENTRY_SIGNALS,
	ENTRY_AGENT,
	ENTRY_EXEC,
	ENTRY_RINGS = ENTRY_EXEC + EXEC_POLL_ENTRIES
};
#define ENTRIES_MAX (ENTRY_RINGS + VPROF_CONTROL_FDS_MAX / 2)

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
static const int command_signals[] = {SIGQUIT, SIGUSR1, SIGUSR2};

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < G_N_ELEMENTS(stop_signals); i++)
		sigaddset(set, stop_signals[i]);
}

int run_loop_signals(bool for_command, GError **error)
{
	sigset_t set;
	int fd;

	signals_fill(&set);
	sigaddset(&set, SIGCONT);
	for (size_t i = 0; for_command && i < G_N_ELEMENTS(command_signals); i++)
		sigaddset(&set, command_signals[i]);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		g_set_error(error, RECORDER_ERROR, RECORDER_ERROR_FILE, "cannot make a signalfd: %s",
		            g_strerror(errno));
		return -1;
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return fd;
}

void run_loop_signals_release(void)
{
	sigset_t set;

	signals_fill(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool run_loop_failed(const struct run_loop *loop)
{
	return loop->recorder && recorder_failed(loop->recorder);
}

static bool loop_guest_gone(const struct run_loop *loop)
{
	return loop->end || loop->engine_gone;
}

static bool loop_over(const struct run_loop *loop)
{
	bool flushed = !loop->exec || exec_is_flushed(loop->exec);

	return loop->left_at_once || (loop_guest_gone(loop) && flushed);
}

static void loop_ask_stop(struct run_loop *loop)
{
	if (!engine_tell(engine_process_client(loop->engine), "guest-stop", NULL, NULL))
		loop->engine_gone = true;
}

static void loop_take_event(struct run_loop *loop, const json_t *event)
{
	const char *name = member_text(event, "event");
	json_t *data = json_object_get(event, "data");

	if (!name)
		return;
	if (strcmp(name, VPROF_EVENT_GUEST_ENDED) == 0 && !loop->end)
		loop->end = json_is_object(data) ? json_incref(data) : json_object();
	else if (strcmp(name, VPROF_EVENT_GUEST_KERNEL) == 0 && loop->on_kernel)
		loop->on_kernel(loop->data);
	else if (strcmp(name, VPROF_EVENT_GUEST_PAUSE) == 0 && loop->on_pause)
		loop->on_pause(data, loop->data);
	else if (strcmp(name, VPROF_EVENT_GUEST_PHASE) == 0 && loop->recorder)
		recorder_phase(loop->recorder, data);
	else if (strcmp(name, VPROF_EVENT_MARKER) == 0 && loop->recorder)
		recorder_marker(loop->recorder, data);
}

/* Includes events that were read together with an answer: the descriptor does not become readable for them. */
static void loop_take_events(struct run_loop *loop)
{
	g_autoptr(GError) error = NULL;
	json_t *event;

	while ((event = client_next_event(engine_process_client(loop->engine), 0, &error))) {
		loop_take_event(loop, event);
		json_decref(event);
	}
	if (error && !loop->end)
		loop->engine_gone = true;
}

static bool is_stop_signal(uint32_t number)
{
	for (size_t i = 0; i < G_N_ELEMENTS(stop_signals); i++)
		if ((uint32_t)stop_signals[i] == number)
			return true;
	return false;
}

/* Each signal is forwarded to the command; the first one that would end vprof goes to the command only. */
static bool loop_hand_on(struct run_loop *loop, uint32_t number)
{
	bool first = !loop->handed_on;

	if (!loop->exec || !exec_signal(loop->exec, (int)number))
		return !is_stop_signal(number);
	loop->handed_on |= is_stop_signal(number);
	return first || !is_stop_signal(number);
}

static void loop_take_signal(struct run_loop *loop, uint32_t number)
{
	if (number == SIGCONT) {
		terminal_raw(loop->terminal);
	} else if (loop_hand_on(loop, number)) {
		return;
	} else if (loop->stop_asked) {
		loop->left_at_once = true;
	} else {
		loop->stop_asked = true;
		loop_ask_stop(loop);
	}
}

static void loop_take_signals(struct run_loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signalfd, &info, sizeof(info)) == sizeof(info))
		loop_take_signal(loop, info.ssi_signo);
}

/* If the recording cannot be written, the guest is ended. */
static void loop_drain(struct run_loop *loop)
{
	if (loop->recorder && !recorder_failed(loop->recorder) && !recorder_drain(loop->recorder, NULL))
		loop_ask_stop(loop);
}

static void loop_show_progress(struct run_loop *loop)
{
	uint64_t samples = loop->recorder ? recorder_samples(loop->recorder) : 0;
	g_autofree char *what = loop->exec ? exec_progress(loop->exec) : NULL;

	if (loop->exec ? what != NULL : loop->recorder != NULL)
		terminal_progress(loop->terminal, what, loop->recorder ? &samples : NULL);
}

/* Rings are mapped anew for each profiled window. */
static size_t loop_fill_entries(const struct run_loop *loop, struct pollfd *entries)
{
	bool gone = loop_guest_gone(loop); /* and only the command's output is pending */

	entries[ENTRY_CONTROL] =
		(struct pollfd){.fd = gone ? -1 : client_fd(engine_process_client(loop->engine)), .events = POLLIN};
	entries[ENTRY_ENGINE] = (struct pollfd){.fd = gone ? -1 : engine_process_pidfd(loop->engine), .events = POLLIN};
	entries[ENTRY_SIGNALS] = (struct pollfd){.fd = loop->signalfd, .events = POLLIN};
	entries[ENTRY_AGENT] = loop->agent ? agent_service_poll(loop->agent) : (struct pollfd){.fd = -1};
	for (size_t i = 0; i < EXEC_POLL_ENTRIES; i++)
		entries[ENTRY_EXEC + i] = (struct pollfd){.fd = -1};
	if (loop->exec)
		exec_poll(loop->exec, &entries[ENTRY_EXEC]);
	if (!loop->recorder)
		return ENTRY_RINGS;
	return ENTRY_RINGS + recorder_poll(loop->recorder, &entries[ENTRY_RINGS], ENTRIES_MAX - ENTRY_RINGS);
}

static void loop_serve_exec(struct run_loop *loop, const struct pollfd *entries)
{
	if (!loop->exec)
		return;
	if (exec_writes_here(loop->exec))
		progress_pause();
	exec_serve(loop->exec, entries);
	if (exec_wants_end(loop->exec) && !loop->end_asked && !loop->end) {
		loop->end_asked = true;
		loop_ask_stop(loop);
	}
}

/* Returns when it is due next. */
static int64_t loop_call_interval(struct run_loop *loop, int64_t due_us)
{
	const int64_t interval_us = (int64_t)loop->interval_s * G_USEC_PER_SEC;

	if (!loop->on_interval || loop_guest_gone(loop) || g_get_monotonic_time() < due_us)
		return due_us;
	loop->on_interval(loop->interval_data);
	return due_us + interval_us;
}

static void loop_turn(struct run_loop *loop)
{
	struct pollfd entries[ENTRIES_MAX];
	int64_t stop_us = 0, interval_us = g_get_monotonic_time() + (int64_t)loop->interval_s * G_USEC_PER_SEC;

	for (;;) {
		size_t n;

		loop_take_events(loop);
		if (loop->exec && loop_guest_gone(loop))
			exec_guest_ended(loop->exec);
		if (loop_over(loop))
			break;
		n = loop_fill_entries(loop, entries);
		if (poll(entries, n, DRAIN_INTERVAL_MS) < 0 && errno != EINTR)
			break;
		loop_take_signals(loop);
		loop_serve_exec(loop, &entries[ENTRY_EXEC]);
		if (loop->agent)
			agent_service_serve(loop->agent, &entries[ENTRY_AGENT]);
		loop_drain(loop);
		loop_show_progress(loop);
		interval_us = loop_call_interval(loop, interval_us);
		if ((loop->stop_asked || loop->end_asked || run_loop_failed(loop)) && stop_us == 0)
			stop_us = g_get_monotonic_time();
		if (stop_us != 0 && g_get_monotonic_time() - stop_us > STOP_TIMEOUT_US) {
			warn("the engine does not stop its guest");
			loop->engine_gone = true;
		}
	}
}

/* The engine may have told it before it had us as a client. */
static void loop_ask_pause(struct run_loop *loop)
{
	json_t *status = engine_ask(engine_process_client(loop->engine), "query-status", NULL, NULL);

	if (json_object_get(status, "pause")) {
		json_t *pause = json_pack("{s:O, s:I}", "pause", json_object_get(status, "pause"), "time-ns",
		                          (json_int_t)g_get_monotonic_time() * 1000);

		loop->on_pause(pause, loop->data);
		json_decref(pause);
	}
	json_decref(status);
}

bool run_loop_run(struct run_loop *loop, bool console, GError **error)
{
	if (!engine_tell(engine_process_client(loop->engine), "guest-start", NULL, error))
		return false;
	if (loop->on_pause)
		loop_ask_pause(loop);
	loop->terminal = terminal_new(console);
	terminal_raw(loop->terminal);
	loop_turn(loop);
	if (loop->agent && !loop->left_at_once)
		agent_service_finish(loop->agent, loop->signalfd);
	terminal_free(g_steal_pointer(&loop->terminal));
	return true;
}

void run_loop_close(struct run_loop *loop)
{
	if (!loop->engine_gone) {
		recorder_stop(loop->recorder, NULL);
		engine_process_quit(loop->engine);
	}
	if (loop->stop_asked)
		run_loop_signals_release();
}
