// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <vprof/exit.h>

#include "lib/record/exit_name.h"
#include "lib/record/record.h"
#include "run_suite.h"

static const struct record_id some_id = {.pid = 7, .tid = 8, .time_ns = 900, .cpu = 3, .id = 42};

static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, 0x401000};

static struct record_sample some_sample(void)
{
	return (struct record_sample){
		.id = 42,
		.ip = 0xffffffff81000010,
		.pid = 7,
		.tid = 8,
		.time_ns = UINT64_C(1) << 40,
		.cpu = 1,
		.period = 1000003,
		.misc = PERF_RECORD_MISC_KERNEL,
		.chain = chain,
		.n_chain = 4,
	};
}

static void assert_sample_eq(const struct record_sample *is, const struct record_sample *expected)
{
	ck_assert_uint_eq(is->id, expected->id);
	ck_assert_uint_eq(is->ip, expected->ip);
	ck_assert_uint_eq(is->pid, expected->pid);
	ck_assert_uint_eq(is->tid, expected->tid);
	ck_assert_uint_eq(is->time_ns, expected->time_ns);
	ck_assert_uint_eq(is->cpu, expected->cpu);
	ck_assert_uint_eq(is->period, expected->period);
	ck_assert_uint_eq(is->misc, expected->misc);
	ck_assert_uint_eq(is->n_chain, expected->n_chain);
	if (expected->n_chain)
		ck_assert_mem_eq(is->chain, expected->chain, expected->n_chain * sizeof(uint64_t));
}

START_TEST(only_what_is_shown_is_printable)
{
	static const char *const cases[][2] = {
		{"plain", "plain"},
		{"\xc3\xbcn\xc3\xaf \xe6\x97\xa5 \xf0\x9f\x90\xa7", "\xc3\xbcn\xc3\xaf \xe6\x97\xa5 \xf0\x9f\x90\xa7"},
		{"a\033[31m\n\t\177b", "a?[31m???b"},
		{"\302\233"
	         "31m \302\205",
	         "??31m ??"},
		{"\342\200\256x\342\201\246\342\200\250\363\240\201\201", "???x??????????"},
		{"\xff\xfe \xc0\x9b \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x80", "?? ?? ??? ???? ??"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *printable = untrusted_printable(untrusted(cases[i][0]));

		ck_assert_str_eq(printable, cases[i][1]);
	}
	g_autofree char *nothing = text_printable(NULL);

	ck_assert_str_eq(nothing, "");
}
END_TEST

START_TEST(printable_text_ends_between_characters)
{
	/* The limit is no multiple of three. */
	g_autoptr(GString) text = g_string_new(NULL);

	for (unsigned i = 0; i < PRINTABLE_BYTES_MAX; i++)
		g_string_append(text, "\xe6\x97\xa5");
	g_autofree char *printable = text_printable(text->str);

	ck_assert_uint_eq(strlen(printable), PRINTABLE_BYTES_MAX / 3 * 3);
	ck_assert(g_utf8_validate(printable, -1, NULL));
}
END_TEST

START_TEST(lines_are_made_printable_one_by_one)
{
	static const char *const cases[][2] = {
		{"", ""}, {"one", "one\n"}, {"a\033\r\n\nb\n", "a?\n\nb\n"}, {"a\rb\342\200\250\n", "a?b???\n"}};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *lines = text_lines_printable(cases[i][0]);

		ck_assert_str_eq(lines, cases[i][1]);
	}
}
END_TEST

START_TEST(sample_comes_back)
{
	uint64_t buffer[64];
	struct perf_event_header *record = (struct perf_event_header *)buffer;
	struct record_sample sample = some_sample(), out;
	uint64_t time_ns;

	size_t bytes = record_sample_encode(&sample, true, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes, 56 + 8 + 4 * 8);
	ck_assert_ptr_eq(record_check(buffer, bytes), record);
	ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, &out));
	assert_sample_eq(&out, &sample);
	ck_assert(record_time(record, bytes, VPROF_SAMPLE_TYPE, &time_ns));
	ck_assert_uint_eq(time_ns, sample.time_ns);

	bytes = record_sample_encode(&sample, false, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes, 56);
	ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &out));
	sample.n_chain = 0;
	assert_sample_eq(&out, &sample);
}
END_TEST

