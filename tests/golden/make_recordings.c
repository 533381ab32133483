// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes the recordings that the golden tests report on, in the current folder. Everything in them is fixed, so that
 * what is printed about them is.
 */
#include "make_recordings.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "../support/elf_builder.h"

#define PROGRAM UINT64_C(0x400000)
#define QEMU UINT64_C(0x555555555000)
#define SLIDE UINT64_C(0x23800000)
#define EXIT_IO 2u /* KVM_EXIT_IO */

const uint64_t clock_ids[2] = {11, 12};
static const uint64_t cycles_ids[] = {21, 22};

const struct recording_symbol symbols[SYMBOLS] = {
	{PROGRAM + 0x10, 0x20, "render", ""},
	{TEXT + 0x100, 0x100, "start_kernel", ""},
	{TEXT + 0x200, 0x40, "memcpy", ""},
	{TEXT + 0x1000000, 0x80, "ext4_lookup", "ext4"},
};

static const struct recording_symbol hostile_symbols[] = {
	{TEXT + 0x100, 0x100, "red\033[31m\nalert", "bad\tmodule"},
	{TEXT + 0x200, 0x40, "not utf-8: \xff\xfe", ""},
};

static const char description[] =
	"{\"version\": 1, \"realtime-offset-ns\": 1700000000000000000,"
	" \"guest\": {\"name\": \"golden\", \"kind\": \"kvm\", \"kernel\": \"/boot/vmlinux\", \"initrd\": null,"
	" \"command-line\": \"console=ttyS0\", \"memory-bytes\": 536870912, \"vcpus\": 2, \"quirks\": []},"
	" \"rate\": {\"frequency-hz\": 999}, \"unwinder\": \"fp\","
	" \"missing\": [\"ORC: /boot/vmlinux has no ORC tables\"],"
	" \"statistics\": {\"total\": {\"sample\": 100, \"dropbuf-sample\": 7, \"throttled\": 3}, \"vcpus\": []},"
	" \"end\": {\"reason\": \"power-off\", \"code\": 0, \"message\": \"the guest powered off\"},"
	" \"phases\": [{\"vcpu\": 0, \"value\": 64, \"time-ns\": 5000000001}]}";

static const char attached_description[] =
	"{\"version\": 1, \"guest\": {\"name\": \"web01\", \"kind\": \"qemu\", \"memory-bytes\": 1073741824, \"vcpus\": 1},"
	" \"rate\": {\"frequency-hz\": 499}, \"missing\": [],"
	" \"statistics\": {\"total\": {\"sample\": 100, \"throttles\": 12, \"throttled-ns\": 345600000}, \"vcpus\": []}}";

/* `count` samples in turn on both vCPUs, at ip, ip + 1, ip + 2, ip + 3, ip, ... */
struct burst {
	uint64_t ip;
	uint16_t misc;
	unsigned count;
};

static const struct burst usual[] = {
	{PROGRAM + 0x10, PERF_RECORD_MISC_USER, 40},    {PROGRAM + 0x800, PERF_RECORD_MISC_USER, 6},
	{TEXT + 0x100, PERF_RECORD_MISC_KERNEL, 24},    {TEXT + 0x200, PERF_RECORD_MISC_KERNEL, 16},
	{TEXT + 0x1000000, PERF_RECORD_MISC_KERNEL, 8}, {TEXT + 0x5000000, PERF_RECORD_MISC_KERNEL, 2},
};

void must(bool done, GError *error)
{
	if (done)
		return;
	fprintf(stderr, "make_recordings: %s\n", error->message);
	exit(1);
}

struct recording_event event_make(const char *name, uint32_t type, uint64_t config, const uint64_t *ids)
{
	struct recording_event event = {.name = name, .ids = ids, .n_ids = 2};

	event.attr.type = type;
	event.attr.config = config;
	event.attr.size = VPROF_ATTR_BYTES;
	event.attr.sample_type = VPROF_SAMPLE_TYPE;
	event.attr.sample_period = 1000000;
	event.attr.sample_id_all = 1;
	return event;
}

