// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the recordings for the pages to look at, in the current folder: base.data and new.data, of the same work
 * before and after a change, and renamed.data, where old_path has got another name; repeats.data and slower.data, with
 * repetitions, in which hash_blocks takes longer; hostile.data, with names that would
 * like to be markup; stacks.data, with 200,000 different call chains.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "lib/record/record.h"
#include "lib/record/writer.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define FUNCTION_BYTES 0x100u
#define START_NS UINT64_C(7000000000)
#define PERIOD_NS UINT64_C(1000000)
#define DEPTH_MAX 32u
#define EXIT_IO 2u /* KVM_EXIT_IO */

#define REPEATS 8u
#define N_PHASES 11u

#define N_STACKS 200000u
#define N_FUNCTIONS 4000u
#define STACK_DEPTH 24u

static const uint64_t ids[] = {11, 12};

static void must(bool done, GError *error)
{
	if (done)
		return;
	fprintf(stderr, "make_pages: %s\n", error->message);
	exit(1);
}

struct output {
	struct recording_writer *writer;
	struct recording_symbol *symbols;
	size_t n_symbols;
	uint64_t time_ns;
};

static uint64_t function_address(unsigned function)
{
	return TEXT + (uint64_t)function * FUNCTION_BYTES;
}

static void output_open(struct output *output, const char *path, const char *const *names, size_t n)
{
	struct recording_event event = {.name = "task-clock", .ids = ids, .n_ids = 2};
	GError *error = NULL;

	event.attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.size = VPROF_ATTR_BYTES,
		.sample_type = VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN,
		.sample_period = PERIOD_NS,
		.sample_id_all = 1,
	};
	*output = (struct output){.symbols = g_new0(struct recording_symbol, n), .n_symbols = n, .time_ns = START_NS};
	for (size_t i = 0; i < n; i++)
		output->symbols[i] = (struct recording_symbol){function_address((unsigned)i), FUNCTION_BYTES, names[i],
		                                               i == 0 ? "module" : ""};
	output->writer = recording_writer_open(path, &event, 1, &error);
	must(output->writer != NULL, error);
}

static void output_close(struct output *output, const char *description)
{
	const struct recording_features features = {
		.arch = ARCH_X86_64,
		.release = "6.1.0-page",
		.version = "0.1.0",
		.vcpus = 2,
		.description = description,
		.symbols = output->symbols,
		.n_symbols = output->n_symbols,
	};
	GError *error = NULL;

	must(recording_writer_finish(output->writer, &features, &error), error);
	recording_writer_free(output->writer);
	g_free(output->symbols);
}

static void write_record(struct output *output, const uint64_t *bytes)
{
	GError *error = NULL;

	must(recording_writer_record(output->writer, (const struct perf_event_header *)bytes, &error), error);
}

static void write_comm(struct output *output, uint32_t pid, const char *comm)
{
	const struct record_id id = {.pid = pid, .tid = pid, .time_ns = START_NS, .id = ids[0]};
	const struct record_comm said = {.pid = pid, .tid = pid, .comm = {comm}};
	uint64_t bytes[16];

	record_comm_encode(&said, &id, bytes, sizeof(bytes));
	write_record(output, bytes);
}

/* functions: callers first. A millisecond later than the one before. */
static void write_sample(struct output *output, uint32_t cpu, uint32_t pid, uint16_t misc, const unsigned *functions,
                         unsigned depth)
{
	uint64_t chain[DEPTH_MAX + 1] = {misc == PERF_RECORD_MISC_USER ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL};
	uint64_t bytes[DEPTH_MAX + 32];
	struct record_sample sample = {
		.id = ids[cpu],
		.pid = pid,
		.tid = pid,
		.cpu = cpu,
		.misc = misc,
		.time_ns = output->time_ns,
		.period = PERIOD_NS,
		.chain = chain,
		.n_chain = depth + 1,
	};

	for (unsigned i = 0; i < depth; i++)
		chain[depth - i] = function_address(functions[i]) + 8;
	sample.ip = chain[1];
	output->time_ns += PERIOD_NS;
	record_sample_encode(&sample, true, bytes, sizeof(bytes));
	write_record(output, bytes);
}