START_TEST(raw_data_comes_back)
{
	static const uint64_t values[] = {1, 2, UINT64_MAX};
	uint64_t buffer[64];
	struct perf_event_header *record = (struct perf_event_header *)buffer;
	struct record_sample sample = some_sample(), out;

	sample.raw = values;
	sample.raw_bytes = sizeof(values);
	size_t bytes = record_sample_encode(&sample, true, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes, 56 + 8 + 4 * 8 + 4 + 3 * 8 + 4);
	for (size_t room = 0; room < bytes; room++)
		ck_assert_uint_eq(record_sample_encode(&sample, true, buffer, room), 0);
	bytes = record_sample_encode(&sample, true, buffer, sizeof(buffer));
	ck_assert(
		record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW, &out));
	assert_sample_eq(&out, &sample);
	ck_assert_uint_eq(out.raw_bytes, sizeof(values) + 4); /* with what pads it, as the kernel says it too */
	ck_assert_mem_eq(out.raw, values, sizeof(values));
	/* A size beyond the record. */
	((uint32_t *)buffer)[(56 + 8 + 4 * 8) / 4] = sizeof(values) + 5;
	ck_assert(!record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
	                                &out));
}
END_TEST

START_TEST(waits_come_back_as_far_as_they_are_known)
{
	const struct vprof_wait wait = {.waker = VPROF_WAKER_TASK,
	                                .waker_tid = 7,
	                                .lock_kind = VPROF_LOCK_RWSEM,
	                                .lock = 9},
				wrong = {.waker = VPROF_WAKER_COUNT, .waker_tid = 7, .lock_kind = 99};
	struct record_sample sample = some_sample();
	struct vprof_wait out;

	sample.raw = &wait;
	sample.raw_bytes = sizeof(wait);
	ck_assert_uint_eq(record_sample_wait(&sample).waker_tid, 0); /* another event's */
	sample.misc |= VPROF_TASK_SLEEPING << VPROF_TASK_STATE_SHIFT;
	out = record_sample_wait(&sample);
	ck_assert_mem_eq(&out, &wait, sizeof(wait));
	sample.raw_bytes = 12;
	out = record_sample_wait(&sample);
	ck_assert_uint_eq(out.waker_tid, 7);
	ck_assert_uint_eq(out.lock_kind, VPROF_LOCK_UNKNOWN);
	ck_assert_uint_eq(out.lock, 0);
	sample.raw = &wrong;
	sample.raw_bytes = sizeof(wrong) + 4;
	out = record_sample_wait(&sample);
	ck_assert_uint_eq(out.waker, VPROF_WAKER_UNKNOWN);
	ck_assert_uint_eq(out.lock_kind, VPROF_LOCK_UNKNOWN);
	ck_assert_uint_eq(out.waker_tid, 7);
	sample.raw = NULL;
	sample.raw_bytes = 0;
	ck_assert_uint_eq(record_sample_wait(&sample).waker_tid, 0);
}
END_TEST

