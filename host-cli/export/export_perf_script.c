// SPDX-License-Identifier: BSD-2-Clause
/*
 * The text of `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso`, which stackcollapse-perf.pl, the
 * Firefox Profiler, speedscope and others read: a line for each sample, its frames, and an empty line.
 */
#include <vprof/exit.h>

#include "export/export.h"

/* Frames without a symbol have brackets in perf's text, too, and no offset. */
static void frame_print(const struct export_frame *frame, FILE *to)
{
	fprintf(to, "\t%16" G_GINT64_MODIFIER "x %s", frame->ip, frame->place.symbol);
	if (frame->place.known && (frame->mode != PROFILE_HYPERVISOR || vprof_exit_is_host(frame->ip)))
		fprintf(to, "+0x%" G_GINT64_MODIFIER "x", frame->place.offset);
	fprintf(to, " (%s)\n", frame->place.module);
}

struct printing {
	FILE *to;
	const char *event;
};

static bool sample_print(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                         size_t n, void *data)
{
	const struct printing *printing = data;

	fprintf(printing->to,
	        "%s %d/%d [%03" G_GUINT32_FORMAT "] %" G_GUINT64_FORMAT ".%09u: %10" G_GUINT64_FORMAT " %s:\n", comm,
	        (int32_t)sample->pid, (int32_t)sample->tid, sample->cpu, sample->time_ns / 1000000000,
	        (unsigned)(sample->time_ns % 1000000000), sample->period, printing->event);
	for (size_t i = 0; i < n; i++)
		frame_print(&frames[i], printing->to);
	fputc('\n', printing->to);
	return ferror(printing->to) == 0;
}

static bool perf_script_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct printing printing = {.to = to, .event = profile->event};

	(void)error;
	export_samples_in_time(profile, sample_print, &printing);
	return true;
}

const struct exporter export_perf_script = {
	.name = "perf-script",
	.summary = "the text of perf script, as stackcollapse-perf.pl reads it",
	.by_sample = true,
	.write = perf_script_write,
};
