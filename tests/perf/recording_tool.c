// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our side of the comparison with perf.
 *
 * recording_tool write FILE KALLSYMS ROUNDS LOST: a recording with known samples, and the kernel's symbols as
 *   /proc/kallsyms has them. Two events, two vCPUs; kernel samples with chains, user and hypervisor samples.
 * recording_tool cut FILE KALLSYMS ROUNDS LOST: the same, never finished.
 * recording_tool cgroups FILE KALLSYMS ROUNDS LOST: as write, and each sample has the cgroup of its task.
 * recording_tool counts FILE: samples by event and symbol, as `perf report -F sample,sym` names them.
 * recording_tool samples FILE: time, event and address of each sample, as `perf script --ns -F time,event,ip` prints.
 * Each of the last two prints the recording's warning on stderr.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vprof/exit.h>

#include "lib/record/reader.h"
#include "lib/record/record.h"
#include "lib/record/writer.h"

#define KERNEL_TEXT UINT64_C(0xffffffff81000000)
#define N_VCPUS 2u

static const uint64_t ids[2][N_VCPUS] = {{11, 12}, {21, 22}};

/* Of `share` samples in 100, in event 0; the second event has them in the other order. */
static const struct {
	const char *name;
	uint64_t address, size;
	unsigned share;
} functions[] = {
	{"alpha", KERNEL_TEXT + 0x1000, 0x100, 50},
	{"beta", KERNEL_TEXT + 0x2000, 0x200, 30},
	{"gamma", KERNEL_TEXT + 0x3000, 0x80, 15},
	{"delta", KERNEL_TEXT + 0x4000, 0x10, 5},
};

/* Of the task that runs on each vCPU. */
static const struct record_cgroup cgroups[N_VCPUS] = {{1, {"/"}}, {7, {"/init.scope"}}};

static struct perf_event_attr attr_make(uint64_t config, bool with_cgroups)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1000000,
		.sample_type = VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | (with_cgroups ? PERF_SAMPLE_CGROUP : 0),
		.read_format = PERF_FORMAT_ID,
		.mmap = 1,
		.comm = 1,
		.task = 1,
		.sample_id_all = 1,
		.exclude_host = 1,
		.mmap2 = 1,
		.comm_exec = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.cgroup = with_cgroups,
	};
}

struct output {
	struct recording_writer *writer;
	bool with_cgroups;
	uint64_t time_ns;
	uint64_t buffer[RECORD_BYTES_MAX / 8];
};

static void die(GError *error)
{
	fprintf(stderr, "recording_tool: %s\n", error->message);
	exit(EXIT_FAILURE);
}

static void put(struct output *out, size_t bytes)
{
	GError *error = NULL;

	g_assert(bytes != 0);
	if (!recording_writer_record(out->writer, (const struct perf_event_header *)out->buffer, &error))
		die(error);
}

static void put_prologue(struct output *out, const uint8_t *build_id, size_t build_id_bytes)
{
	struct record_id id = {.id = ids[0][0]};
	const struct record_mmap kernel = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.start = KERNEL_TEXT,
		.bytes = 0x1000000,
		.page_offset = KERNEL_TEXT,
		.build_id = build_id,
		.build_id_bytes = build_id_bytes,
		.file_name = {RECORD_KERNEL_MAPPING},
	};
	const struct record_comm idle = {.comm = {"swapper"}}, init = {42, 42, true, {"init"}};

	put(out, record_mmap_encode(&kernel, &id, out->buffer, sizeof(out->buffer)));
	put(out, record_comm_encode(&idle, &id, out->buffer, sizeof(out->buffer)));
	id.pid = id.tid = 42;
	put(out, record_comm_encode(&init, &id, out->buffer, sizeof(out->buffer)));
	for (unsigned cpu = 0; out->with_cgroups && cpu < N_VCPUS; cpu++)
		put(out, record_cgroup_encode(&cgroups[cpu], &id, out->buffer, sizeof(out->buffer)));
}

