// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "guest_run.h"
#include "message.h"
#include "text.h"
#include "vcpu_clocks.h"

#define ANSWER_TIMEOUT_MS 10000u

static struct {
	gboolean json;
} given;

static const GOptionEntry options[] = {
	GUEST_RUN_OPTIONS,
	{"json", 'j', 0, G_OPTION_ARG_NONE, &given.json,
         "print a JSON object; the guest's console is nowhere, unless --console says where", NULL},
	{NULL},
};

/* An exit by its name, of all vCPUs. */
struct exit_row {
	const char *name;
	uint64_t count, ns;
};

static int by_time(gconstpointer a, gconstpointer b)
{
	const struct exit_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static struct exit_row *row_of(GArray *rows, const char *name)
{
	struct exit_row fresh = {.name = name};

	for (guint i = 0; i < rows->len; i++)
		if (strcmp(g_array_index(rows, struct exit_row, i).name, name) == 0)
			return &g_array_index(rows, struct exit_row, i);
	g_array_append_val(rows, fresh);
	return &g_array_index(rows, struct exit_row, rows->len - 1);
}

/* Those that took longest first. Names are the answers'. */
static GArray *exits_sum(const json_t *answers)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct exit_row));
	const json_t *answer, *exit;
	size_t i, j;

	json_array_foreach(answers, i, answer)
	{
		json_array_foreach(json_object_get(answer, "exits"), j, exit)
		{
			const char *name = member_text(exit, "name");
			struct exit_row *row = row_of(rows, name != NULL ? name : "?");

			row->count += member_number(exit, "count", 0);
			row->ns += member_number(exit, "ns", 0);
		}
	}
	g_array_sort(rows, by_time);
	return rows;
}

/* What KVM counts, of all vCPUs: NAME: N. New object. */
static json_t *counters_sum(const json_t *answers)
{
	json_t *sums = json_object();
	const json_t *answer;
	size_t i;

	json_array_foreach(answers, i, answer)
	{
		json_t *counters = json_object_get(answer, "counters");
		const char *name;
		json_t *value;

		json_object_foreach(counters, name, value)
		{
			uint64_t sum = member_number(sums, name, 0) + member_number(counters, name, 0);

			json_object_set_new(sums, name, json_integer((json_int_t)sum));
		}
	}
	return sums;
}

static void exits_print(const GArray *rows)
{
	printf("\n%12s %12s %10s  %s\n", "EXITS", "MS IN VMM", "US EACH", "HANDLED BY THE VMM");
	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);
		g_autofree char *name = text_printable(row->name);

		printf("%12" PRIu64 " %12.3f %10.2f  %s\n", row->count, (double)row->ns / 1e6,
		       row->count != 0 ? (double)row->ns / 1e3 / (double)row->count : 0, name);
	}
}

static void counters_print(json_t *counters)
{
	const char *name;
	json_t *value;

	if (json_object_size(counters) == 0)
		return;
	printf("\n%12s  %s\n", "COUNT", "COUNTED BY KVM");
	json_object_foreach(counters, name, value)
	{
		g_autofree char *printable = text_printable(name);

		if (json_integer_value(value) != 0)
			printf("%12" PRIu64 "  %s\n", (uint64_t)json_integer_value(value), printable);
	}
}

static json_t *exits_json(const GArray *rows)
{
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", row->name, "count",
		                                      (json_int_t)row->count, "ns", (json_int_t)row->ns));
	}
	return list;
}

static void stat_print_json(const struct vcpu_clocks *vcpus, size_t n, const GArray *rows, json_t *counters,
                            json_t *end)
{
	json_t *report = vcpu_clocks_json(vcpus, n);

	json_object_set_new(report, "exits", exits_json(rows));
	json_object_set(report, "counters", counters);
	json_object_set(report, "end", end);
	json_dumpf(report, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(report);
}

static void stat_print(const struct guest_run *run, const json_t *answers)
{
	const size_t n = MIN(json_array_size(answers), VCPU_CLOCKS_MAX);
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];
	g_autoptr(GArray) rows = exits_sum(answers);
	json_t *counters = counters_sum(answers);

	for (size_t i = 0; i < n; i++)
		vcpus[i] = vcpu_clocks_parse(json_array_get(answers, i));
	vcpu_clocks_say_missing(answers);
	if (given.json) {
		stat_print_json(vcpus, n, rows, counters, run->loop.end);
	} else {
		vcpu_clocks_print_table(vcpus, n, stdout);
		exits_print(rows);
		counters_print(counters);
	}
	json_decref(counters);
}

/* After the guest, while the engine is still there. */
static int stat_conclude(struct guest_run *run)
{
	const unsigned vcpus = (unsigned)member_number(run->guest, "vcpus", 0);
	g_autoptr(GError) error = NULL;
	json_t *answers = NULL;

	if (!run->loop.engine_gone) {
		answers = vcpu_clocks_query(engine_client(run->engine), vcpus, ANSWER_TIMEOUT_MS, &error);
		json_decref(engine_execute(run->engine, "quit", NULL, NULL));
	}
	if (run->loop.stop_asked)
		run_loop_signals_release();
	guest_run_say_end(run, "its clocks are gone with it");
	if (error != NULL)
		return failure(error);
	/* Whoever reads no further than this wants silence. */
	signal(SIGPIPE, SIG_DFL);
	if (answers != NULL)
		stat_print(run, answers);
	json_decref(answers);
	return guest_run_status(run);
}

static int stat_all(struct guest_run *run)
{
	g_autoptr(GError) error = NULL;
	int status = guest_run_open(run);

	if (status != STATUS_OK)
		return status;
	if (!guest_run_go(run, NULL, &error))
		return failure(error);
	if (run->loop.left_at_once) {
		say("left at once");
		return guest_run_abandon(run);
	}
	return stat_conclude(run);
}

static int stat_run(unsigned n, char **arguments)
{
	g_autoptr(GError) error = NULL;
	struct guest_run run = {.engine = NULL};
	int status;

	(void)n;
	(void)arguments;
	if (!guest_run_check(&error))
		return usage_error(command_stat.name, "%s", error->message);
	if (given.json && guest_run_options.console == NULL)
		guest_run_options.console = g_strdup("none");
	status = stat_all(&run);
	guest_run_clear(&run);
	return status;
}

const struct command command_stat = {
	.name = "stat",
	.summary = "Boot a kernel in a virtual machine and count what its vCPUs do",
	.arguments = "",
	.manual = "vprof-stat",
	.description = "Nothing is sampled. At the guest's end, the wall time of each vCPU is told by its parts: the "
		       "guest, exits\n"
		       "handled by the VMM, halted, waiting for a host CPU, not started yet, and a residual; then the "
		       "exits by\n"
		       "reason and what KVM has counted. The exit status is the guest's, as that of `vprof run`.\n"
		       "\n"
		       "Examples:\n"
		       "  vprof stat --demo\n"
		       "  vprof stat --kernel vmlinuz --initrd initrd.img --console boot.log\n"
		       "  vprof stat --kernel vmlinux --duration 10s --json | jq '.exits[0]'",
	.options = options,
	.run = stat_run,
};
