// SPDX-License-Identifier: BSD-2-Clause
/* vprof stat: its output, and the clocks of a guest that is attached temporarily. */
#include "attach/attach.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/counters.h"
#include "engine/engine_process.h"
#include "reading/kvm_exits.h"
#include "reading/vcpu_clocks.h"
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
	fprintf(to, "\n%10s %11s %9s  %s\n", "RETURNS", "MS IN VMM", "US EACH", "HANDLED BY THE VMM");
	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);
		g_autofree char *name = text_printable(row->name);

		fprintf(to, "%10" PRIu64 " %11.3f %9.2f  %s\n", row->count, (double)row->ns / 1e6,
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

static void counters_subtract(json_t *counters, const json_t *before)
{
	const char *name;
	json_t *value;

	json_object_foreach(counters, name, value) {
		const json_int_t less = json_integer_value(json_object_get(before, name));

		if (json_integer_value(value) >= less)
			json_integer_set(value, json_integer_value(value) - less);
	}
}

/* What is printed, of all vCPUs but for `exits` and accesses. */
struct stat_facts {
	size_t n;
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];
	GArray *returns;        /* struct exit_row: to the VMM */
	GArray *exits;          /* struct kvm_exit_row */
	GArray *mmio, *ioports; /* struct kvm_access_row; NULL: not wanted */
	json_t *counters;
};

static void facts_init(struct stat_facts *facts, const struct stat_output *output, const json_t *from,
                       const json_t *answers)
{
	*facts = (struct stat_facts){.n = MIN(json_array_size(answers), VCPU_CLOCKS_MAX)};
	for (size_t i = 0; i < facts->n; i++) {
		struct vcpu_clocks now = vcpu_clocks_parse(json_array_get(answers, i));

		facts->vcpus[i] = now;
		if (!from)
			continue;
		const struct vcpu_clocks before = vcpu_clocks_parse(json_array_get(from, i));

		facts->vcpus[i] = vcpu_clocks_between(&before, &now);
	}
	facts->returns = from ? exit_rows_between(from, answers) : exit_rows_sum(answers);
	facts->exits = kvm_exit_rows(from, answers, output->vcpu);
	facts->mmio = output->mmio ? kvm_access_rows(from, answers, output->vcpu, "mmio") : NULL;
	facts->ioports = output->ioport ? kvm_access_rows(from, answers, output->vcpu, "ioport") : NULL;
	facts->counters = counters_sum(answers);
	if (from) {
		json_t *before = counters_sum(from);

		counters_subtract(facts->counters, before);
		json_decref(before);
	}
}

static void facts_clear(struct stat_facts *facts)
{
	g_clear_pointer(&facts->returns, g_array_unref);
	g_clear_pointer(&facts->exits, g_array_unref);
	g_clear_pointer(&facts->mmio, g_array_unref);
	g_clear_pointer(&facts->ioports, g_array_unref);
	json_decref(facts->counters);
}

static void facts_print_json(const struct stat_facts *facts, json_t *events, json_t *end, bool line, FILE *to)
{
	json_t *report = vcpu_clocks_json(facts->vcpus, facts->n);

	json_object_set_new(report, "exits", exit_rows_json(facts->returns));
	json_object_set_new(report, "kvm-exits", kvm_exit_rows_json(facts->exits));
	if (facts->mmio)
		json_object_set_new(report, "mmio", kvm_access_rows_json(facts->mmio));
	if (facts->ioports)
		json_object_set_new(report, "ioports", kvm_access_rows_json(facts->ioports));
	json_object_set(report, "counters", facts->counters);
	if (events)
		json_object_set(report, "events", events);
	json_object_set(report, "end", end);
	if (line) {
		json_write(report, JSON_COMPACT, to);
		fputc('\n', to);
	} else {
		text_print_json(report, 0, to);
	}
	json_decref(report);
}