static void write_exit(struct output *output)
{
	uint64_t bytes[32];
	const struct record_sample sample = {
		.id = ids[1],
		.ip = vprof_exit_ip(EXIT_IO, 0x3f8),
		.cpu = 1,
		.time_ns = output->time_ns,
		.period = PERIOD_NS,
		.misc = PERF_RECORD_MISC_HYPERVISOR,
	};

	output->time_ns += PERIOD_NS;
	record_sample_encode(&sample, true, bytes, sizeof(bytes));
	write_record(output, bytes);
}

enum { MAIN, PARSE, READ_TOKEN, HASH, OLD_PATH, NEW_PATH, IDLE, SLOW_OLD_PATH };
static const char *const work_names[] = {"main",     "parse",    "read_token",   "hash_blocks.constprop.0",
                                         "old_path", "new_path", "default_idle", "slow_old_path"};

static void write_work(struct output *output, unsigned leaf, unsigned count)
{
	const unsigned through[] = {MAIN, leaf == READ_TOKEN ? PARSE : leaf, leaf};

	for (unsigned i = 0; i < count; i++)
		write_sample(output, 0, 100, PERF_RECORD_MISC_USER, through, leaf == READ_TOKEN ? 3 : 2);
}

/* 300 ms of tokens within the phase "tokens", then the rest; after that 100 ms idle and 20 in an exit on vCPU 1. */
static void work_make(const char *path, unsigned frequency_hz, unsigned hash, unsigned other, unsigned other_count)
{
	static const unsigned idle[] = {IDLE};
	g_autofree char *description = g_strdup_printf(
		"{\"version\": 1, \"host-cpu\": \"Page CPU\", \"rate\": {\"frequency-hz\": %u}, \"marks\": ["
		"{\"name\": \"tokens\", \"kind\": \"begin\", \"time-ns\": 7000000000},"
		"{\"name\": \"tokens\", \"kind\": \"end\", \"time-ns\": 7300000000}]}",
		frequency_hz);
	struct output output;

	output_open(&output, path, work_names, G_N_ELEMENTS(work_names));
	write_comm(&output, 100, "bench");
	write_comm(&output, 0, "swapper");
	write_work(&output, READ_TOKEN, 300);
	write_work(&output, HASH, hash);
	write_work(&output, other, other_count);
	for (unsigned i = 0; i < 100; i++)
		write_sample(&output, 1, 0, PERF_RECORD_MISC_KERNEL, idle, 1);
	for (unsigned i = 0; i < 20; i++)
		write_exit(&output);
	output_close(&output, description);
}

static void marks_append(GString *marks, const char *name, const struct output *output, uint64_t from_ns)
{
	g_string_append_printf(marks,
	                       "%s{\"name\": \"%s\", \"kind\": \"begin\", \"time-ns\": %" PRIu64 "},"
	                       "{\"name\": \"%s\", \"kind\": \"end\", \"time-ns\": %" PRIu64 "}",
	                       marks->len != 0 ? "," : "", name, from_ns, name, output->time_ns);
}

static void phase_append(GString *marks, GString *runs, const char *name, const struct output *output, uint64_t from_ns)
{
	marks_append(marks, name, output, from_ns);
	g_string_append_printf(runs, "%s{\"phase\": \"%s\", \"status\": 0}", runs->len != 0 ? "," : "", name);
}

/*
 * A warm-up with a function of its own and repetitions with 10 ms idle before each: `hash` in hash_blocks, and
 * about as much in read_token as in any other such recording, now more and now less (odd: in turn with the other ones).
 */
static void repeats_make(const char *path, unsigned hash, unsigned odd)
{
	static const unsigned idle[] = {IDLE};
	g_autoptr(GString) marks = g_string_new(NULL), runs = g_string_new(NULL);
	g_autofree char *description = NULL;
	struct output output;

	output_open(&output, path, work_names, G_N_ELEMENTS(work_names));
	write_comm(&output, 100, "bench");
	write_work(&output, OLD_PATH, 100);
	phase_append(marks, runs, "warmup-1", &output, START_NS);
	for (unsigned i = 0; i < REPEATS; i++) {
		g_autofree char *name = g_strdup_printf("repeat-%u", i + 1);
		uint64_t from_ns;

		for (unsigned j = 0; j < 10; j++)
			write_sample(&output, 1, 0, PERF_RECORD_MISC_KERNEL, idle, 1);
		from_ns = output.time_ns;
		write_work(&output, READ_TOKEN, (i + odd) % 2 != 0 ? 40 : 48);
		write_work(&output, HASH, hash + i);
		phase_append(marks, runs, name, &output, from_ns);
	}
	description = g_strdup_printf("{\"version\": 1, \"rate\": {\"frequency-hz\": 999}, \"marks\": [%s], "
	                              "\"exec\": {\"command\": [\"./bench\"], \"runs\": [%s]}}",
	                              marks->str, runs->str);
	output_close(&output, description);
}