START_TEST(a_cgroup_comes_back)
{
	static const uint64_t values[] = {1, 2, UINT64_MAX};
	const uint64_t type = VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP;
	uint64_t buffer[64];
	struct perf_event_header *record = (struct perf_event_header *)buffer;
	struct record_sample sample = some_sample(), out;
	struct record_cgroup cgroup;

	sample.has_cgroup = true;
	sample.cgroup = UINT64_C(0x100000abc);
	size_t bytes = record_sample_encode(&sample, true, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes, 56 + 8 + 4 * 8 + 8);
	for (size_t room = 0; room < bytes; room++)
		ck_assert_uint_eq(record_sample_encode(&sample, true, buffer, room), 0);
	ck_assert(record_sample_decode(record, bytes, type, &out));
	assert_sample_eq(&out, &sample);
	ck_assert(out.has_cgroup && out.cgroup == sample.cgroup);
	ck_assert(!record_sample_decode(record, bytes - 8, type, &out));
	ck_assert(record_sample_decode(record, bytes - 8, type & ~(uint64_t)PERF_SAMPLE_CGROUP, &out));
	ck_assert(!out.has_cgroup && out.cgroup == 0);
	sample.raw = values;
	sample.raw_bytes = sizeof(values);
	bytes = record_sample_encode(&sample, true, buffer, sizeof(buffer));
	ck_assert(record_sample_decode(record, bytes, type | PERF_SAMPLE_RAW, &out));
	ck_assert_uint_eq(out.cgroup, sample.cgroup);
	ck_assert_mem_eq(out.raw, values, sizeof(values));

	bytes = record_cgroup_encode(&(struct record_cgroup){7, {"/a/b"}}, &some_id, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes, 8 + 8 + 8 + 32);
	ck_assert(record_cgroup_decode(record, bytes, &cgroup));
	ck_assert_uint_eq(cgroup.cgroup, 7);
	ck_assert_str_eq(cgroup.path.raw, "/a/b");
	record->type = PERF_RECORD_COMM;
	ck_assert(!record_cgroup_decode(record, bytes, &cgroup));
}
END_TEST

START_TEST(a_kernel_symbol_is_encoded_as_linux_has_it)
{
	static const struct {
		struct perf_event_header header;
		uint64_t address;
		uint32_t bytes;
		uint16_t type, flags;
		char name[16];
	} expected = {{PERF_RECORD_KSYMBOL, 0, 8 + 16 + 16 + 32}, VPROF_REAL_MODE, UINT32_MAX, 0, 0, "real mode"};
	const struct record_ksymbol symbol = {VPROF_REAL_MODE, UINT32_MAX, VPROF_REAL_MODE_NAME};
	uint64_t buffer[64];
	struct record_id out;
	size_t bytes = record_ksymbol_encode(&symbol, &some_id, buffer, sizeof(buffer));

	ck_assert_uint_eq(bytes, sizeof(expected) + 32);
	ck_assert_mem_eq(buffer, &expected, sizeof(expected));
	ck_assert(record_id_decode((const void *)buffer, bytes, VPROF_SAMPLE_TYPE, &out));
	ck_assert_uint_eq(out.id, 42);
	ck_assert_uint_eq(record_ksymbol_encode(&symbol, &some_id, buffer, bytes - 1), 0);
}
END_TEST

static void losses_add(struct record_losses *losses, uint64_t records, uint64_t samples)
{
	uint64_t buffer[16];
	const struct perf_event_header *record = (const struct perf_event_header *)buffer;

	record_losses_take(losses, record,
	                   record_lost_encode(&(struct record_lost){42, records}, &some_id, buffer, sizeof(buffer)));
	record_losses_take(losses, record, record_lost_samples_encode(samples, &some_id, buffer, sizeof(buffer)));
}

START_TEST(losses_are_samples_and_others)
{
	uint64_t buffer[16];
	struct perf_event_header *record = (struct perf_event_header *)buffer;
	struct record_losses losses = {0};
	size_t bytes = record_lost_encode(&(struct record_lost){42, 17}, &some_id, buffer, sizeof(buffer));

	/* Of vprof 0.2: not told apart. */
	record_losses_take(&losses, record, bytes);
	ck_assert_uint_eq(record_losses_samples(&losses), 17);
	ck_assert_uint_eq(record_losses_others(&losses), 0);

	losses = (struct record_losses){0};
	losses_add(&losses, 12, 4);
	losses_add(&losses, 5, 0);
	ck_assert_uint_eq(record_losses_samples(&losses), 4);
	ck_assert_uint_eq(record_losses_others(&losses), 13);

	/* What a BPF filter of perf record left out was not lost. */
	bytes = record_lost_samples_encode(9, &some_id, buffer, sizeof(buffer));
	record->misc |= 1u << 15;
	record_losses_take(&losses, record, bytes);
	ck_assert_uint_eq(record_losses_samples(&losses), 4);

	/* Of a file that contradicts itself. */
	losses_add(&losses, 0, UINT64_C(1) << 40);
	ck_assert_uint_eq(record_losses_others(&losses), 0);
}
END_TEST

