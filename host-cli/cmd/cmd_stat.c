// SPDX-License-Identifier: BSD-2-Clause
#include <signal.h>
#include <stdio.h>
#include <vprof/control.h>

#include "attach/attach.h"
#include "cmd/command.h"
#include "engine/attach_engine.h"
#include "engine/counters.h"
#include "engine/engine_process.h"
#include "reading/vcpu_clocks.h"
#include "run/guest_run.h"
#include "ui/message.h"
#include "ui/text.h"

#define ANSWER_TIMEOUT_MS 10000u

struct stat_values {
	struct guest_run_options guest;
	struct attach_engine_options engine;
	char **events;
	uint64_t interval_s, vcpu;
	gboolean json;
};

struct stat {
	const struct stat_values *given;
	struct guest_run base;
	json_t *answers; /* answers to query-vcpu-time at the end of the command; NULL: not yet */
	json_t *events;  /* the counters of --event; NULL: none */
	json_t *last;    /* answers at the last interval; NULL: none yet */
	struct stat_output output;
	char **counted; /* of --event, without mmio and ioport; NULL: none */
};

static const struct stat_values defaults = {.vcpu = OPTION_NUMBER_NONE};

static const struct option_row options[] = {
	OPTION_ROWS(guest_run_option_rows, struct stat_values, guest),
	OPTION_ROWS(attach_guest_option_rows, struct stat_values, engine),
	{"event", OPTION_LIST, offsetof(struct stat_values, events),
         "mmio or ioport: also print the accesses that KVM or the VMM emulates; another: also count this event in the "
         "whole guest; may be repeated",
         "EVENT", "@events"},
	{"interval", OPTION_TIME, offsetof(struct stat_values, interval_s), "print every TIME, and at the end", "TIME"},
	{"vcpu", OPTION_NUMBER, offsetof(struct stat_values, vcpu), "print the exits of vCPU N only, from 0", "N",
         .max = VPROF_VCPUS_MAX - 1},
	{"json", OPTION_FLAG, offsetof(struct stat_values, json),
         "print a JSON object; hides the guest's console unless --console is given", NULL},
	{NULL},
};

static json_t *clocks_query(const struct stat *stat, GError **error)
{
	const unsigned vcpus = (unsigned)member_number(stat->base.guest, "vcpus", 0);

	return vcpu_clocks_query(engine_process_client(stat->base.engine), vcpus, ANSWER_TIMEOUT_MS, error);
}

/* Whether only the time of the command is measured, instead of the whole run of the guest. */
static bool has_window(const struct stat *stat)
{
	return stat->base.plan && !stat->base.plan->from_boot;
}

static bool events_do(const struct stat *stat, const char *method, bool keep, GError **error)
{
	return !stat->events ||
	       counters_for_all(engine_process_client(stat->base.engine), stat->events, method, keep, error);
}

static bool events_open(struct stat *stat, GError **error)
{
	const struct counters_kind kind = {.mode = "guest-counting"};

	if (!stat->counted || !stat->counted[0])
		return true;
	stat->events = counters_allocate(engine_process_client(stat->base.engine), stat->counted, &kind, error);
	return stat->events && (has_window(stat) || events_do(stat, "counter-start", false, error));
}

static bool on_command_begins(void *data, GError **error)
{
	const struct stat *stat = data;

	if (!has_window(stat))
		return true;
	return engine_tell(engine_process_client(stat->base.engine), "vcpu-time-reset", NULL, error) &&
	       events_do(stat, "counter-start", false, error);
}

/* Reads the counters and clocks. */
static void measure(struct stat *stat, GError **error)
{
	if (events_do(stat, "counter-read", true, error))
		stat->answers = clocks_query(stat, error);
}

/* If the guest ended with its command, its clocks have stopped and can be read later. */
static void on_command_ended(void *data)
{
	struct stat *stat = data;

	if (has_window(stat) && !stat->base.loop.engine_gone)
		measure(stat, NULL);
}

static FILE *stat_stream(const struct stat *stat)
{
	return stat->base.exec ? stderr : stdout;
}

/* Between two intervals; an engine that does not answer is gone, which the loop notices. */
static void on_interval(void *data)
{
	struct stat *stat = data;
	json_t *answers = clocks_query(stat, NULL);

	if (!answers)
		return;
	stat_print(&stat->output, stat->last, answers, NULL, NULL, stat_stream(stat));
	if (!stat->output.json)
		fputc('\n', stat_stream(stat));
	json_decref(stat->last);
	stat->last = answers;
}

static void on_mark(const char *name, bool begins, uint64_t time_ns, void *data)
{
	(void)name;
	(void)begins;
	(void)time_ns;
	(void)data;
}

static void stat_prepare_exec(struct stat *stat)
{
	const struct exec_hooks hooks = {
		.begin = on_command_begins,
		.end = on_command_ended,
		.mark = on_mark,
		.data = stat,
	};

	if (stat->base.exec)
		exec_set_hooks(stat->base.exec, &hooks);
}

/* After the guest, while the engine is still there. */
static int stat_conclude(struct stat *stat)
{
	struct guest_run *run = &stat->base;
	g_autoptr(GError) error = NULL;

	if (!run->loop.engine_gone) {
		if (!stat->answers)
			measure(stat, &error);
		engine_process_quit(run->engine);
	}
	if (run->loop.stop_asked)
		run_loop_signals_release();
	guest_run_say_end(run, "its clocks are gone with it");
	if (error)
		return failure(error);
	/* A reader that closes the pipe must not cause an error message. */
	signal(SIGPIPE, SIG_DFL);
	if (stat->answers)
		stat_print(&stat->output, stat->last, stat->answers, stat->events, run->loop.end, stat_stream(stat));
	return guest_run_status(run);
}

