// SPDX-License-Identifier: BSD-2-Clause
/* vprof stat: its output, and the clocks of a guest that is attached temporarily. */
#include "attach/attach.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/counters.h"
#include "engine/engine_process.h"
#include "engine/vcpu_clocks.h"
#include "run/run_loop.h"
#include "ui/message.h"
#include "ui/text.h"

#define ANSWER_TIMEOUT_MS 10000u

/* KVM's counters, summed over all vCPUs: {NAME: N}. New object. */
static json_t *counters_sum(const json_t *answers)
{
	json_t *sums = json_object();
	const json_t *answer;
	size_t i;

	json_array_foreach(answers, i, answer) {
		json_t *counters = json_object_get(answer, "counters");
		const char *name;
		json_t *value;

		json_object_foreach(counters, name, value) {
			uint64_t sum = member_number(sums, name, 0) + member_number(counters, name, 0);

			json_object_set_new(sums, name, json_integer((json_int_t)sum));
		}
	}
	return sums;
}

static void exits_print(const GArray *rows, FILE *to)
{
	if (rows->len == 0)
		return;
	fprintf(to, "\n%12s %12s %10s  %s\n", "EXITS", "MS IN VMM", "US EACH", "HANDLED BY THE VMM");
	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);
		g_autofree char *name = text_printable(row->name);

		fprintf(to, "%12" PRIu64 " %12.3f %10.2f  %s\n", row->count, (double)row->ns / 1e6,
		        row->count != 0 ? (double)row->ns / 1e3 / (double)row->count : 0, name);
	}
}

static void host_counters_print(json_t *counters, FILE *to)
{
	const char *name;
	json_t *value;

	if (json_object_size(counters) == 0)
		return;
	fprintf(to, "\n%12s  %s\n", "COUNT", "COUNTED BY THE HOST");
	json_object_foreach(counters, name, value) {
		g_autofree char *printable = text_printable(name);

		if (json_integer_value(value) != 0)
			fprintf(to, "%12" PRIu64 "  %s\n", (uint64_t)json_integer_value(value), printable);
	}
}

static void stat_print_json(const struct vcpu_clocks *vcpus, size_t n, const GArray *rows, json_t *counters,
                            json_t *events, json_t *end, FILE *to)
{
	json_t *report = vcpu_clocks_json(vcpus, n);

	json_object_set_new(report, "exits", exit_rows_json(rows));
	json_object_set(report, "counters", counters);
	if (events)
		json_object_set(report, "events", events);
	json_object_set(report, "end", end);
	text_print_json(report, 0, to);
	json_decref(report);
}

void stat_print(const json_t *answers, json_t *events, json_t *end, bool json, FILE *to)
{
	const size_t n = MIN(json_array_size(answers), VCPU_CLOCKS_MAX);
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];
	g_autoptr(GArray) rows = exit_rows_sum(answers);
	json_t *counters = counters_sum(answers);

	for (size_t i = 0; i < n; i++)
		vcpus[i] = vcpu_clocks_parse(json_array_get(answers, i));
	vcpu_clocks_say_missing(answers);
	if (json) {
		stat_print_json(vcpus, n, rows, counters, events, end, to);
	} else {
		vcpu_clocks_print_table(vcpus, n, to);
		exits_print(rows, to);
		host_counters_print(counters, to);
		if (events) {
			fputc('\n', to);
			counters_print(events, false, to);
		}
	}
	json_decref(counters);
}

/* ---- of a guest that is attached for a while ---- */

static bool execute(struct engine_process *engine, const char *method, GError **error)
{
	json_t *answer = engine_process_execute(engine, method, NULL, error);

	json_decref(answer);
	return answer != NULL;
}

/* Counts until the given time is over, the guest ends or a signal arrives. */
static json_t *clocks_follow(struct run_loop *loop, GError **error)
{
	json_t *guest = engine_process_execute(loop->engine, "query-guest", NULL, error), *answers = NULL;

	if (guest && execute(loop->engine, "vcpu-time-reset", error) && execute(loop->engine, "guest-start", error)) {
		g_autofree char *name = text_printable(member_text(guest, "name"));

		say("counting %s; Ctrl-C ends the count and prints it", name);
		loop->terminal = terminal_new(false);
		run_loop_run(loop);
		terminal_free(g_steal_pointer(&loop->terminal));
		if (loop->engine_gone)
			say("the engine is gone, and its clocks with it; %s keeps running", name);
		else
			answers =
				vcpu_clocks_query(engine_process_client(loop->engine),
			                          (unsigned)member_number(guest, "vcpus", 0), ANSWER_TIMEOUT_MS, error);
	}
	json_decref(guest);
	return answers;
}

static int clocks_print(struct run_loop *loop, bool json)
{
	g_autoptr(GError) error = NULL;
	json_t *answers = clocks_follow(loop, &error);

	run_loop_signals_release();
	if (error)
		return failure(error);
	if (!answers)
		return STATUS_FAILED;
	engine_process_quit(loop->engine);
	/* A reader that closes the pipe must not cause an error message. */
	signal(SIGPIPE, SIG_DFL);
	stat_print(answers, NULL, loop->end, json, stdout);
	json_decref(answers);
	return STATUS_OK;
}

int attach_stat(const struct attach_engine_options *options, const char *domain, const char *duration, bool json)
{
	g_autoptr(GError) error = NULL;
	struct run_loop loop = {.signalfd = run_loop_signals(false, &error)};
	int status = STATUS_FAILED;

	if (loop.signalfd < 0)
		return failure(error);
	loop.engine = attach_engine_start(options, domain, duration, &status, &error);
	if (loop.engine)
		status = clocks_print(&loop, json);
	else if (!g_error_matches(error, ENGINE_PROCESS_ERROR,
	                          ENGINE_PROCESS_ERROR_REFUSED)) /* otherwise it has printed the reason */
		status = failure(error);
	engine_process_free(loop.engine);
	json_decref(loop.end);
	close(loop.signalfd);
	return status;
}