START_TEST(encoders_need_room)
{
	uint64_t buffer[64];
	const struct record_sample sample = some_sample();

	for (size_t room = 0; room < 56 + 8 + 4 * 8; room++)
		ck_assert_uint_eq(record_sample_encode(&sample, true, buffer, room), 0);
	ck_assert_uint_eq(record_lost_encode(&(struct record_lost){42, 1}, &some_id, buffer, 55), 0);
	ck_assert_uint_eq(record_lost_samples_encode(1, &some_id, buffer, 47), 0);
	ck_assert_uint_eq(record_throttle_encode(&(struct record_throttle){.id = 42}, &some_id, buffer, 63), 0);
	ck_assert_uint_eq(record_switch_encode(&(struct record_switch){true, 1, 1}, &some_id, buffer, 47), 0);
	ck_assert_uint_eq(record_read_encode(&(struct record_read){.tid = 1}, &some_id, buffer, 71), 0);
	ck_assert_uint_eq(record_comm_encode(&(struct record_comm){.comm = {"sh"}}, &some_id, buffer, 55), 0);
	ck_assert_uint_eq(record_cgroup_encode(&(struct record_cgroup){1, {"/"}}, &some_id, buffer, 55), 0);
	ck_assert_uint_eq(record_task_encode(&(struct record_task){.type = PERF_RECORD_FORK}, &some_id, buffer, 63), 0);
	ck_assert_uint_eq(record_mmap_encode(&(struct record_mmap){.file_name = {"x"}}, &some_id, buffer, 79), 0);
}
END_TEST

START_TEST(record_is_never_longer_than_its_size_field_can_say)
{
	static uint64_t buffer[1 << 14];
	static uint64_t long_chain[8190];
	static char text[RECORD_BYTES_MAX];
	struct record_sample sample = some_sample();

	sample.chain = long_chain;
	sample.n_chain = (RECORD_BYTES_MAX - 56 - 8) / 8;
	ck_assert_uint_eq(record_sample_encode(&sample, true, buffer, sizeof(buffer)), RECORD_BYTES_MAX);
	sample.n_chain++;
	ck_assert_uint_eq(record_sample_encode(&sample, true, buffer, sizeof(buffer)), 0);
	memset(text, 'x', sizeof(text) - 1);
	ck_assert_uint_eq(record_comm_encode(&(struct record_comm){.comm = {text}}, &some_id, buffer, sizeof(buffer)),
	                  0);
}
END_TEST