static int stat_all(struct stat *stat)
{
	struct guest_run *run = &stat->base;
	g_autoptr(GError) error = NULL;
	int status = guest_run_open(run);

	if (status != STATUS_OK)
		return status;
	stat_prepare_exec(stat);
	if (stat->output.interval_s != 0) {
		run->loop.on_interval = on_interval;
		run->loop.interval_data = stat;
		run->loop.interval_s = stat->output.interval_s;
	}
	if (!events_open(stat, &error))
		return failure(error);
	if (!guest_run_go(run, NULL, &error))
		return failure(error);
	if (run->loop.left_at_once) {
		say("left at once");
		return guest_run_abandon(run);
	}
	return stat_conclude(stat);
}

/* For a guest that runs already; options for booting one do not apply. */
static int stat_attached(const struct stat *stat, const char *domain)
{
	const struct stat_values *given = stat->given;
	g_autoptr(GError) error = NULL;

	if (given->guest.kernel || given->guest.demo)
		return usage_error(command_stat.name, "--kernel and --demo do not apply to a guest that runs already");
	if (given->guest.exec.command || stat->counted[0])
		return usage_error(command_stat.name, "%s is for a guest that `vprof stat` boots",
		                   given->guest.exec.command ? "--exec" : "--event of a counter");
	if (!attach_engine_check(&given->engine, domain, &error))
		return usage_error(command_stat.name, "%s", error->message);
	return attach_stat(&given->engine, domain, given->guest.duration_s, &stat->output);
}

/* What is printed, and which of the events are counters. */
static void stat_parse(struct stat *stat)
{
	const struct stat_values *given = stat->given;
	GPtrArray *counted = g_ptr_array_new();

	stat->output = (struct stat_output){
		.json = given->json,
		.vcpu = given->vcpu != OPTION_NUMBER_NONE ? (int)given->vcpu : -1,
		.interval_s = given->interval_s,
	};
	for (char **event = given->events; event && *event; event++) {
		if (g_str_equal(*event, "mmio"))
			stat->output.mmio = true;
		else if (g_str_equal(*event, "ioport"))
			stat->output.ioport = true;
		else
			g_ptr_array_add(counted, *event);
	}
	g_ptr_array_add(counted, NULL);
	stat->counted = (char **)g_ptr_array_free(counted, FALSE);
}

static int stat_run(void *values, unsigned n, char **arguments)
{
	struct stat_values *given = values;
	g_autoptr(GError) error = NULL;
	struct stat stat = {.given = given, .base = {.options = &given->guest}};
	int status;

	stat_parse(&stat);
	if (n == 0 && given->engine.pid == 0 && !guest_run_check(&given->guest, &error)) {
		g_free(stat.counted);
		return usage_error(command_stat.name, "%s", error->message);
	}
	if (n > 0 || given->engine.pid != 0) {
		status = stat_attached(&stat, n > 0 ? arguments[0] : NULL);
		g_free(stat.counted);
		return status;
	}
	if (given->json && !given->guest.console)
		given->guest.console = g_strdup("none");
	status = stat_all(&stat);
	guest_run_clear(&stat.base);
	json_decref(stat.answers);
	json_decref(stat.events);
	json_decref(stat.last);
	g_free(stat.counted);
	return status;
}

const struct command command_stat = {
	.name = "stat",
	.summary = "Count where the time of a guest's vCPUs goes",
	.arguments = "[DOMAIN]",
	.max_arguments = 1,
	.argument_words = {"@guests"},
	.manual = "vprof-stat",
	.description =

		"Nothing is sampled. At the end, or every TIME (--interval), vprof divides the wall time of each\n"
		"vCPU into the guest, exits handled by KVM and by the VMM, halted, waiting for a host CPU, not\n"
		"started yet, and a residual. It then prints the processor's exits by reason, if KVM's trace points\n"
		"can be read, the returns to the VMM, and what KVM and perf have counted. The exit status is the\n"
		"booted guest's, as for `vprof run`.\n"
		"With --exec, only the command is measured (with --from-boot, the whole guest), and the results go\n"
		"to standard error after the command's own output.\n"
		"With --event, more is counted in the whole guest: the events that `vprof counter host` lists.\n"
		"--event ioport and --event mmio print the ports and the addresses that the guest accesses.\n"
		"With DOMAIN or --pid, the guest runs already and keeps running. Only --duration, --interval,\n"
		"--vcpu, --event mmio and ioport, --json and the options that select the guest apply then.\n"
		"\n"
		"Examples:\n"
		"  vprof stat --demo\n"
		"  vprof stat --kernel vmlinuz --exec './bench --iterations 1000'\n"
		"  vprof stat --kernel vmlinuz --initrd initrd.img -e cycles:u,cycles:k\n"
		"  vprof stat --kernel vmlinuz --initrd initrd.img --console boot.log\n"
		"  vprof stat --kernel vmlinux --duration 10s --json | jq '.exits[0]'\n"
		"  vprof stat web01 --duration 10s\n"
		"  vprof stat web01 --interval 1 --event ioport,mmio",
	.options = options,
	.values_bytes = sizeof(struct stat_values),
	.defaults = &defaults,
	.run = stat_run,
};
