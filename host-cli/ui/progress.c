// SPDX-License-Identifier: BSD-2-Clause
#include "ui/progress.h"

#include <glib.h>
#include <stdio.h>
#include <unistd.h>

#include "ui/text.h"

#define AFTER_S 1.0
#define INTERVAL_US 250000
#define STEPS_A_LOOK 4096 /* a look at the clock costs more than a step */

static struct {
	int64_t shown_from_us; /* by the monotonic clock; 0: not looked up yet, -1: never */
	int64_t after_us;
	int64_t shown_us;
	bool is_shown;
	char *task;
	uint64_t done, total;
	unsigned steps;
} progress;

/* VPROF_PROGRESS: seconds; "never". */
static void settings_read(void)
{
	const char *text = g_getenv("VPROF_PROGRESS");
	double after_s = AFTER_S;

	if (progress.shown_from_us != 0)
		return;
	progress.shown_from_us = -1;
	if (!isatty(STDERR_FILENO) || g_strcmp0(text, "never") == 0)
		return;
	if (text && *text != '\0')
		after_s = CLAMP(g_ascii_strtod(text, NULL), 0, 1e6);
	progress.after_us = (int64_t)(after_s * G_USEC_PER_SEC);
	progress.shown_from_us = g_get_monotonic_time() + progress.after_us;
}

bool progress_is_due(void)
{
	int64_t now_us;

	settings_read();
	now_us = g_get_monotonic_time();
	return progress.shown_from_us >= 0 && now_us >= progress.shown_from_us &&
	       (!progress.is_shown || now_us - progress.shown_us >= INTERVAL_US);
}

void progress_show(const char *line)
{
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	progress.is_shown = true;
	progress.shown_us = g_get_monotonic_time();
}

void progress_clear(void)
{
	if (progress.is_shown)
		fputs("\r\033[K", stderr);
	progress.is_shown = false;
}

void progress_pause(void)
{
	progress_clear();
	if (progress.shown_from_us > 0)
		progress.shown_from_us = g_get_monotonic_time() + progress.after_us;
}

static void show(void)
{
	g_autofree char *line = NULL;

	if (!progress_is_due())
		return;
	if (progress.total != 0)
		line = g_strdup_printf(
			"%s: %u %%", progress.task,
			(unsigned)(100.0 * (double)MIN(progress.done, progress.total) / (double)progress.total));
	progress_show(line ? line : progress.task);
}

void progress_beside_output(void)
{
	if (text_is_for_terminal(stdout))
		progress.shown_from_us = -1;
}

void progress_begin(const char *what, const char *of, uint64_t total)
{
	g_autofree char *printable = text_printable(of);

	progress_end();
	progress.task = g_strdup_printf("%s %s", what, printable);
	progress.total = total;
	show();
}

void progress_step(uint64_t n)
{
	progress.done += n;
	if (progress.task && ++progress.steps % STEPS_A_LOOK == 0)
		show();
}

void progress_end(void)
{
	progress_clear();
	progress.done = 0;
	g_clear_pointer(&progress.task, g_free);
}