/* N_PHASES with names of their own, of 5 ms each. */
static void phases_make(const char *path)
{
	static const char names[N_PHASES][8] = {"boot",  "load", "parse", "check", "plan", "build",
	                                        "merge", "sort", "write", "sync",  "stop"};
	g_autoptr(GString) marks = g_string_new(NULL);
	g_autofree char *description = NULL;
	struct output output;

	output_open(&output, path, work_names, G_N_ELEMENTS(work_names));
	write_comm(&output, 100, "bench");
	for (unsigned i = 0; i < N_PHASES; i++) {
		uint64_t from_ns = output.time_ns;

		write_work(&output, HASH, 5);
		marks_append(marks, names[i], &output, from_ns);
	}
	description = g_strdup_printf("{\"version\": 1, \"marks\": [%s]}", marks->str);
	output_close(&output, description);
}

static void hostile_make(const char *path)
{
	static const char *const names[] = {
		"</script><script>document.title='owned'</script>",
		"<img src=x onerror=\"document.title='owned'\">",
		"<!--<script>",
		"@vprof-data@ $& ${x} %s &lt;b&gt; \\u003c",
		"__proto__",
		"right\xe2\x80\xae!left \xff\xfe",
	};
	struct output output;

	output_open(&output, path, names, G_N_ELEMENTS(names));
	write_comm(&output, 66, "</script><b>");
	for (unsigned i = 0; i < G_N_ELEMENTS(names); i++)
		write_sample(&output, 0, 66, PERF_RECORD_MISC_KERNEL, &i, 1);
	output_close(
		&output,
		"{\"version\": 1, \"marks\": [{\"name\": \"</script><i>\", \"kind\": \"begin\", \"time-ns\": 7000000000}]}");
}

static unsigned next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u; /* Numerical Recipes */
	return *state >> 8;
}

/* Each chain leaves the one before somewhere and ends in a function that says its number. */
static void stacks_make(const char *path)
{
	g_auto(GStrv) names = g_new0(char *, N_FUNCTIONS + 1);
	unsigned functions[STACK_DEPTH];
	uint32_t state = 1;
	struct output output;

	for (unsigned i = 0; i < N_FUNCTIONS; i++)
		names[i] = g_strdup_printf("function_%u", i);
	for (unsigned i = 0; i < STACK_DEPTH; i++)
		functions[i] = i;
	output_open(&output, path, (const char *const *)names, N_FUNCTIONS);
	write_comm(&output, 100, "bench");
	for (unsigned i = 0; i < N_STACKS; i++) {
		unsigned from = 1;

		/* Mostly near the leaf. */
		for (unsigned draw = 0; draw < 8; draw++)
			from = MAX(from, 1 + next_random(&state) % (STACK_DEPTH - 3));
		for (unsigned level = from; level < STACK_DEPTH - 2; level++)
			functions[level] = next_random(&state) % N_FUNCTIONS;
		functions[STACK_DEPTH - 2] = i % N_FUNCTIONS;
		functions[STACK_DEPTH - 1] = i / N_FUNCTIONS;
		write_sample(&output, i % 2, 100, PERF_RECORD_MISC_KERNEL, functions, STACK_DEPTH);
	}
	output_close(&output, "{\"version\": 1}");
}

int main(void)
{
	work_make("base.data", 999, 500, OLD_PATH, 100);
	work_make("new.data", 999, 700, NEW_PATH, 50);
	work_make("renamed.data", 999, 500, SLOW_OLD_PATH, 120);
	work_make("other.data", 99, 500, OLD_PATH, 100);
	repeats_make("repeats.data", 60, 0);
	repeats_make("slower.data", 90, 1);
	phases_make("phases.data");
	hostile_make("hostile.data");
	stacks_make("stacks.data");
	return 0;
}