void sample_write(struct recording_writer *writer, const struct record_sample *sample)
{
	uint64_t bytes[64];
	GError *error = NULL;

	record_sample_encode(sample, sample->chain != NULL, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/*
 * Round by round as a run drains rings: all of a vCPU's samples, then all of the next one's. `ids` by vCPU; the first
 * sample of vCPU 1 is older than the second of vCPU 0.
 */
static void burst_write(struct recording_writer *writer, const struct burst *burst, const uint64_t *ids,
                        uint64_t *time_ns)
{
	GError *error = NULL;

	for (uint32_t cpu = 0; cpu < 2; cpu++)
		for (unsigned i = cpu; i < burst->count; i += 2) {
			const struct record_sample sample = {
				.id = ids[cpu],
				.ip = burst->misc == PERF_RECORD_MISC_HYPERVISOR ? burst->ip : burst->ip + i % 4,
				.time_ns = *time_ns + i * UINT64_C(1000000),
				.cpu = cpu,
				.period = UINT64_C(1000000) + i,
				.misc = burst->misc,
			};

			sample_write(writer, &sample);
		}
	*time_ns += burst->count * UINT64_C(1000000);
	must(recording_writer_round(writer, &error), error);
}

static void lost_write(struct recording_writer *writer, uint64_t lost)
{
	const struct record_id id = {.id = clock_ids[0], .time_ns = START_NS};
	uint64_t bytes[64];
	GError *error = NULL;

	record_lost_encode(&(struct record_lost){id.id, lost}, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/* of phases.data: nested, open, without a begin, twice; and a guest that writes to port 0x80. */
static const char phases_description[] =
	"{\"version\": 1, \"exec\": {\"command\": [\"./bench\", \"--size=10\", \"two words\"], \"runs\": []},"
	" \"phases\": [{\"vcpu\": 0, \"value\": 64, \"time-ns\": 5000000010}, {\"vcpu\": 0, \"value\": 96, \"time-ns\": 5000000012}],"
	" \"marks\": [{\"name\": \"parse\", \"kind\": \"begin\", \"time-ns\": 5000000002},"
	" {\"name\": \"parse\", \"kind\": \"begin\", \"time-ns\": 5000000003},"
	" {\"name\": \"parse\", \"kind\": \"end\", \"time-ns\": 5000000004},"
	" {\"name\": \"lonely\", \"kind\": \"end\", \"time-ns\": 5000000004},"
	" {\"name\": \"parse\", \"kind\": \"end\", \"time-ns\": 5000000005},"
	" {\"name\": \"part\", \"kind\": \"begin\", \"time-ns\": 5000000018},"
	" {\"name\": \"parse\", \"kind\": \"begin\", \"time-ns\": 5000000007},"
	" {\"name\": \"parse\", \"kind\": \"end\", \"time-ns\": 5000000008}]}";

#define MARK(name, kind, time) "{\"name\": \"" name "\", \"kind\": \"" kind "\", \"time-ns\": " time "}"
#define SPAN(name, begin, end) MARK(name, "begin", begin) ", " MARK(name, "end", end)
#define METRIC(name, value, unit) "{\"name\": \"" name "\", \"value\": " value ", \"unit\": \"" unit "\"}"
#define RUN(name, status, metrics)                                                                         \
	"{\"phase\": \"" name "\", \"status\": " status ", \"user-ns\": 3000000, \"system-ns\": 1000000, " \
	"\"memory-bytes\": 4096, \"metrics\": [" metrics "]}"
/* clang-format off */
#define REPEATS(last_status)                                                                                         \
	"{\"version\": 1, \"marks\": ["                                                                              \
	SPAN("warmup-1", "5000000000", "5000000002") ", " SPAN("repeat-1", "5000000003", "5000000008") ", "          \
	SPAN("repeat-2", "5000000008", "5000000014") ", " SPAN("repeat-3", "5000000015", "5000000020") "], "         \
	"\"exec\": {\"command\": [\"./bench\"], \"runs\": ["                                                         \
	RUN("warmup-1", "0", METRIC("requests", "900", "1/s")) ", "                                                  \
	RUN("repeat-1", "0", METRIC("requests", "1000", "1/s") ", " METRIC("odd", "1", "") ", " METRIC("wall", "1", "ns")) ", " \
	RUN("repeat-2", "0", METRIC("requests", "1010.5", "1/s") ", " METRIC("wall", "1", "ns")) ", "                \
	RUN("repeat-3", last_status, METRIC("requests", "990", "1/s") ", " METRIC("wall", "1", "ns")) "]}}"
/* clang-format on */

/*
 * of repeats.data: three repetitions, two of which touch, behind a warm-up; of their metrics, "odd" is not in all, and
 * "wall" is one of vprof's own. And one in which the last fails.
 */
static const char repeats_description[] = REPEATS("0");
static const char failed_description[] = REPEATS("3");

/*
 * of time.data: a vCPU of which KVM's trace points tell, and one that was started late; of idle.data: two that had
 * nothing to do; of untraced.data: only what the
 * host's scheduler knows, in words that would drive a terminal, and numbers that cannot be.
 */
/* clang-format off */
#define TIME_EXIT(name, count, ns, kvm, vmm, halt)                                                                   \
	"{\"name\": \"" name "\", \"count\": " count ", \"ns\": " ns ", \"kvm-ns\": " kvm ", \"vmm-ns\": " vmm ", "          \
	"\"poll-ns\": 0, \"halt-ns\": " halt ", \"waiting-ns\": 0, \"max-ns\": 900000, \"histogram\": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, " count "]}"
static const char time_description[] =
	"{\"version\": 1, \"time\": [{\"ns\": {\"wall\": 2000000000, \"cpu\": 1500000000, \"guest\": 1200000000, \"kvm\": 200000000,"
	" \"vmm-traced\": 90000000, \"halt-wait\": 480000000, \"halt-poll\": 10000000, \"runnable\": 20000000},"
	" \"looks\": {\"kernel\": 30, \"user\": 10}, \"exits\": [{\"name\": \"exit:io:0x3f8\", \"count\": 400, \"ns\": 80000000}],"
	" \"kvm-exits\": [" TIME_EXIT("npf", "100", "150000000", "150000000", "0", "0") ", "
	TIME_EXIT("io", "400", "120000000", "30000000", "90000000", "0") ", "
	TIME_EXIT("hlt", "7", "490000000", "0", "0", "490000000") "]},"
	" {\"ns\": {\"wall\": 2000000000, \"guest\": 500000000, \"kvm\": 500000000, \"offline\": 999000000},"
	" \"counters\": {\"exits\": 900}, \"kvm-exits\": ["
	TIME_EXIT("npf", "900", "350000000", "350000000", "0", "0") "]}]}";
static const char idle_description[] =
	"{\"version\": 1, \"time\": [{\"ns\": {\"wall\": 10000000000, \"cpu\": 20000000, \"guest\": 10000000, \"kvm\": 5000000,"
	" \"vmm-traced\": 1000000, \"halt-wait\": 9980000000, \"halt-poll\": 3000000, \"runnable\": 1000000}},"
	" {\"ns\": {\"wall\": 10000000000, \"guest\": 4000000, \"kvm\": 6000000, \"halt-wait\": 9990000000}}]}";
static const char untraced_description[] =
	"{\"version\": 1, \"time\": [{\"untraced\": \"no \\u001b[31mright\\nto it\", \"ns\": {\"wall\": 1000000000, \"cpu\": 900000000,"
	" \"runnable\": 100000000, \"vmm\": -5}, \"counters\": {\"exits\": 4000}, \"kvm-exits\": [3, {\"count\": 0}], \"exits\": {}}, \"text\"]}";
/* clang-format on */

static const uint8_t kernel_build_id[20] = {0xde, 0xad, 0xbe, 0xef};

struct recording_features features_make(const struct recording_symbol *table, size_t n)
{
	static const char *const command_line[] = {"vprof", "run", NULL};

	return (struct recording_features){
		.hostname = "golden",
		.release = "6.1.0-golden",
		.arch = ARCH_X86_64,
		.version = "0.1.0",
		.cmdline = command_line,
		.vcpus = 2,
		.memory_bytes = UINT64_C(512) << 20,
		.kernel_build_id = kernel_build_id,
		.kernel_build_id_bytes = sizeof(kernel_build_id),
		.kernel_path = "/boot/vmlinux",
		.description = description,
		.symbols = table,
		.n_symbols = n,
	};
}

struct recording_writer *writer_open(const char *path, const struct recording_event *events, size_t n)
{
	GError *error = NULL;
	struct recording_writer *writer = recording_writer_open(path, events, n, &error);

	must(writer != NULL, error);
	return writer;
}

void writer_finish(struct recording_writer *writer, const struct recording_features *features)
{
	GError *error = NULL;

	must(recording_writer_finish(writer, features, &error), error);
	recording_writer_free(writer);
}

/* 100 samples of a clock, seven lost; `finish`: or as a run leaves it that is killed. */
static void clock_make(const char *path, const struct recording_symbol *table, size_t n, bool finish)
{
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct burst exits = {vprof_exit_ip(EXIT_IO, 0x3f8), PERF_RECORD_MISC_HYPERVISOR, 4};
	const struct recording_features features = features_make(table, n);
	struct recording_writer *writer = writer_open(path, &event, 1);
	uint64_t time_ns = START_NS;

	for (size_t i = 0; i < G_N_ELEMENTS(usual); i++)
		burst_write(writer, &usual[i], clock_ids, &time_ns);
	burst_write(writer, &exits, clock_ids, &time_ns);
	lost_write(writer, 7);
	if (finish)
		writer_finish(writer, &features);
	else
		recording_writer_free(writer);
}

static void events_make(const char *path)
{
	const struct recording_event events[] = {
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids),
		event_make("cycles:k", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cycles_ids),
	};
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer = writer_open(path, events, G_N_ELEMENTS(events));
	uint64_t time_ns = START_NS;

	burst_write(writer, &usual[0], clock_ids, &time_ns);
	burst_write(writer, &usual[2], clock_ids, &time_ns);
	burst_write(writer, &usual[2], cycles_ids, &time_ns);
	burst_write(writer, &usual[3], cycles_ids, &time_ns);
	writer_finish(writer, &features);
}

/* start_kernel calls memcpy from two places, and both are hit themselves. */
static void calls_make(const char *path)
{
	static const uint64_t chains[][3] = {
		{PERF_CONTEXT_KERNEL, TEXT + 0x204, TEXT + 0x110},
		{PERF_CONTEXT_KERNEL, TEXT + 0x208, TEXT + 0x120},
		{PERF_CONTEXT_KERNEL, TEXT + 0x130, TEXT + 0x900},
	};
	struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	event.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	writer = writer_open(path, &event, 1);
	for (unsigned i = 0; i < 10; i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = chains[i % 3][1],
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = (uint16_t)(PERF_RECORD_MISC_KERNEL | (i < 7 ? VPROF_CHAIN_WHOLE : VPROF_CHAIN_DEPTH)
		                                                             << VPROF_CHAIN_END_SHIFT),
			.chain = chains[i % 3],
			.n_chain = 3,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

/* Chains that end in the kernel, and that go on in user space, where most cannot be walked. */
static void parts_make(const char *path)
{
	static const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, TEXT + 0x204, PERF_CONTEXT_KERNEL, TEXT + 0x200, TEXT + 0x110,
		PERF_CONTEXT_USER,   0x401000};
	static const unsigned char ends[] = {VPROF_CHAIN_WHOLE, VPROF_CHAIN_BAD_FRAME, VPROF_CHAIN_UNREADABLE,
	                                     VPROF_CHAIN_WHOLE, VPROF_CHAIN_NO_ENTRY};
	struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	event.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	writer = writer_open(path, &event, 1);
	for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = chain[1],
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = (uint16_t)(PERF_RECORD_MISC_KERNEL | ends[i] << VPROF_CHAIN_END_SHIFT),
			.chain = chain,
			.n_chain = i < 3 ? 7 : 5,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

/* The host's kernel at addresses that the guest's has, too, for a guest's function; QEMU, with and without names. */
static void host_make(const char *path)
{
	static const struct recording_symbol host_symbols[] = {
		{QEMU + 0x100, 0x80, "address_space_rw", "/usr/bin/qemu"},
		{QEMU + 0x181, 1, "qemu+0x1181", "/usr/bin/qemu"},
		{TEXT + 0x100, 0x100, "do_syscall_64", "[host]"},
		{TEXT + 0x200, 0x100, "ioctl \033[31m", "[kvm]"},
	};

	static const struct {
		uint64_t chain[5];
		unsigned n;
	} hits[] = {
		{{PERF_CONTEXT_HV, TEXT + 0x204, TEXT + 0x200, PERF_CONTEXT_KERNEL, TEXT + 0x204}, 5},
		{{PERF_CONTEXT_HV, TEXT + 0x300, TEXT + 0x204, TEXT + 0x110, QEMU + 0x180}, 5},
		{{PERF_CONTEXT_HV, QEMU + 0x104}, 2},
		{{PERF_CONTEXT_HV, QEMU + 0x181}, 2},
		{{PERF_CONTEXT_HV, VPROF_EXIT_REASON_VMM << VPROF_EXIT_DETAIL_BITS}, 2},
		{{PERF_CONTEXT_KERNEL, TEXT + 0x204}, 2},
	};
	struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	features.description = attached_description;
	features.host_symbols = host_symbols;
	features.n_host_symbols = G_N_ELEMENTS(host_symbols);
	event.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	writer = writer_open(path, &event, 1);
	for (unsigned i = 0; i < 2 * G_N_ELEMENTS(hits); i++) {
		const uint64_t *chain = hits[i / 2].chain;
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = chain[1],
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = chain[0] == (uint64_t)PERF_CONTEXT_HV ? PERF_RECORD_MISC_HYPERVISOR
		                                                      : PERF_RECORD_MISC_KERNEL,
			.chain = chain,
			.n_chain = hits[i / 2].n,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

static void mapping_write(struct recording_writer *writer, uint32_t pid, uint64_t start, uint64_t offset,
                          uint64_t time_ns, const char *file)
{
	static const uint8_t build_id[20] = {0xbe, 0xef};
	const struct record_id id = {.pid = pid, .tid = pid, .time_ns = time_ns, .id = clock_ids[0]};
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.start = start,
		.bytes = 0x10000,
		.page_offset = offset,
		.build_id = build_id,
		.build_id_bytes = sizeof(build_id),
		.file_name = {file},
	};
	uint64_t bytes[32];
	GError *error = NULL;

	record_mmap_encode(&mapping, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/* Two processes that have other files at one address, of which one has symbols, and one that nothing is known of. */
static void mappings_make(const char *path)
{
	static const struct recording_symbol user_symbols[] = {
		{0x1000, 0x100, "main", "/usr/bin/bench"},
		{0x1100, 0x40, "checksum", "/usr/bin/bench"},
	};

	static const struct {
		uint32_t pid;
		uint64_t ip;
	} hits[] = {{100, 0x1104}, {100, 0x1108}, {100, 0x1004}, {101, 0x1104}, {102, 0x1104}, {100, 0x8000}};
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer = writer_open(path, &event, 1);

	features.user_symbols = user_symbols;
	features.n_user_symbols = G_N_ELEMENTS(user_symbols);
	comm_write(writer, 100, START_NS, "bench");
	comm_write(writer, 101, START_NS, "sh");
	mapping_write(writer, 100, PROGRAM + 0x1000, 0x1000, START_NS, "/usr/bin/bench");
	mapping_write(writer, 101, PROGRAM + 0x1000, 0x2000, START_NS, "/bin/sh \033[31m");
	for (unsigned i = 0; i < 12; i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = PROGRAM + hits[i % 6].ip,
			.pid = hits[i % 6].pid,
			.tid = hits[i % 6].pid,
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = PERF_RECORD_MISC_USER,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

/* One sample a nanosecond, each of another kind of instruction. */
static void phases_make(const char *path, const char *phases)
{
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer = writer_open(path, &event, 1);

	features.description = phases;
	for (unsigned i = 0; i < 20; i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = TEXT + 0x100 + i,
			.time_ns = UINT64_C(5000000000) + i,
			.period = 1000000,
			.misc = PERF_RECORD_MISC_KERNEL,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

/* As perf leaves them: nothing is said about them but in the event's attr. */
static void foreign_make(const char *path, bool cycles, uint64_t frequency_hz)
{
	struct recording_event event =
		cycles ? event_make("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cycles_ids)
		       : event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = {
		.release = "6.1.0-golden", .symbols = symbols, .n_symbols = G_N_ELEMENTS(symbols)};
	struct recording_writer *writer;
	uint64_t time_ns = START_NS;

	if (frequency_hz != 0) {
		event.attr.freq = 1;
		event.attr.sample_freq = frequency_hz;
	}
	writer = writer_open(path, &event, 1);
	burst_write(writer, &usual[2], event.ids, &time_ns);
	writer_finish(writer, &features);
}

void kernel_mapping_write(struct recording_writer *writer, uint64_t text)
{
	const struct record_id id = {.pid = UINT32_MAX, .id = clock_ids[0]};
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.start = text,
		.bytes = 0x1000000,
		.page_offset = text,
		.file_name = {RECORD_KERNEL_MAPPING},
	};
	uint64_t bytes[32];
	GError *error = NULL;

	record_mmap_encode(&mapping, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/* A kernel that was at `before` (0: nowhere) and then `slide` further on than its image says; without symbols. */
static void moved_make(const char *path, uint64_t before, uint64_t slide)
{
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(NULL, 0);
	struct recording_writer *writer = writer_open(path, &event, 1);
	uint64_t time_ns = START_NS;

	if (before != 0)
		kernel_mapping_write(writer, before);
	kernel_mapping_write(writer, TEXT + slide);
	for (size_t i = 2; i < 4; i++) {
		const struct burst burst = {usual[i].ip + slide, usual[i].misc, usual[i].count};

		burst_write(writer, &burst, clock_ids, &time_ns);
	}
	writer_finish(writer, &features);
}

/* The kernel of these recordings, as it was linked. */
static void kernel_make(const char *path)
{
	static const uint8_t code[0x1000];
	g_autoptr(GByteArray) notes = g_byte_array_new(), file = NULL;
	struct elf_builder elf;
	GError *error = NULL;
	uint16_t text;

	elf_builder_init(&elf);
	elf.entry = 0x1000000;
	text = elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                      0x1000000, code, sizeof(code), 0});
	elf_builder_note(notes, "GNU", NT_GNU_BUILD_ID, kernel_build_id, sizeof(kernel_build_id));
	elf_builder_section(&elf, (struct elf_section){".notes", SHT_NOTE, SHF_ALLOC, TEXT + 0x2000, 0x1002000,
	                                               notes->data, notes->len, 0});
	elf_builder_symbol(&elf, "_text", TEXT, 0, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), text);
	for (size_t i = 1; i < 3; i++)
		elf_builder_symbol(&elf, symbols[i].name, symbols[i].address, symbols[i].size,
		                   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text);
	file = elf_builder_finish(&elf);
	must(g_file_set_contents(path, (const char *)file->data, file->len, &error), error);
	elf_builder_deinit(&elf);
}

static void empty_make(const char *path, const char *text)
{
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	struct recording_features features = features_make(NULL, 0);

	if (text)
		features.description = text;
	writer_finish(writer_open(path, &event, 1), &features);
}

int main(void)
{
	clock_make("clock.data", symbols, G_N_ELEMENTS(symbols), true);
	clock_make("unfinished.data", NULL, 0, false);
	clock_make("hostile.data", hostile_symbols, G_N_ELEMENTS(hostile_symbols), true);
	events_make("events.data");
	calls_make("calls.data");
	parts_make("parts.data");
	host_make("host.data");
	tasks_make("tasks.data");
	cgroups_make("cgroups.data");
	switches_make("switches.data");
	names_make("names.data");
	waits_make("waits.data");
	locks_make("locks.data");
	mappings_make("mappings.data");
	phases_make("phases.data", phases_description);
	phases_make("repeats.data", repeats_description);
	phases_make("failed.data", failed_description);
	phases_make("time.data", time_description);
	phases_make("untraced.data", untraced_description);
	foreign_make("foreign.data", false, 0);
	foreign_make("foreign_99hz.data", false, 99);
	foreign_make("foreign_cycles.data", true, 0);
	moved_make("moved.data", 0, SLIDE);
	moved_make("booted.data", TEXT, SLIDE);
	moved_make("nowhere.data", 0, SLIDE + 0x123);
	kernel_make("kernel.elf");
	empty_make("empty.data", NULL);
	empty_make("idle.data", idle_description);
	arm64_make("arm64.data", "vmlinux.arm64");
	late_make("late.data");
	return 0;
}
