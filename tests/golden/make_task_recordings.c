// SPDX-License-Identifier: BSD-2-Clause
/* Recordings in which tasks come, go, and take turns. */
#include "make_recordings.h"

#include <stdlib.h>
#include <string.h>

void comm_write(struct recording_writer *writer, uint32_t tid, uint64_t time_ns, const char *comm)
{
	const struct record_id id = {.pid = tid, .tid = tid, .time_ns = time_ns, .id = clock_ids[0]};
	const struct record_comm said = {.pid = tid, .tid = tid, .comm = {comm}};
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

	record_cgroup_encode(&(struct record_cgroup){cgroup, {path}}, &id, bytes, sizeof(bytes));
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

static void total_write(struct recording_writer *writer, uint32_t of, uint64_t value, uint64_t time_ns)
{
	const struct record_id id = {.pid = of, .tid = of, .time_ns = time_ns, .cpu = 1, .id = clock_ids[1]};
	uint64_t bytes[16];
	GError *error = NULL;

	record_read_encode(&(struct record_read){of, of, value, 3000000, 2000000}, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

static void losses_write(struct recording_writer *writer, uint64_t records, uint64_t samples)
{
	const struct record_id id = {.time_ns = START_NS, .cpu = 1, .id = clock_ids[1]};
	uint64_t bytes[16];
	GError *error = NULL;

	record_lost_encode(&(struct record_lost){id.id, records}, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
	record_lost_samples_encode(samples, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

/*
 * Two tasks, and one of which nothing is known, in turn on a vCPU; a sample between two switches, and what was counted
 * of one until its end. The ring had no room for 7 samples and 2 other records.
 */
void switches_make(const char *path)
{
	static const uint32_t order[] = {0, 100, VPROF_PID_UNKNOWN, 100, 0};
	struct recording_event event =
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	event.attr.read_format = VPROF_READ_FORMAT;
	event.attr.inherit_stat = 1;
	writer = writer_open(path, &event, 1);

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
	total_write(writer, 100, 12345678, START_NS + 31);
	losses_write(writer, 9, 7);
	writer_finish(writer, &features);
}

/* Each between "@(" and ")@", which names.py looks for. */
static const char *const hostile_names[] = {
	"@(plain)@",
	"@(\xc3\xbcn\xc3\xaf \xe2\x86\x92 \xe6\x97\xa5\xe6\x9c\xac)@",
	"@(colour \033[31m)@",
	"@(title \033]0;x\007)@",
	"@(line\nvprof: forged\r)@",
	"@(tab\tdelete\177)@",
	"@(csi \302\233"
	"31m)@",
	"@(dcs \302\220)@",
	"@(raw csi \233"
	"31m)@",
	"@(next line \302\205)@",
	"@(override \342\200\256drow)@",
	"@(isolate \342\201\246x\342\201\251)@",
	"@(mark \330\234\342\200\217)@",
	"@(joiner \342\200\215)@",
	"@(byte order \357\273\277)@",
	"@(line separator \342\200\250\342\200\251)@",
	"@(tag \363\240\201\201)@",
	"@(not utf-8 \377\376)@",
	"@(overlong \300\233)@",
	"@(surrogate \355\240\200)@",
	"@(beyond \364\220\200\200)@",
	"@(cut \342\200)@",
	"@(</script><b>&amp;'\"]]>)@",
	"@(=1+1,\"\";%s%n\\u001b\\)@",
	NULL,
};
#define HOSTILE_NAMES (G_N_ELEMENTS(hostile_names) - 1)

static void string_append(GString *json, const char *text)
{
	g_string_append_c(json, '"');
	for (; *text != '\0'; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < ' ' || c == '"' || c == '\\')
			g_string_append_printf(json, "\\u%04x", c);
		else
			g_string_append_c(json, *text);
	}
	g_string_append_c(json, '"');
}

/* What a hostile engine says of its guest: the names where a sentence or a name is expected. */
static char *hostile_description(void)
{
	g_autofree char *all = g_strjoinv(" ", (char **)hostile_names);
	GString *json = g_string_new("{\"version\": 1");

	static const char *const texts[] = {
		"\"guest\": {\"vcpus\": 1, \"memory-bytes\": 536870912, \"name\": ",
		", \"kind\": ",
		", \"kernel\": ",
		", \"command-line\": ",
		", \"quirks\": [",
		"]}, \"unwinder\": ",
		", \"host-cpu\": ",
		", \"missing\": [",
		"], \"end\": {\"reason\": ",
		", \"code\": 0, \"message\": ",
		"}, \"exec\": {\"runs\": [], \"command\": [",
		"]}, \"time\": [{\"untraced\": ",
		", \"ns\": {\"wall\": 1000}, \"kvm-exits\": [{\"count\": 1, \"ns\": 5, \"name\": ",
		"}], \"exits\": [{\"count\": 1, \"ns\": 5, \"name\": ",
	};
	g_string_append(json, ", ");
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_string_append(json, texts[i]);
		string_append(json, all);
	}
	g_string_append(json, "}]}], \"marks\": [");
	for (size_t i = 0; i < HOSTILE_NAMES; i++) {
		for (unsigned end = 0; end < 2; end++) {
			g_string_append(json, i + end == 0 ? "{\"name\": " : ", {\"name\": ");
			string_append(json, hostile_names[i]);
			g_string_append_printf(json, ", \"kind\": \"%s\", \"time-ns\": %" G_GUINT64_FORMAT "}",
			                       end ? "end" : "begin", START_NS + 10 * i + 9 * end);
		}
	}
	g_string_append(json, "]}");
	return g_string_free(json, FALSE);
}

static void name_mapping_write(struct recording_writer *writer, uint32_t pid, const char *file)
{
	const struct record_id id = {.pid = pid, .tid = pid, .id = clock_ids[0]};
	const struct record_mmap mapping = {.mode = PERF_RECORD_MISC_USER,
	                                    .pid = pid,
	                                    .tid = pid,
	                                    .start = 0x400000,
	                                    .bytes = 0x10000,
	                                    .file_name = {file}};
	uint64_t bytes[32];
	GError *error = NULL;

	record_mmap_encode(&mapping, &id, bytes, sizeof(bytes));
	must(recording_writer_record(writer, (const struct perf_event_header *)bytes, &error), error);
}

static int by_module(const void *a, const void *b)
{
	const struct recording_symbol *left = a, *right = b;

	return strcmp(left->module, right->module);
}

/*
 * Every hostile name as that of a task, a cgroup, a file, a kernel function, a module, a function of a program, an
 * event, a phase, and in the header and the description. In the middle, a name of 100,000 bytes.
 */
void names_make(const char *path)
{
	g_autofree char *longest = g_strnfill(100000, 'x'), *text = hostile_description();
	g_autofree char *event_name = g_strjoinv(" ", (char **)hostile_names);
	struct recording_event event = event_make(event_name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids);
	struct recording_symbol kernel[HOSTILE_NAMES + 1], user[HOSTILE_NAMES];
	struct recording_features features = features_make(kernel, G_N_ELEMENTS(kernel));
	struct recording_writer *writer;

	event.attr.sample_type |= PERF_SAMPLE_CGROUP | PERF_SAMPLE_CALLCHAIN;
	event.attr.cgroup = 1;
	writer = writer_open(path, &event, 1);
	for (uint32_t i = 0; i < HOSTILE_NAMES; i++) {
		const char *name = hostile_names[i];
		const uint64_t chain[] = {PERF_CONTEXT_KERNEL, TEXT + 0x100 * i + 8, PERF_CONTEXT_USER,
		                          0x400000 + 0x100 * i + 8};
		const struct record_sample sample = {.id = clock_ids[0],
		                                     .ip = TEXT + 0x100 * i + 8,
		                                     .pid = 100 + i,
		                                     .tid = 100 + i,
		                                     .time_ns = START_NS + 10 * i + 5,
		                                     .period = 1000000,
		                                     .misc = PERF_RECORD_MISC_KERNEL,
		                                     .has_cgroup = true,
		                                     .cgroup = 10 + i,
		                                     .chain = chain,
		                                     .n_chain = G_N_ELEMENTS(chain)};

		comm_write(writer, 100 + i, START_NS, name);
		cgroup_write(writer, 10 + i, START_NS, name);
		name_mapping_write(writer, 100 + i, name);
		sample_write(writer, &sample);
		kernel[i] = (struct recording_symbol){TEXT + 0x100 * i, 0x100, name, i % 2 != 0 ? name : ""};
		/* As vprof writes them: files in the order of their printable names. */
		user[i] = (struct recording_symbol){0x100 * i, 0x100, name, text_printable(name)};
	}
	kernel[HOSTILE_NAMES] = (struct recording_symbol){TEXT + 0x100 * HOSTILE_NAMES, 0x100, longest, ""};
	qsort(user, HOSTILE_NAMES, sizeof(user[0]), by_module);
	features.user_symbols = user;
	features.n_user_symbols = HOSTILE_NAMES;
	features.hostname = features.release = features.kernel_path = event_name;
	features.cmdline = hostile_names;
	features.description = text;
	writer_finish(writer, &features);
	for (size_t i = 0; i < HOSTILE_NAMES; i++)
		g_free((char *)user[i].module);
}

/* A task in each state, twice, one of which runs; the waiting is of 100 ms, 200 ms and so on. */
void waits_make(const char *path)
{
#define X(id, letter, name) id,
	static const enum vprof_task_state states[] = {VPROF_TASK_RUNNING, VPROF_TASK_STATES(X)};
#undef X
	static const uint64_t wall_ids[] = {65, 66};
	struct recording_event events[] = {
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids),
		event_make(VPROF_WALL_EVENT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, wall_ids),
	};
	const struct recording_features features = features_make(symbols, G_N_ELEMENTS(symbols));
	struct recording_writer *writer;

	events[1].attr.sample_period = 100000000;
	writer = writer_open(path, events, G_N_ELEMENTS(events));

	comm_write(writer, 100, START_NS, "sh");
	for (unsigned i = 0; i < 2 * G_N_ELEMENTS(states); i++) {
		const enum vprof_task_state state = states[i / 2];
		const struct record_sample sample = {
			.id = state == VPROF_TASK_RUNNING ? clock_ids[0] : wall_ids[0],
			.ip = TEXT + 0x100 + i % 2 * 0x100,
			.pid = 100,
			.tid = 100,
			.time_ns = START_NS + i,
			.period = state == VPROF_TASK_RUNNING ? 1000000 : 100000000ull * state,
			.misc = (uint16_t)(PERF_RECORD_MISC_KERNEL | (unsigned)state << VPROF_TASK_STATE_SHIFT),
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}

#define PROGRAM UINT64_C(0x400000)

/* Waits of two tasks for a mutex, a page, a futex and a timer, and in turn for a processor; each runs before it waits.
 */
void locks_make(const char *path)
{
	enum { MUTEX, SLOW, WRITE, IO, FOLIO, FILEMAP, QUEUE, FUTEX, CALL, ENTRY, SLEEP, LOCK, NAMES };

	static const char *const names[] = {"mutex_lock",
	                                    "__mutex_lock.constprop.0",
	                                    "ext4_dio_write_iter",
	                                    "io_schedule",
	                                    "folio_wait_bit_common",
	                                    "filemap_update_page",
	                                    "futex_wait_queue",
	                                    "futex_wait",
	                                    "do_syscall_64",
	                                    "entry_SYSCALL_64",
	                                    "hrtimer_nanosleep",
	                                    "journals"};
	static const struct recording_symbol user[] = {{0x100, 0x100, "pthread_mutex_lock", "/bin/bench"},
	                                               {0x200, 0x100, "worker", "/bin/bench"}};
	static const uint64_t off_cpu_ids[] = {65, 66};
	/* Those for a futex are called by the program. */
	static const struct {
		uint64_t period;
		enum vprof_task_state state;
		unsigned n;
		uint8_t functions[6];
		struct vprof_wait facts;
	} waits[] = {
		{30000000,
	         VPROF_TASK_DISK_SLEEP,
	         3,
	         {SLOW, MUTEX, WRITE},
	         {VPROF_WAKER_TASK, 101, 101, 1, VPROF_LOCK_MUTEX, 101, 101, 0, TEXT + 0x100 * LOCK}},
		{10000000,
	         VPROF_TASK_DISK_SLEEP,
	         3,
	         {SLOW, MUTEX, WRITE},
	         {VPROF_WAKER_TASK, 100, 100, 0, VPROF_LOCK_MUTEX, 0, 0, 0, TEXT + 0x100 * LOCK + 0x40}},
		{5000000, VPROF_TASK_RUNNABLE, 3, {SLOW, MUTEX, WRITE}, {0}},
		{25000000,
	         VPROF_TASK_DISK_SLEEP,
	         3,
	         {IO, FOLIO, FILEMAP},
	         {VPROF_WAKER_INTERRUPT, 0, 0, 0, 0, 0, 0, 0, 0}},
		{20000000,
	         VPROF_TASK_SLEEPING,
	         4,
	         {QUEUE, FUTEX, CALL, ENTRY},
	         {VPROF_WAKER_TASK, 101, 101, 0, VPROF_LOCK_FUTEX, 0, 0, 0, 0x55d0c8}},
		{500000000, VPROF_TASK_SLEEPING, 3, {SLEEP, CALL, ENTRY}, {0}},
	};
	struct recording_event events[] = {
		event_make("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, clock_ids),
		event_make(VPROF_OFF_CPU_EVENT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, off_cpu_ids),
	};
	struct recording_symbol kernel[NAMES];
	struct recording_features features = features_make(kernel, NAMES);
	struct recording_writer *writer;
	uint64_t now_ns = START_NS;

	for (unsigned i = 0; i < NAMES; i++)
		kernel[i] = (struct recording_symbol){TEXT + 0x100 * i, 0x100, names[i], ""};
	features.user_symbols = user;
	features.n_user_symbols = G_N_ELEMENTS(user);
	for (unsigned i = 0; i < G_N_ELEMENTS(events); i++)
		events[i].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	events[1].attr.sample_period = 1;
	events[1].attr.sample_type |= PERF_SAMPLE_RAW;
	writer = writer_open(path, events, G_N_ELEMENTS(events));
	for (unsigned i = 0; i < 2 * G_N_ELEMENTS(waits); i++) {
		const bool runs = i % 2 == 0;
		const uint32_t tid = 100 + i / 2 % 2;
		uint64_t chain[10] = {runs ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL};
		unsigned n = 1;

		if (runs && i < 4) {
			comm_write(writer, tid, now_ns, i == 0 ? "reader" : "writer");
			name_mapping_write(writer, tid, "/bin/bench");
		}
		for (unsigned f = 0; !runs && f < waits[i / 2].n; f++)
			chain[n++] = TEXT + UINT64_C(0x100) * waits[i / 2].functions[f] + 8;
		if (!runs && waits[i / 2].functions[0] == QUEUE) {
			chain[n++] = PERF_CONTEXT_USER;
			chain[n++] = PROGRAM + 0x108;
		}
		if (runs || waits[i / 2].functions[0] == QUEUE)
			chain[n++] = PROGRAM + 0x208;
		now_ns += runs ? 1000000 : waits[i / 2].period;
		const struct record_sample sample = {
			.id = runs ? clock_ids[0] : off_cpu_ids[0],
			.ip = chain[1],
			.pid = tid,
			.tid = tid,
			.time_ns = now_ns,
			.period = runs ? 1000000 : waits[i / 2].period,
			.misc = (uint16_t)(runs ? PERF_RECORD_MISC_USER
		                                : PERF_RECORD_MISC_KERNEL | (unsigned)waits[i / 2].state
		                                                                    << VPROF_TASK_STATE_SHIFT),
			.chain = chain,
			.n_chain = n,
			.raw = runs ? NULL : &waits[i / 2].facts,
			.raw_bytes = runs ? 0 : sizeof(waits[0].facts),
		};

		sample_write(writer, &sample);
	}
	writer_finish(writer, &features);
}