START_TEST(other_records_come_back)
{
	static const uint8_t build_id[20] = {1, 2, 3, [19] = 0xff};
	uint64_t buffer[64];
	const struct perf_event_header *record = (const struct perf_event_header *)buffer;
	uint64_t samples;
	struct record_lost lost;
	struct record_comm comm;
	struct record_event_name event;
	struct record_mmap mmap;
	struct record_throttle throttle;
	struct record_switch change;
	struct record_id out;

	for (int ends = 0; ends < 2; ends++) {
		size_t n = record_throttle_encode(&(struct record_throttle){ends, 800, 42}, &some_id, buffer,
		                                  sizeof(buffer));

		ck_assert_uint_eq(n, 64);
		ck_assert_uint_eq(record->type, ends ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE);
		ck_assert(record_throttle_decode(record, n, &throttle));
		ck_assert_int_eq(throttle.ends, ends);
		ck_assert_uint_eq(throttle.time_ns, 800);
		ck_assert_uint_eq(throttle.id, 42);
		ck_assert(!record_throttle_decode(record, 31, &throttle)); /* cut off */
	}
	for (int leaves = 0; leaves < 2; leaves++) {
		const struct record_switch switched = {.out = leaves, .other_pid = 12, .other_tid = 13};
		size_t n = record_switch_encode(&switched, &some_id, buffer, sizeof(buffer));

		ck_assert_uint_eq(n, 48);
		ck_assert_uint_eq(record->type, PERF_RECORD_SWITCH_CPU_WIDE);
		ck_assert(record_switch_decode(record, n, &change));
		ck_assert_int_eq(change.out, leaves);
		ck_assert_uint_eq(change.other_pid, 12);
		ck_assert_uint_eq(change.other_tid, 13);
		ck_assert(record_id_decode(record, n, VPROF_SAMPLE_TYPE, &out));
		ck_assert_uint_eq(out.pid, 7);
		ck_assert(!record_switch_decode(record, 12, &change)); /* cut off */
	}
	struct record_read read;
	size_t bytes =
		record_read_encode(&(struct record_read){12, 13, 1000, 300, 200}, &some_id, buffer, sizeof(buffer));

	ck_assert_uint_eq(bytes, 72);
	ck_assert_uint_eq(record->type, PERF_RECORD_READ);
	ck_assert(record_read_decode(record, bytes, VPROF_READ_FORMAT, &read));
	ck_assert_uint_eq(read.pid, 12);
	ck_assert_uint_eq(read.tid, 13);
	ck_assert_uint_eq(read.value, 1000);
	ck_assert_uint_eq(read.enabled_ns, 300);
	ck_assert_uint_eq(read.running_ns, 200);
	ck_assert(record_read_decode(record, 24, 0, &read)); /* of another program, without times */
	ck_assert_uint_eq(read.value, 1000);
	ck_assert_uint_eq(read.enabled_ns, 0);
	ck_assert(!record_read_decode(record, 23, 0, &read)); /* cut off */
	ck_assert(!record_read_decode(record, 39, VPROF_READ_FORMAT, &read));
	ck_assert(!record_read_decode(record, bytes, VPROF_READ_FORMAT | PERF_FORMAT_GROUP, &read));
	ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &out));
	ck_assert_uint_eq(out.id, 42);
	bytes = record_lost_encode(&(struct record_lost){42, 17}, &some_id, buffer, sizeof(buffer));
	ck_assert(record_lost_decode(record, bytes, &lost));
	ck_assert_uint_eq(lost.id, 42);
	ck_assert_uint_eq(lost.lost, 17);
	ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &out));
	ck_assert_uint_eq(out.pid, 7);
	ck_assert_uint_eq(out.tid, 8);
	ck_assert_uint_eq(out.time_ns, 900);
	ck_assert_uint_eq(out.cpu, 3);
	ck_assert_uint_eq(out.id, 42);

	bytes = record_lost_samples_encode(9, &some_id, buffer, sizeof(buffer));
	ck_assert(record_lost_samples_decode(record, bytes, &samples));
	ck_assert_uint_eq(samples, 9);
	ck_assert(!record_lost_samples_decode(record, 15, &samples));
	ck_assert(!record_lost_decode(record, bytes, &lost));
	ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &out));
	ck_assert_uint_eq(out.time_ns, 900);

	bytes = record_comm_encode(&(struct record_comm){7, 8, true, {"swapper"}}, &some_id, buffer, sizeof(buffer));
	ck_assert_uint_eq(bytes % 8, 0);
	ck_assert_uint_eq(record->misc, PERF_RECORD_MISC_COMM_EXEC);
	ck_assert(record_comm_decode(record, bytes, &comm));
	ck_assert_uint_eq(comm.pid, 7);
	ck_assert_uint_eq(comm.tid, 8);
	ck_assert(comm.exec);
	ck_assert_str_eq(comm.comm.raw, "swapper");
	ck_assert(!record_lost_decode(record, bytes, &lost));
	ck_assert(!record_throttle_decode(record, bytes, &throttle));

	struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.tid = 8,
		.start = 0x1000,
		.bytes = 0x2000,
		.page_offset = 0x3000,
		.file_name = {"[kernel.kallsyms]_text"},
	};

	bytes = record_mmap_encode(&mapping, &some_id, buffer, sizeof(buffer));
	ck_assert_uint_eq(record->type, PERF_RECORD_MMAP);
	ck_assert(record_mmap_decode(record, bytes, &mmap));
	ck_assert_uint_eq(mmap.mode, PERF_RECORD_MISC_KERNEL);
	ck_assert_uint_eq(mmap.pid, UINT32_MAX);
	ck_assert_uint_eq(mmap.tid, 8);
	ck_assert_uint_eq(mmap.start, 0x1000);
	ck_assert_uint_eq(mmap.bytes, 0x2000);
	ck_assert_uint_eq(mmap.page_offset, 0x3000);
	ck_assert_ptr_null(mmap.build_id);
	ck_assert_str_eq(mmap.file_name.raw, "[kernel.kallsyms]_text");

	mapping.build_id = build_id;
	mapping.build_id_bytes = sizeof(build_id);
	mapping.file_name = untrusted("vmlinux");
	bytes = record_mmap_encode(&mapping, &some_id, buffer, sizeof(buffer));
	ck_assert_uint_eq(record->type, PERF_RECORD_MMAP2);
	ck_assert(record_mmap_decode(record, bytes, &mmap));
	ck_assert_uint_eq(mmap.build_id_bytes, sizeof(build_id));
	ck_assert_mem_eq(mmap.build_id, build_id, sizeof(build_id));
	ck_assert_uint_eq(mmap.mode, PERF_RECORD_MISC_KERNEL);
	ck_assert_str_eq(mmap.file_name.raw, "vmlinux");
	mapping.build_id_bytes = sizeof(build_id) + 1;
	ck_assert_uint_eq(record_mmap_encode(&mapping, &some_id, buffer, sizeof(buffer)), 0);
	mapping.build_id_bytes = 0;
	ck_assert_uint_eq(record_mmap_encode(&mapping, &some_id, buffer, sizeof(buffer)), 0);

	bytes = record_event_name_encode(&(struct record_event_name){5, {"cycles:u"}}, buffer, sizeof(buffer));
	ck_assert(record_event_name_decode(record, bytes, &event));
	ck_assert_uint_eq(event.event_id, 5);
	ck_assert_str_eq(event.name.raw, "cycles:u");
	ck_assert(!record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &out));
}
END_TEST

