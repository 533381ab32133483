// SPDX-License-Identifier: BSD-2-Clause
#include "run/run_terminal.h"

#include <glib.h>
#include <termios.h>
#include <unistd.h>

#include "ui/progress.h"

struct terminal {
	bool has_keys; /* standard input is a terminal and belongs to the guest's console */
	bool is_raw;
	struct termios before;
	bool has_progress;
	int64_t started_us;
	int64_t shown_us;
	uint64_t samples; /* when it was shown last */
};

struct terminal *terminal_new(bool console_here)
{
	struct terminal *terminal = g_new0(struct terminal, 1);

	terminal->has_keys = console_here && tcgetattr(STDIN_FILENO, &terminal->before) == 0;
	terminal->has_progress = !(console_here && isatty(STDOUT_FILENO));
	terminal->started_us = terminal->shown_us = g_get_monotonic_time();
	return terminal;
}

void terminal_free(struct terminal *terminal)
{
	if (!terminal)
		return;
	progress_clear();
	if (terminal->is_raw && tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	g_free(terminal);
}

void terminal_raw(struct terminal *terminal)
{
	struct termios raw = terminal->before;

	/* A background job that changes the terminal mode gets SIGTTOU, which would stop the guest. */
	if (!terminal->has_keys || tcgetpgrp(STDIN_FILENO) != getpgrp())
		return;
	terminal->is_raw = true;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= (tcflag_t) ~(ICRNL | IXON);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

void terminal_progress(struct terminal *terminal, const char *what, const uint64_t *samples)
{
	g_autoptr(GString) line = NULL;
	int64_t now_us;

	if (!terminal->has_progress || !progress_is_due())
		return;
	line = g_string_new(what);
	now_us = g_get_monotonic_time();
	g_string_append_printf(line, "%s%.1f s", what ? ", " : "", (double)(now_us - terminal->started_us) / 1e6);
	if (samples) {
		g_string_append_printf(line, ", %" G_GUINT64_FORMAT " samples, %.0f/s", *samples,
		                       (double)(*samples - terminal->samples) * 1e6 /
		                               (double)MAX(now_us - terminal->shown_us, 1));
		terminal->samples = *samples;
	}
	progress_show(line->str);
	terminal->shown_us = now_us;
}
