// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/watchdog.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "lib/record/clock.h"

/* The time of grace in steps: those that come late, as the process was stopped, count as one. */
#define TICK_MS 100
#define TICKS (WATCHDOG_GRACE_SECONDS * 1000 / TICK_MS)

/* Of the main thread and its signal handler. */
static struct {
	bool started;
	timer_t timer;
	const char *message;
	size_t message_bytes;
	volatile sig_atomic_t ticks, status;
} watchdog;

static void on_tick(int signal)
{
	(void)signal;
	if (++watchdog.ticks <= TICKS)
		return;
	ssize_t written = write(STDERR_FILENO, watchdog.message, watchdog.message_bytes);
	(void)written; /* whether or not stderr has a reader */
	_exit(watchdog.status);
}

void watchdog_start(const char *message)
{
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};

	watchdog.message = message;
	watchdog.message_bytes = strlen(message);
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	watchdog.started = clock_timer_create(CLOCK_MONOTONIC, SIGALRM, 0, &watchdog.timer);
}

static void timer_set(guint64 ms, guint64 interval_ms)
{
	const struct itimerspec at = {
		.it_value = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000},
		.it_interval = {(time_t)(interval_ms / 1000), (long)(interval_ms % 1000) * 1000000},
	};

	if (watchdog.started)
		timer_settime(watchdog.timer, 0, &at, NULL);
}

void watchdog_limit(guint64 ms, int status)
{
	watchdog.status = status;
	watchdog.ticks = 0;
	timer_set(MAX(ms, 1), TICK_MS);
}

void watchdog_over(void)
{
	timer_set(0, 0);
}
