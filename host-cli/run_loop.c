// SPDX-License-Identifier: BSD-2-Clause
#include "run_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <vprof/control.h>

#include "message.h"
#include "text.h"

/* How far the file may lag behind slow sampling, whose rings take long to ask for it. */
#define DRAIN_INTERVAL_MS 250

/* An engine that has been told to stop its guest and does not is stuck. */
#define STOP_TIMEOUT_US INT64_C(20000000)

enum { ENTRY_CONTROL, ENTRY_ENGINE, ENTRY_SIGNALS, ENTRY_RINGS };
#define ENTRIES_MAX (ENTRY_RINGS + VPROF_CONTROL_FDS_MAX / 2)

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

static void signals_fill(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < G_N_ELEMENTS(stop_signals); i++)
		sigaddset(set, stop_signals[i]);
}

int run_loop_signals(GError **error)
{
	sigset_t set;
	int fd;

	signals_fill(&set);
	sigaddset(&set, SIGCONT);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_FILE, "cannot make a signalfd: %s", g_strerror(errno));
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

static bool loop_over(const struct run_loop *loop)
{
	return loop->end != NULL || loop->engine_gone || loop->left_at_once;
}

static void loop_ask_stop(struct run_loop *loop)
{
	json_t *answer = engine_execute(loop->engine, "guest-stop", NULL, NULL);

	if (answer == NULL)
		loop->engine_gone = true;
	json_decref(answer);
}

static void loop_take_event(struct run_loop *loop, const json_t *event)
{
	const char *name = member_text(event, "event");
	json_t *data = json_object_get(event, "data");

	if (name == NULL)
		return;
	if (strcmp(name, VPROF_EVENT_GUEST_ENDED) == 0 && loop->end == NULL)
		loop->end = json_is_object(data) ? json_incref(data) : json_object();
	else if (strcmp(name, VPROF_EVENT_GUEST_PHASE) == 0 && loop->capture != NULL)
		capture_phase(loop->capture, data);
}

/* Also those that were read along with an answer, for which the descriptor does not become readable again. */
static void loop_take_events(struct run_loop *loop)
{
	g_autoptr(GError) error = NULL;
	json_t *event;

	while ((event = client_next_event(engine_client(loop->engine), 0, &error)) != NULL) {
		loop_take_event(loop, event);
		json_decref(event);
	}
	if (error != NULL && loop->end == NULL)
		loop->engine_gone = true;
}

static void loop_take_signal(struct run_loop *loop, uint32_t number)
{
	if (number == SIGCONT) {
		terminal_raw(loop->terminal);
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

/* A guest that nobody can record is ended: it would run for nothing. */
static void loop_drain(struct run_loop *loop)
{
	if (loop->capture == NULL)
		return;
	if (loop->output_error == NULL && !capture_drain(loop->capture, &loop->output_error))
		loop_ask_stop(loop);
	terminal_progress(loop->terminal, capture_samples(loop->capture));
}

void run_loop_run(struct run_loop *loop)
{
	struct pollfd entries[ENTRIES_MAX];
	size_t n_rings = loop->capture == NULL
	                         ? 0
	                         : capture_poll(loop->capture, &entries[ENTRY_RINGS], ENTRIES_MAX - ENTRY_RINGS);
	int64_t stop_us = 0;

	entries[ENTRY_CONTROL] = (struct pollfd){.fd = client_fd(engine_client(loop->engine)), .events = POLLIN};
	entries[ENTRY_ENGINE] = (struct pollfd){.fd = engine_pidfd(loop->engine), .events = POLLIN};
	entries[ENTRY_SIGNALS] = (struct pollfd){.fd = loop->signalfd, .events = POLLIN};
	for (;;) {
		loop_take_events(loop);
		if (loop_over(loop))
			break;
		if (poll(entries, ENTRY_RINGS + n_rings, DRAIN_INTERVAL_MS) < 0 && errno != EINTR)
			break;
		loop_take_signals(loop);
		loop_drain(loop);
		if ((loop->stop_asked || loop->output_error != NULL) && stop_us == 0)
			stop_us = g_get_monotonic_time();
		if (stop_us != 0 && g_get_monotonic_time() - stop_us > STOP_TIMEOUT_US) {
			warn("the engine does not stop its guest");
			loop->engine_gone = true;
		}
	}
}