/* Every field that linux/perf_event.h lists up to the chain, in its order; READ in each of its formats. */
START_TEST(sample_of_any_type)
{
	const uint64_t sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
	                             PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
	                             PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
	const uint64_t formats = PERF_FORMAT_LOST << 1;

	for (uint64_t format = 0; format < formats; format++) {
		uint64_t words[64] = {0, 1, 0x1234, UINT64_C(8) << 32 | 7, 900, 0xaaaa, 1, 0xbbbb, 2, 555};
		const uint64_t times = (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1u : 0u) +
		                       (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1u : 0u);
		const uint64_t per_value =
			1 + (format & PERF_FORMAT_ID ? 1u : 0u) + (format & PERF_FORMAT_LOST ? 1u : 0u);
		const struct perf_event_attr attr = {.sample_type = sample_type, .read_format = format};
		size_t n = 10;
		struct record_sample out;

		if (format & PERF_FORMAT_GROUP) {
			words[n] = 3;
			n += 1 + times + 3 * per_value;
		} else {
			n += times + per_value;
		}
		words[n++] = 2;
		words[n++] = 0x1234;
		words[n++] = 0x5678;
		words[n++] = 4; /* RAW: size, data */
		struct perf_event_header *record = (struct perf_event_header *)words;
		*record = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .misc = 2, .size = (uint16_t)(n * 8)};

		ck_assert(record_sample_decode_attr(record, n * 8, &attr, &out));
		const struct record_sample expected = {.id = 1,
		                                       .ip = 0x1234,
		                                       .pid = 7,
		                                       .tid = 8,
		                                       .time_ns = 900,
		                                       .cpu = 2,
		                                       .period = 555,
		                                       .misc = PERF_RECORD_MISC_USER,
		                                       .chain = &words[n - 3],
		                                       .n_chain = 2};
		assert_sample_eq(&out, &expected);
		/* Without the second address of the chain, and ever shorter. */
		for (size_t short_n = 1; short_n < n - 1; short_n++)
			ck_assert(!record_sample_decode_attr(record, short_n * 8, &attr, &out));
	}
}
END_TEST