static void put_sample(struct output *out, size_t event, unsigned cpu, uint16_t misc, uint64_t ip)
{
	const uint64_t context = misc == PERF_RECORD_MISC_KERNEL ? PERF_CONTEXT_KERNEL
	                         : misc == PERF_RECORD_MISC_USER ? PERF_CONTEXT_USER
	                                                         : PERF_CONTEXT_HV;
	const uint64_t chain[] = {context, ip, functions[0].address + 4};
	struct record_sample sample = {
		.id = ids[event][cpu],
		.ip = ip,
		.pid = cpu ? 42 : 0,
		.tid = cpu ? 42 : 0,
		.time_ns = out->time_ns += 1000,
		.cpu = cpu,
		.period = 1000000,
		.misc = misc,
		.chain = chain,
		.n_chain = misc == PERF_RECORD_MISC_KERNEL ? 3 : 2,
		.has_cgroup = out->with_cgroups,
		.cgroup = cgroups[cpu].cgroup,
	};

	put(out, record_sample_encode(&sample, true, out->buffer, sizeof(out->buffer)));
}

static void put_round(struct output *out, size_t event, unsigned cpu)
{
	GError *error = NULL;

	for (size_t f = 0; f < G_N_ELEMENTS(functions); f++) {
		size_t share_of = event ? G_N_ELEMENTS(functions) - 1 - f : f;

		for (unsigned i = 0; i < functions[share_of].share; i++)
			put_sample(out, event, cpu, PERF_RECORD_MISC_KERNEL,
			           functions[f].address + i % functions[f].size);
	}
	for (unsigned i = 0; i < 7; i++)
		put_sample(out, event, cpu, PERF_RECORD_MISC_USER, 0x401000 + i);
	for (unsigned i = 0; i < 3; i++)
		put_sample(out, event, cpu, PERF_RECORD_MISC_HYPERVISOR, vprof_exit_ip(2, 0x3f8));
	if (!recording_writer_round(out->writer, &error))
		die(error);
}

static void kallsyms_write(const char *path)
{
	FILE *file = fopen(path, "w");

	g_assert(file);
	fprintf(file, "%016" PRIx64 " T _text\n", KERNEL_TEXT);
	for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
		fprintf(file, "%016" PRIx64 " T %s\n", functions[i].address, functions[i].name);
		fprintf(file, "%016" PRIx64 " t pad%zu\n", functions[i].address + functions[i].size, i);
	}
	fprintf(file, "%016" PRIx64 " T _etext\n", KERNEL_TEXT + 0x1000000);
	fclose(file);
}

static void finish(struct output *out, const uint8_t *build_id, size_t build_id_bytes)
{
	static const char *const cmdline[] = {"vprof", "run", "--kernel", "vmlinux", NULL};
	struct recording_symbol symbols[G_N_ELEMENTS(functions)];
	GError *error = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
		symbols[i] = (struct recording_symbol){functions[i].address, functions[i].size, functions[i].name, ""};
	const struct recording_features features = {
		.arch = ARCH_X86_64,
		.hostname = "guest",
		.release = "6.1.0-test",
		.version = "0.1.0",
		.cmdline = cmdline,
		.vcpus = N_VCPUS,
		.memory_bytes = UINT64_C(512) << 20,
		.kernel_build_id = build_id,
		.kernel_build_id_bytes = build_id_bytes,
		.description = "{\"version\": 1}",
		.symbols = symbols,
		.n_symbols = G_N_ELEMENTS(symbols),
	};
	if (!recording_writer_finish(out->writer, &features, &error))
		die(error);
}

static void recording_write(const char *path, unsigned rounds, unsigned lost, bool cut, bool with_cgroups)
{
	static const uint8_t build_id[20] = {0xde, 0xad, 0xbe, 0xef};
	static struct output out = {.time_ns = 1000000000};
	const struct recording_event events[] = {
		{attr_make(PERF_COUNT_SW_TASK_CLOCK, with_cgroups), "task-clock", ids[0], N_VCPUS},
		{attr_make(PERF_COUNT_SW_CPU_CLOCK, with_cgroups), "timer", ids[1], N_VCPUS},
	};
	GError *error = NULL;

	out.with_cgroups = with_cgroups;
	out.writer = recording_writer_open(path, events, G_N_ELEMENTS(events), &error);
	if (!out.writer)
		die(error);
	put_prologue(&out, build_id, sizeof(build_id));
	for (unsigned round = 0; round < rounds; round++)
		put_round(&out, round % 2, round / 2 % N_VCPUS);
	if (lost) {
		const struct record_id id = {.time_ns = out.time_ns, .cpu = 1, .id = ids[0][1]};

		put(&out, record_lost_encode(&(struct record_lost){id.id, lost}, &id, out.buffer, sizeof(out.buffer)));
		put(&out, record_lost_samples_encode(1, &id, out.buffer, sizeof(out.buffer)));
		for (unsigned ends = 0; ends < 2; ends++)
			put(&out, record_throttle_encode(&(struct record_throttle){ends, id.time_ns + ends, id.id}, &id,
			                                 out.buffer, sizeof(out.buffer)));
	}
	if (!cut)
		finish(&out, build_id, sizeof(build_id));
	recording_writer_free(out.writer);
}

