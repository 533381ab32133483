// SPDX-License-Identifier: BSD-2-Clause
/* What a command that records says about it. */
#include "record/recorder_priv.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <vprof/recording.h>

#include "reading/vcpu_clocks.h"
#include "report/report.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define TOP_ROWS 20

void recorder_say_session(const struct recorder *recorder, bool verbose)
{
	const json_t *session = recorder_session(recorder);
	const char *why = member_text(session, "why"), *delivery = member_text(session, "delivery");
	const char *tasks_why = member_text(session, "tasks-why"), *route_why = member_text(session, "route-why");
	const char *unwinder_why = member_text(session, "unwinder-why"), *waits_why = member_text(session, "waits-why");

	if (route_why)
		say("%s is not the best route; %s", delivery, route_why);
	if (why)
		say("%s", why);
	if (unwinder_why)
		warn("the kernel's call chains follow frame pointers, without ORC: %s", unwinder_why);
	if (waits_why)
		warn("%s", waits_why);
	if (verbose && delivery)
		say("overflows become exits by %s; call chains: %s", delivery, member_text(session, "call-graph"));
	if (verbose && tasks_why)
		say("samples have no pid and no task name: %s", tasks_why);
}

/* Warns of what an exact count does not contain. */
static void say_unstepped(const json_t *statistics)
{
	uint64_t times = member_number(json_object_get(statistics, "total"), "unstepped", 0);

	if (times != 0)
		warn("this host cannot step user space: %" G_GUINT64_FORMAT
		     " times the guest ran there uncounted; the counts are its kernel's",
		     times);
}

static void say_stalled(const json_t *statistics)
{
	const json_t *total = json_object_get(statistics, "total");
	const uint64_t times = member_number(total, "stalls", 0);

	if (times != 0)
		warn("the counters were stopped %" G_GUINT64_FORMAT
		     " times, for %.3f s in all, because the rings were nearly full; sample less often (-F, -c)",
		     times, (double)member_number(total, "stalled-ns", 0) / 1e9);
}

void recorder_say_written(const struct recorder *recorder)
{
	struct stat status;
	g_autofree char *size = NULL;

	if (stat(recorder->path, &status) != 0)
		return;
	size = units_format_bytes((uint64_t)status.st_size);
	say("%" G_GUINT64_FORMAT " samples in %s (%s)", recorder->samples, recorder->path, size);
	if (recorder->samples == 0) {
		json_t *time = recorder_time(recorder);
		g_autofree char *sentence = vcpu_clocks_sentence(time);

		json_decref(time);
		if (sentence)
			say("%s", sentence);
	}
	if (recorder->marks_left_out)
		warn("only the first %u markers are kept", VPROF_MARKERS_MAX);
	if (recorder->losses.records != 0)
		warn("%" G_GUINT64_FORMAT " samples and %" G_GUINT64_FORMAT
		     " records of other kinds were lost because the rings were full; sample less often (-F, -c)",
		     record_losses_samples(&recorder->losses), record_losses_others(&recorder->losses));
	if (recorder->throttles != 0)
		warn("the host's kernel stopped events %" G_GUINT64_FORMAT
		     " times, until its next tick, as they overflowed more often than kernel.perf_event_max_sample_rate allows; sample less often (-F, -c), or raise that with sysctl",
		     recorder->throttles);
	say_stalled(recorder->statistics);
	say_unstepped(recorder->statistics);
}

bool recording_print_top(const char *path, const char *sort, FILE *stream, GError **error)
{
	struct report_options report_options = {.limit = TOP_ROWS};
	struct input *input = input_open(path, NULL, false, error);
	struct report *report;

	/* The recording is complete; a reader that closes the pipe must not cause an error message. */
	signal(SIGPIPE, SIG_DFL);
	if (!input || !column_list_parse(sort ? sort : REPORT_DEFAULT_SORT, &report_options.columns, error)) {
		input_free(input);
		return false;
	}
	report = report_new(input, &report_options);
	input_say_warnings(input);
	report_print_text(report, stream);
	report_free(report);
	input_free(input);
	return true;
}

int recorder_conclude(struct recorder *recorder, const struct recorder_end *end, FILE *report)
{
	g_autoptr(GError) error = NULL;

	if (!recorder_finish(recorder, end, &error)) {
		failure(error);
		say("what was recorded until then is in %s", recorder->path);
		return STATUS_FAILED;
	}
	recorder_say_written(recorder);
	if (report && !recording_print_top(recorder->path, NULL, report, &error))
		return failure(error);
	return STATUS_OK;
}