/* The fields that may stand between the raw data and the cgroup, each alone and all together, in their order. */
START_TEST(a_cgroup_behind_fields_that_nobody_wants)
{
	static const struct {
		uint64_t bit;
		size_t n;
		uint64_t words[9];
	} fields[] = {
		{PERF_SAMPLE_RAW, 1, {4}},
		{PERF_SAMPLE_BRANCH_STACK, 8, {2, 77}}, /* the count, hw_idx, two branches */
		{PERF_SAMPLE_REGS_USER, 3, {PERF_SAMPLE_REGS_ABI_64}},
		{PERF_SAMPLE_STACK_USER, 4, {16, 1, 2, 8}},
		{PERF_SAMPLE_WEIGHT, 1, {3}},
		{PERF_SAMPLE_DATA_SRC, 1, {3}},
		{PERF_SAMPLE_TRANSACTION, 1, {3}},
		{PERF_SAMPLE_REGS_INTR, 2, {PERF_SAMPLE_REGS_ABI_64}},
		{PERF_SAMPLE_PHYS_ADDR, 1, {3}},
	};
	const size_t n_fields = sizeof(fields) / sizeof(fields[0]);

	for (unsigned set = 0; set < 1u << n_fields; set++) {
		struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_CGROUP | PERF_SAMPLE_CODE_PAGE_SIZE,
		                               .branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
		                               .sample_regs_user = 0x11,
		                               .sample_regs_intr = 0x100};
		uint64_t words[64] = {0};
		struct perf_event_header *record = (struct perf_event_header *)words;
		struct record_sample out;
		size_t n = 1;

		for (size_t i = 0; i < n_fields; i++) {
			if (!(set >> i & 1))
				continue;
			attr.sample_type |= fields[i].bit;
			memcpy(words + n, fields[i].words, sizeof(fields[i].words));
			n += fields[i].n;
		}
		words[n++] = 0xc0ffee;
		words[n++] = 4096;
		*record = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = (uint16_t)(n * 8)};
		ck_assert(record_sample_decode_attr(record, n * 8, &attr, &out));
		ck_assert_uint_eq(out.cgroup, 0xc0ffee);
		for (size_t short_n = 1; short_n < n - 1; short_n++)
			ck_assert(!record_sample_decode_attr(record, short_n * 8, &attr, &out));
	}
}
END_TEST

START_TEST(registers_and_stacks_may_be_absent)
{
	uint64_t words[] = {0, PERF_SAMPLE_REGS_ABI_NONE, 0, 0xc0ffee};
	const struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP,
		.sample_regs_user = UINT64_MAX,
	};
	struct perf_event_header *record = (struct perf_event_header *)words;
	struct record_sample out;

	*record = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizeof(words)};
	ck_assert(record_sample_decode_attr(record, sizeof(words), &attr, &out));
	ck_assert_uint_eq(out.cgroup, 0xc0ffee);
	words[2] = UINT64_MAX - 7; /* a stack that ends before it begins */
	ck_assert(!record_sample_decode_attr(record, sizeof(words), &attr, &out));
}
END_TEST

START_TEST(counts_that_overflow_are_refused)
{
	const struct perf_event_attr branches = {.sample_type = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_CGROUP};

	const struct perf_event_attr values = {.sample_type = PERF_SAMPLE_READ, .read_format = PERF_FORMAT_GROUP};
	uint64_t words[] = {0, UINT64_MAX, 0, 0};
	struct perf_event_header *record = (struct perf_event_header *)words;
	struct record_sample out;

	*record = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizeof(words)};
	ck_assert(!record_sample_decode(record, sizeof(words), PERF_SAMPLE_CALLCHAIN, &out));
	ck_assert(!record_sample_decode_attr(record, sizeof(words), &values, &out));
	ck_assert(!record_sample_decode_attr(record, sizeof(words), &branches, &out));
	words[1] = UINT64_C(1) << 61; /* times 8 bytes is 0 */
	ck_assert(!record_sample_decode_attr(record, sizeof(words), &branches, &out));
	ck_assert(!record_sample_decode(record, sizeof(words), PERF_SAMPLE_CALLCHAIN, &out));
	ck_assert(!record_sample_decode_attr(record, sizeof(words), &values, &out));
}
END_TEST

