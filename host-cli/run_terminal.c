// SPDX-License-Identifier: BSD-2-Clause
#include "run_terminal.h"

#include <glib.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#define PROGRESS_INTERVAL_US 250000

struct terminal {
	bool has_keys; /* standard input is a terminal and belongs to the guest's console */
	bool is_raw;
	struct termios before;
	bool has_progress;
	bool progress_shown;
	int64_t started_us;
	int64_t shown_us;
	uint64_t samples; /* when it was shown last */
};

struct terminal *terminal_new(bool console_here)
{
	struct terminal *terminal = g_new0(struct terminal, 1);

	terminal->has_keys = console_here && tcgetattr(STDIN_FILENO, &terminal->before) == 0;
	terminal->has_progress = isatty(STDERR_FILENO) && !(console_here && isatty(STDOUT_FILENO));
	terminal->started_us = terminal->shown_us = g_get_monotonic_time();
	return terminal;
}

void terminal_free(struct terminal *terminal)
{
	if (terminal == NULL)
		return;
	terminal_progress_end(terminal);
	if (terminal->is_raw && tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	g_free(terminal);
}

void terminal_raw(struct terminal *terminal)
{
	struct termios raw = terminal->before;

	/* A background job that changes the terminal is stopped by it (SIGTTOU), and its guest with it. */
	if (!terminal->has_keys || tcgetpgrp(STDIN_FILENO) != getpgrp())
		return;
	terminal->is_raw = true;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= (tcflag_t) ~(ICRNL | IXON);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

void terminal_progress(struct terminal *terminal, uint64_t samples)
{
	int64_t now_us = g_get_monotonic_time(), since_us = now_us - terminal->shown_us;

	if (!terminal->has_progress || since_us < PROGRESS_INTERVAL_US)
		return;
	fprintf(stderr, "\r%" G_GUINT64_FORMAT " samples, %.1f s, %.0f/s\033[K", samples,
	        (double)(now_us - terminal->started_us) / 1e6,
	        (double)(samples - terminal->samples) * 1e6 / (double)since_us);
	terminal->progress_shown = true;
	terminal->shown_us = now_us;
	terminal->samples = samples;
}

void terminal_output_begins(struct terminal *terminal)
{
	if (!terminal->has_progress || !isatty(STDOUT_FILENO))
		return;
	terminal_progress_end(terminal);
	terminal->has_progress = false;
}

void terminal_progress_end(struct terminal *terminal)
{
	if (terminal->progress_shown)
		fputs("\r\033[K", stderr);
	terminal->progress_shown = false;
}
