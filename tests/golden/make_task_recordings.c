// SPDX-License-Identifier: BSD-2-Clause
/* Recordings in which tasks come, go, and take turns. */
#include "make_recordings.h"

void comm_write(struct recording_writer *writer, uint32_t tid, uint64_t time_ns, const char *comm)
{
	const struct record_id id = {.pid = tid, .tid = tid, .time_ns = time_ns, .id = clock_ids[0]};
	const struct record_comm said = {.pid = tid, .tid = tid, .comm = comm};
	uint64_t bytes[16];
	GError *error = NULL;

	record_comm_encode(&said, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/* The idle task, one that was not known, and a shell that becomes another program after six of its ten samples. */
void tasks_make(const char *path)
{
	static const uint32_t pids[] = {0, 100, VPROF_PID_UNKNOWN, 100};
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer = writer_open(path, &event, 1);

	comm_write(writer, 0, 0, "swapper");
	comm_write(writer, VPROF_PID_UNKNOWN, 0, "[unknown]");
	comm_write(writer, 100, START_NS, "sh \033[31m");
	comm_write(writer, 100, START_NS + 12, "ls");
	for (unsigned i = 0; i < 20; i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = TEXT + 0x100,
			.pid = pids[i % 4],
			.tid = pids[i % 4],
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = PERF_RECORD_MISC_KERNEL,
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

static void cgroup_write(struct recording_writer *writer, uint64_t cgroup, uint64_t time_ns, const char *path)
{
	const struct record_id id = {.time_ns = time_ns, .id = clock_ids[0]};
	uint64_t bytes[16];
	GError *error = NULL;

	record_cgroup_encode(&(struct record_cgroup){cgroup, path}, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/*
 * A task that moves from one cgroup to the next: the root, one, another with its id when it has gone, one below, one
 * with a hostile name, one that is not named, and none that is known.
 */
void cgroups_make(const char *path)
{
	static const uint64_t cgroups[] = {1, 20, 20, 30, 40, 99, 0};
	struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	event.attr.sample_type |= PERF_SAMPLE_CGROUP;
	event.attr.cgroup = 1;
	writer = writer_open(path, &event, 1);
	comm_write(writer, 100, 0, "sh");
	cgroup_write(writer, 1, START_NS, "/");
	cgroup_write(writer, 20, START_NS, "/system.slice");
	cgroup_write(writer, 20, START_NS + 4, "/user.slice");
	cgroup_write(writer, 30, START_NS, "/system.slice/web.service");
	cgroup_write(writer, 40, START_NS, "/=\033[31m\xff,\"x\"");
	for (unsigned i = 0; i < 2 * G_N_ELEMENTS(cgroups); i++) {
		const struct record_sample sample = {
			.id = clock_ids[0],
			.ip = TEXT + 0x100 + i % 2 * 0x100,
			.pid = 100,
			.tid = 100,
			.time_ns = START_NS + i,
			.period = 1000000,
			.misc = PERF_RECORD_MISC_KERNEL,
			.has_cgroup = true,
			.cgroup = cgroups[i / 2],
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

static void switch_write(struct recording_writer *writer, bool out, uint32_t of, uint32_t other, uint64_t time_ns)
{
	const struct record_id id = {.pid = of, .tid = of, .time_ns = time_ns, .cpu = 1, .id = clock_ids[1]};
	uint64_t bytes[16];
	GError *error = NULL;

	record_switch_encode(&(struct record_switch){out, other, other}, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/* Two tasks, and one of which nothing is known, in turn on a vCPU; a sample between two switches. */
void switches_make(const char *path)
{
	static const uint32_t order[] = {0, 100, VPROF_PID_UNKNOWN, 100, 0};
	const struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer = writer_open(path, &event, 1);

	comm_write(writer, 0, 0, "swapper");
	comm_write(writer, 100, START_NS, "sh \033[31m");
	for (unsigned i = 0; i + 1 < G_N_ELEMENTS(order); i++) {
		const struct record_sample sample = {.id = clock_ids[1],
		                                     .ip = TEXT + 0x200,
		                                     .pid = order[i + 1],
		                                     .tid = order[i + 1],
		                                     .time_ns = START_NS + 10 * i + 5,
		                                     .cpu = 1,
		                                     .period = 1000000,
		                                     .misc = PERF_RECORD_MISC_KERNEL};

		switch_write(writer, true, order[i], order[i + 1], START_NS + 10 * i);
		switch_write(writer, false, order[i + 1], order[i], START_NS + 10 * i);
		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}