static void facts_print(const struct stat_facts *facts, const struct stat_output *output, json_t *events, FILE *to)
{
	const struct vcpu_clocks sum = output->vcpu < 0 ? vcpu_clocks_sum(facts->vcpus, facts->n)
	                                                : facts->vcpus[MIN((size_t)output->vcpu, facts->n - 1)];

	vcpu_clocks_print_table(facts->vcpus, facts->n, to);
	kvm_exit_rows_print(facts->exits, sum.parts.wall_ns, to);
	if (facts->mmio)
		kvm_access_rows_print(facts->mmio, "mmio", to);
	if (facts->ioports)
		kvm_access_rows_print(facts->ioports, "ioport", to);
	exits_print(facts->returns, to);
	host_counters_print(facts->counters, to);
	if (events) {
		fputc('\n', to);
		counters_print(events, false, to);
	}
}

void stat_print(const struct stat_output *output, const json_t *from, const json_t *answers, json_t *events,
                json_t *end, FILE *to)
{
	struct stat_facts facts;

	facts_init(&facts, output, from, answers);
	vcpu_clocks_say_missing(answers);
	if (output->json)
		facts_print_json(&facts, events, end, output->interval_s != 0, to);
	else if (facts.n > 0 && !(from && vcpu_clocks_sum(facts.vcpus, facts.n).parts.wall_ns == 0))
		facts_print(&facts, output, events, to);
	fflush(to);
	facts_clear(&facts);
}

/* ---- of a guest that is attached for a while ---- */

/* A count that is under way. */
struct count {
	struct run_loop loop;
	const struct stat_output *output;
	unsigned vcpus;
	json_t *last; /* answers at the last interval; NULL: none yet */
};

static json_t *count_query(const struct count *count, GError **error)
{
	return vcpu_clocks_query(engine_process_client(count->loop.engine), count->vcpus, ANSWER_TIMEOUT_MS, error);
}

/* Prints what has passed since the last time. */
static void count_print(struct count *count, json_t *answers, json_t *end)
{
	stat_print(count->output, count->last, answers, NULL, end, stdout);
	json_decref(count->last);
	count->last = answers;
}

/* An engine that does not answer is gone, which the loop notices. */
static void on_interval(void *data)
{
	struct count *count = data;
	json_t *answers = count_query(count, NULL);

	if (!answers)
		return;
	count_print(count, answers, NULL);
	if (!count->output->json)
		putchar('\n');
}

/* Counts until the given time is over, the guest ends or a signal arrives. */
static json_t *clocks_follow(struct count *count, GError **error)
{
	struct run_loop *loop = &count->loop;
	json_t *guest = engine_ask(engine_process_client(loop->engine), "query-guest", NULL, error), *answers = NULL;

	count->vcpus = (unsigned)member_number(guest, "vcpus", 0);
	if (guest && engine_tell(engine_process_client(loop->engine), "vcpu-time-reset", NULL, error)) {
		g_autofree char *name = text_printable(member_text(guest, "name"));

		say("counting %s; Ctrl-C ends the count and prints it", name);
		const bool followed = run_loop_run(loop, false, error);

		if (followed && loop->engine_gone)
			say("the engine is gone, and its clocks with it; %s keeps running", name);
		else if (followed)
			answers = count_query(count, error);
	}
	json_decref(guest);
	return answers;
}

static int clocks_print(struct count *count)
{
	g_autoptr(GError) error = NULL;
	json_t *answers = clocks_follow(count, &error);

	run_loop_signals_release();
	if (error)
		return failure(error);
	if (!answers)
		return STATUS_FAILED;
	engine_process_quit(count->loop.engine);
	/* A reader that closes the pipe must not cause an error message. */
	signal(SIGPIPE, SIG_DFL);
	count_print(count, answers, count->loop.end);
	return STATUS_OK;
}

int attach_stat(const struct attach_engine_options *options, const char *domain, uint64_t duration_s,
                const struct stat_output *output)
{
	g_autoptr(GError) error = NULL;
	struct count count = {.loop = {.signalfd = run_loop_signals(false, &error)}, .output = output};
	struct run_loop *loop = &count.loop;
	int status = STATUS_FAILED;

	if (loop->signalfd < 0)
		return failure(error);
	if (output->interval_s != 0) {
		loop->on_interval = on_interval;
		loop->interval_data = &count;
		loop->interval_s = output->interval_s;
	}
	loop->engine = attach_engine_start(options, domain, duration_s, &status, &error);
	status = loop->engine ? clocks_print(&count) : engine_process_failure(status, error);
	engine_process_free(loop->engine);
	json_decref(loop->end);
	json_decref(count.last);
	close(loop->signalfd);
	return status;
}