static struct recording *recording_open_or_die(const char *path)
{
	GError *error = NULL;
	struct recording *recording = recording_open(path, &error);

	if (!recording)
		die(error);
	if (recording_warning(recording))
		fprintf(stderr, "recording_tool: %s\n", recording_warning(recording));
	return recording;
}

struct reading {
	struct recording *recording;
	void (*sample)(struct reading *reading, const struct record_sample *sample, const char *event);
	GHashTable *counts; /* "event\tsymbol" -> samples */
};

static bool reading_record(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct reading *reading = data;
	struct record_sample sample;
	int event;

	if (record->type != PERF_RECORD_SAMPLE)
		return true;
	if (!recording_sample(reading->recording, record, bytes, &sample, &event) || event < 0) {
		fprintf(stderr, "recording_tool: a sample cannot be decoded\n");
		exit(EXIT_FAILURE);
	}
	reading->sample(reading, &sample, recording_event(reading->recording, (size_t)event)->name);
	return true;
}

static void reading_run(struct reading *reading, const char *path)
{
	GError *error = NULL;

	reading->recording = recording_open_or_die(path);
	if (!recording_each(reading->recording, reading_record, reading, &error))
		die(error);
	recording_free(reading->recording);
}

static void sample_count(struct reading *reading, const struct record_sample *sample, const char *event)
{
	const uint16_t mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const struct recording_symbol *symbol =
		mode == PERF_RECORD_MISC_KERNEL ? recording_symbol_find(reading->recording, sample->ip) : NULL;
	const char *letter = mode == PERF_RECORD_MISC_KERNEL ? "k" : mode == PERF_RECORD_MISC_USER ? "." : "H";
	char *key = symbol ? g_strdup_printf("%s\t[%s] %s", event, letter, symbol->name)
	                   : g_strdup_printf("%s\t[%s] 0x%016" PRIx64, event, letter, sample->ip);
	guint count = GPOINTER_TO_UINT(g_hash_table_lookup(reading->counts, key));

	g_hash_table_replace(reading->counts, key, GUINT_TO_POINTER(count + 1));
}

static void sample_print(struct reading *reading, const struct record_sample *sample, const char *event)
{
	(void)reading;
	printf("%" PRIu64 ".%09" PRIu64 " %s %" PRIx64 "\n", sample->time_ns / 1000000000, sample->time_ns % 1000000000,
	       event, sample->ip);
}

static void counts_print(const char *path)
{
	g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	struct reading reading = {.sample = sample_count, .counts = counts};
	GHashTableIter all;
	gpointer key, count;

	reading_run(&reading, path);
	g_hash_table_iter_init(&all, counts);
	while (g_hash_table_iter_next(&all, &key, &count))
		printf("%s\t%u\n", (const char *)key, GPOINTER_TO_UINT(count));
}

static unsigned number(const char *text)
{
	return (unsigned)g_ascii_strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	const bool cut = strcmp(command, "cut") == 0, with_cgroups = strcmp(command, "cgroups") == 0;

	if (argc == 6 && (strcmp(command, "write") == 0 || cut || with_cgroups)) {
		recording_write(argv[2], number(argv[4]), number(argv[5]), cut, with_cgroups);
		kallsyms_write(argv[3]);
	} else if (argc == 3 && strcmp(command, "counts") == 0) {
		counts_print(argv[2]);
	} else if (argc == 3 && strcmp(command, "samples") == 0) {
		reading_run(&(struct reading){.sample = sample_print}, argv[2]);
	} else {
		fprintf(stderr,
		        "usage: recording_tool write|cut|cgroups FILE KALLSYMS ROUNDS LOST | counts|samples FILE\n");
		return 2;
	}
	return EXIT_SUCCESS;
}