START_TEST(texts_without_an_end_are_refused)
{
	uint64_t buffer[64];
	struct perf_event_header *record = (struct perf_event_header *)buffer;
	struct record_comm comm;
	struct record_mmap mmap;

	memset(buffer, 'x', sizeof(buffer));
	*record = (struct perf_event_header){.type = PERF_RECORD_COMM, .size = 64};
	ck_assert(!record_comm_decode(record, 64, &comm));
	record->type = PERF_RECORD_MMAP;
	ck_assert(!record_mmap_decode(record, 64, &mmap));
	record->type = PERF_RECORD_MMAP2;
	ck_assert(!record_mmap_decode(record, 80, &mmap));
}
END_TEST

START_TEST(check_of_headers)
{
	uint64_t words[2] = {0};
	struct perf_event_header *record = (struct perf_event_header *)words;

	record->size = 16;
	ck_assert_ptr_nonnull(record_check(words, 16));
	ck_assert_ptr_null(record_check(words, 15));
	ck_assert_ptr_null(record_check(words, 7));
	for (uint16_t size = 0; size < 16; size++) {
		record->size = size;
		ck_assert_int_eq(record_check(words, 16) != NULL, size == 8);
	}
	record->size = 24;
	ck_assert_ptr_null(record_check(words, 16));
}
END_TEST

START_TEST(exit_names)
{
	static const struct {
		uint64_t reason, detail;
		const char *name;
	} expected[] = {
		{2, 0x3f8, "exit:io:0x3f8"},
		{6, 0xfee00000, "exit:mmio:0xfee00000"},
		{30, 0xc0000082, "exit:wrmsr:0xc0000082"},
		{29, 0x10, "exit:rdmsr:0x10"},
		{5, 0, "exit:hlt"},
		{8, 0, "exit:shutdown"},
		{10, 0, "exit:intr"},
		{17, 0, "exit:internal-error"},
		{77, 0x1234, "exit:77"},
		{VPROF_EXIT_REASON_VMM, 0, "exit:vmm"},
		{VPROF_EXIT_REASON_NESTED, 0, "nested guest"},
		{6, VPROF_EXIT_DETAIL_MASK, "exit:mmio:0xffffffffffffff"},
	};
	char name[EXIT_NAME_BYTES];

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		exit_name_format(vprof_exit_ip(expected[i].reason, expected[i].detail), name);
		ck_assert_str_eq(name, expected[i].name);
	}
	for (uint64_t reason = 0; reason < exit_name_count(); reason++)
		ck_assert_ptr_nonnull(exit_name_of_reason(reason));
	ck_assert_ptr_null(exit_name_of_reason(exit_name_count()));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("record");
	TCase *tests = tcase_create("record");

	tcase_add_test(tests, only_what_is_shown_is_printable);
	tcase_add_test(tests, printable_text_ends_between_characters);
	tcase_add_test(tests, lines_are_made_printable_one_by_one);
	tcase_add_test(tests, sample_comes_back);
	tcase_add_test(tests, a_cgroup_comes_back);
	tcase_add_test(tests, a_cgroup_behind_fields_that_nobody_wants);
	tcase_add_test(tests, registers_and_stacks_may_be_absent);
	tcase_add_test(tests, raw_data_comes_back);
	tcase_add_test(tests, waits_come_back_as_far_as_they_are_known);
	tcase_add_test(tests, a_kernel_symbol_is_encoded_as_linux_has_it);
	tcase_add_test(tests, losses_are_samples_and_others);
	tcase_add_test(tests, encoders_need_room);
	tcase_add_test(tests, record_is_never_longer_than_its_size_field_can_say);
	tcase_add_test(tests, other_records_come_back);
	tcase_add_test(tests, sample_of_any_type);
	tcase_add_test(tests, counts_that_overflow_are_refused);
	tcase_add_test(tests, texts_without_an_end_are_refused);
	tcase_add_test(tests, check_of_headers);
	tcase_add_test(tests, exit_names);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
