// SPDX-License-Identifier: BSD-2-Clause
/* What a BPF program has counted, written by hand: what a reading makes of it. The program itself: tests/host/exits.py.
 */
#include <check.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <vprof/exit.h>

#include <linux/perf_event.h>

#include "exits/exit_clock.h"
#include "exits/exit_events.h"
#include "exits/exit_reason.h"
#include "exits/trace_point.h"
#include "lib/record/clock.h"
#include "run_suite.h"

#define SVM_NPF 0x400u
#define SVM_HLT 0x78u
#define VMX_HLT 12u
#define SECOND UINT64_C(1000000000)

static struct exit_times_vcpu source;
static struct guest_vcpu_time reading;
static struct exit_clock *counter;

static void setup(void)
{
	memset(&source, 0, sizeof(source));
	memset(&reading, 0, sizeof(reading));
	source.now.isa = EXIT_ISA_SVM;
	source.now.state = EXIT_TIMES_STATE_GUEST;
	source.now.part = EXIT_TIMES_GUEST;
	source.now.since_ns = UINT64_MAX; /* nothing is added for the time since */
	counter = exit_clock_new(&(struct exit_source){.memory = &source});
}

static void teardown(void)
{
	exit_clock_free(counter);
}

static void take(uint64_t cpu_ns, bool causes)
{
	exit_clock_update(counter);
	exit_clock_read(counter, cpu_ns, causes, &reading);
}

static void reason_set(size_t slot, uint64_t key, uint64_t count, uint64_t ns)
{
	source.reasons[slot].key = key;
	source.reasons[slot].count = count;
	source.reasons[slot].ns = source.reasons[slot].kvm_ns = ns;
	source.reasons[slot].histogram[3] = count;
}

START_TEST(a_reading_is_what_has_passed)
{
	reason_set(0, SVM_NPF + 1, 10, 1000);
	source.now.ns[EXIT_TIMES_GUEST] = 500;
	source.now.ns[EXIT_TIMES_KVM] = 1000;
	take(0, false);
	ck_assert_uint_eq(reading.n_kvm_exits, 1);
	ck_assert_str_eq(reading.kvm_exits[0].name, "npf");
	ck_assert_uint_eq(reading.kvm_exits[0].count, 10);
	ck_assert_uint_eq(reading.time.guest_ns, 500);
	ck_assert_uint_eq(reading.time.kvm_ns, 1000);

	exit_clock_reset(counter);
	take(0, false);
	ck_assert_uint_eq(reading.n_kvm_exits, 0);
	ck_assert_uint_eq(reading.time.guest_ns, 0);
	reason_set(0, SVM_NPF + 1, 12, 1300);
	take(0, false);
	ck_assert_uint_eq(reading.kvm_exits[0].count, 2);
	ck_assert_uint_eq(reading.kvm_exits[0].ns, 300);
	ck_assert_uint_eq(reading.kvm_exits[0].histogram[3], 2);
}
END_TEST

START_TEST(any_reason_has_a_name)
{
	reason_set(0, SVM_HLT + 1, 1, 30);
	reason_set(1, UINT64_C(0xdeadbeef) + 1, 1, 20);
	reason_set(EXIT_TIMES_REASONS, EXIT_TIMES_OTHER, 1, 10);
	take(0, false);
	ck_assert_uint_eq(reading.n_kvm_exits, 3);
	ck_assert_str_eq(reading.kvm_exits[0].name, "hlt");
	ck_assert_str_eq(reading.kvm_exits[1].name, "0xdeadbeef");
	ck_assert_str_eq(reading.kvm_exits[2].name, "other");
}
END_TEST

/* A halt that goes on has its time, without being counted. */
START_TEST(an_open_exit_has_time_and_no_count)
{
	source.now.state = EXIT_TIMES_STATE_KVM;
	source.now.run = EXIT_TIMES_ASLEEP;
	source.now.part = EXIT_TIMES_BLOCKED;
	source.now.open = 1;
	source.now.reason = SVM_HLT;
	source.now.since_ns = source.now.exit_ns = clock_ns(CLOCK_MONOTONIC) - SECOND;
	take(0, false);
	ck_assert_uint_eq(reading.n_kvm_exits, 1);
	ck_assert_uint_eq(reading.kvm_exits[0].count, 0);
	ck_assert_uint_ge(reading.kvm_exits[0].halt_ns, SECOND);
	ck_assert_uint_lt(reading.kvm_exits[0].halt_ns, 60 * SECOND);
	ck_assert_uint_eq(reading.kvm_exits[0].halt_ns, reading.kvm_exits[0].ns);
	ck_assert_uint_eq(reading.time.halt_wait_ns, reading.kvm_exits[0].ns);
	ck_assert_uint_eq(reading.time.kvm_ns, 0);

	/* Woken half a second ago, and not on a processor yet. */
	source.now.woken_ns = source.now.since_ns + SECOND / 2;
	take(0, false);
	ck_assert_uint_eq(reading.time.halt_wait_ns, SECOND / 2);
	ck_assert_uint_ge(reading.time.runnable_ns, SECOND / 2);
	ck_assert_uint_eq(reading.time.halt_wait_ns + reading.time.runnable_ns, reading.kvm_exits[0].ns);

	/* The same in an exit that is no halt is KVM's. */
	source.now.reason = SVM_NPF;
	take(0, false);
	ck_assert_uint_eq(reading.time.halt_wait_ns, 0);
	ck_assert_uint_eq(reading.time.kvm_ns, SECOND / 2);
}
END_TEST

/* No event at all: what the thread did is told by its time on a processor. */
START_TEST(time_without_an_event_is_guest_and_halt)
{
	source.now.ns[EXIT_TIMES_UNKNOWN] = 1000;
	take(300, false);
	ck_assert_uint_eq(reading.time.guest_ns, 300);
	ck_assert_uint_eq(reading.time.halt_wait_ns, 700);
}
END_TEST

/* The first event tells what the time before it was, also that before a reset: which counts for nothing then. */
START_TEST(time_before_a_reset_is_not_counted_late)
{
	source.now.state = EXIT_TIMES_STATE_UNKNOWN;
	source.now.ns[EXIT_TIMES_UNKNOWN] = 1000;
	exit_clock_update(counter);
	exit_clock_reset(counter);
	source.now.state = EXIT_TIMES_STATE_VMM;
	source.now.resolved = EXIT_TIMES_VMM;
	source.now.ns[EXIT_TIMES_UNKNOWN] = 0;
	source.now.ns[EXIT_TIMES_VMM] = 1200;
	take(0, false);
	ck_assert_uint_eq(reading.time.vmm_traced_ns, 200);
	ck_assert_uint_eq(reading.time.guest_ns + reading.time.halt_wait_ns, 0);
}
END_TEST

START_TEST(accesses_and_causes)
{
	source.accesses[0].key = (EXIT_TIMES_ACCESS_WRITE | 0x3f8) + 1;
	source.accesses[0].count = 3;
	source.accesses[1].key = (EXIT_TIMES_ACCESS_MMIO | 0xfee000b0) + 1;
	source.accesses[1].count = 4;
	source.accesses[EXIT_TIMES_ADDRESSES].key = EXIT_TIMES_OTHER;
	source.accesses[EXIT_TIMES_ADDRESSES].count = 5;
	source.causes[0].key = vprof_exit_ip(KVM_EXIT_IO, 0x3f8) + 1;
	source.causes[0].count = 3;
	source.causes[EXIT_TIMES_CAUSES].key = EXIT_TIMES_OTHER;
	source.causes[EXIT_TIMES_CAUSES].count = 1;
	source.causes[EXIT_TIMES_CAUSES].ns = 9;
	take(0, true);
	ck_assert_uint_eq(reading.n_accesses, 3);
	ck_assert(reading.accesses[0].write && !reading.accesses[0].mmio);
	ck_assert_uint_eq(reading.accesses[0].address, 0x3f8);
	ck_assert(!reading.accesses[1].write && reading.accesses[1].mmio);
	ck_assert_uint_eq(reading.accesses[1].address, 0xfee000b0);
	ck_assert(reading.accesses[2].other);
	ck_assert_uint_eq(reading.accesses[2].count, 5);
	ck_assert_uint_eq(reading.n_exits, 2);
	ck_assert_uint_eq(vprof_exit_detail(reading.exits[0].ip), VPROF_EXIT_DETAIL_MASK); /* the longest */
	ck_assert_uint_eq(reading.exits[1].ip, vprof_exit_ip(KVM_EXIT_IO, 0x3f8));
}
END_TEST

/* Whatever is in the memory, a reading stays in its bounds. */
START_TEST(garbage_is_bounded)
{
	memset(&source, 0xff, sizeof(source));
	source.now.sequence = 1; /* for ever being written */
	take(0, true);
	ck_assert_uint_le(reading.n_kvm_exits, GUEST_KVM_EXITS_MAX);
	ck_assert_uint_le(reading.n_accesses, GUEST_ACCESSES_MAX);
	ck_assert_uint_le(reading.n_exits, GUEST_EXITS_MAX);
}
END_TEST

/* ---- records of perf's ---- */

static const uint64_t ids[EXIT_POINTS] = {100, 101, 102, 103, 104, 105, 106};

/* A record of a trace point with its first fields, at `us`. */
static void point(enum exit_point which, uint64_t us, uint32_t at_8, uint32_t at_12, uint64_t at_16, uint32_t at_24)
{
	struct {
		struct perf_event_header header;
		uint64_t time_ns;
		uint32_t bytes;
		uint16_t id;
		char common[6];
		char fields[20]; /* at 8 and on; unaligned */
	} record = {.header = {PERF_RECORD_SAMPLE, 0, sizeof(record)},
	            .time_ns = us * 1000,
	            .bytes = 28,
	            .id = (uint16_t)ids[which]};

	memcpy(record.fields, &at_8, 4);
	memcpy(record.fields + 4, &at_12, 4);
	memcpy(record.fields + 8, &at_16, 8);
	memcpy(record.fields + 16, &at_24, 4);
	exit_events_take(&record.header, sizeof(record), ids, &source);
}

static void switched(uint64_t us, uint16_t misc)
{
	const struct {
		struct perf_event_header header;
		uint64_t time_ns;
	} record = {{PERF_RECORD_SWITCH, misc, sizeof(record)}, us * 1000};

	exit_events_take(&record.header, sizeof(record), ids, &source);
}

static void records_begin(void)
{
	memset(&source, 0, sizeof(source));
	source.now.part = EXIT_TIMES_UNKNOWN;
}

static uint64_t us_in(enum exit_times_part part)
{
	return source.now.ns[part] / 1000;
}

START_TEST(records_are_taken_into_account)
{
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT, preempted = out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;

	records_begin();
	switched(5, out); /* not known where the thread is */
	switched(6, 0);
	point(EXIT_POINT_EXIT, 10, 0x7b, 0, 0, EXIT_ISA_SVM);
	point(EXIT_POINT_PORT, 11, 1, 0x3f8, 0, 0);
	point(EXIT_POINT_RETURN, 13, KVM_EXIT_IO, 0, 0, 0);
	point(EXIT_POINT_RUN, 20, 0, 0, 0, 0); /* put, not loaded */
	point(EXIT_POINT_RUN, 23, 1, 0, 0, 0);
	switched(25, preempted);
	switched(28, 0);
	point(EXIT_POINT_ENTRY, 30, 0, 0, 0, 0);
	point(EXIT_POINT_EXIT, 40, SVM_HLT, 0, 0, EXIT_ISA_SVM);
	switched(42, out);
	switched(90, 0);
	point(EXIT_POINT_HALTED, 92, 50000, 0, 1, 0);
	point(EXIT_POINT_ENTRY, 95, 0, 0, 0, 0);

	ck_assert_uint_eq(us_in(EXIT_TIMES_GUEST), 10 + 10);
	ck_assert_uint_eq(us_in(EXIT_TIMES_KVM), 3 + 2 + 2 + 3 + 2);
	ck_assert_uint_eq(us_in(EXIT_TIMES_VMM), 10);
	ck_assert_uint_eq(us_in(EXIT_TIMES_WAITING), 3);
	ck_assert_uint_eq(us_in(EXIT_TIMES_HALT), 48);
	ck_assert_uint_eq(us_in(EXIT_TIMES_POLL), 2);
	ck_assert_uint_eq(source.accesses[EXIT_TIMES_ADDRESSES].count, 0);
	ck_assert_uint_eq(source.now.lost, 0);
	take(0, true);
	ck_assert_uint_eq(reading.n_exits, 1);
	ck_assert_uint_eq(reading.exits[0].ip, vprof_exit_ip(KVM_EXIT_IO, 0x3f8));
	ck_assert_uint_eq(reading.n_kvm_exits, 2);
}
END_TEST

/* What was lost is nobody's time, and the account goes on with the next record of KVM's. */
START_TEST(lost_records_are_counted)
{
	const struct {
		struct perf_event_header header;
		uint64_t id, lost, time_ns;
	} lost = {{PERF_RECORD_LOST, 0, sizeof(lost)}, 1, 7, 0};

	records_begin();
	point(EXIT_POINT_ENTRY, 10, 0, 0, 0, 0);
	point(EXIT_POINT_EXIT, 20, SVM_NPF, 0, 0, EXIT_ISA_SVM);
	exit_events_take(&lost.header, sizeof(lost), ids, &source);
	switched(30, 0);
	point(EXIT_POINT_ENTRY, 50, 0, 0, 0, 0);
	point(EXIT_POINT_EXIT, 60, SVM_NPF, 0, 0, EXIT_ISA_SVM);
	ck_assert_uint_eq(source.now.lost, 7);
	ck_assert_uint_eq(us_in(EXIT_TIMES_LOST), 30);
	ck_assert_uint_eq(us_in(EXIT_TIMES_GUEST), 20);
	take(0, false);
	ck_assert_uint_eq(reading.lost, 7);
	/* A record that is cut off is none. */
	exit_events_take(&lost.header, 16, ids, &source);
	exit_events_take(&lost.header, 4, ids, &source);
	ck_assert_uint_eq(source.now.lost, 7);
}
END_TEST

START_TEST(names_are_those_of_the_kernel)
{
	char name[GUEST_EXIT_NAME_BYTES];

	exit_reason_name(EXIT_ISA_VMX, 48, name);
	ck_assert_str_eq(name, "EPT_VIOLATION");
	exit_reason_name(EXIT_ISA_VMX, 0x80000021, name);
	ck_assert_str_eq(name, "INVALID_STATE FAILED_VMENTRY");
	exit_reason_name(EXIT_ISA_SVM, 0xffffffff, name);
	ck_assert_str_eq(name, "invalid_guest_state");
	exit_reason_name(EXIT_ISA_SVM, 0x40 + 14, name);
	ck_assert_str_eq(name, "PF excp");
	exit_reason_name(3, 1, name);
	ck_assert_str_eq(name, "0x1");
	ck_assert(exit_reason_is_halt(EXIT_ISA_VMX, VMX_HLT) && exit_reason_is_halt(EXIT_ISA_SVM, SVM_HLT));
	ck_assert(!exit_reason_is_halt(EXIT_ISA_VMX, SVM_HLT) && !exit_reason_is_halt(0, VMX_HLT));
}
END_TEST

static const char format[] = "name: kvm_exit\n"
			     "ID: 1440\n"
			     "format:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\n"
			     "\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n"
			     "\n"
			     "print fmt: \"reason %s\"\n";

START_TEST(formats_of_trace_points)
{
	uint64_t id = 0;

	ck_assert(trace_point_id(format, &id));
	ck_assert_uint_eq(id, 1440);
	ck_assert(!trace_point_id("name: kvm_exit\n", &id));
	ck_assert(trace_point_has(format, "exit_reason", 8, 4));
	ck_assert(trace_point_has(format, "isa", 24, 4));
	ck_assert(!trace_point_has(format, "isa", 24, 8));
	ck_assert(!trace_point_has(format, "isa", 16, 4));
	ck_assert(!trace_point_has(format, "reason", 8, 4));
	ck_assert(!trace_point_has("\tfield:;\n\tfield:isa;\n\tfield", "isa", 24, 4));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exits");
	TCase *readings = tcase_create("readings"), *names = tcase_create("names");

	tcase_add_checked_fixture(readings, setup, teardown);
	tcase_add_test(readings, a_reading_is_what_has_passed);
	tcase_add_test(readings, any_reason_has_a_name);
	tcase_add_test(readings, an_open_exit_has_time_and_no_count);
	tcase_add_test(readings, time_without_an_event_is_guest_and_halt);
	tcase_add_test(readings, time_before_a_reset_is_not_counted_late);
	tcase_add_test(readings, accesses_and_causes);
	tcase_add_test(readings, garbage_is_bounded);
	tcase_add_test(readings, records_are_taken_into_account);
	tcase_add_test(readings, lost_records_are_counted);
	tcase_add_test(names, names_are_those_of_the_kernel);
	tcase_add_test(names, formats_of_trace_points);
	suite_add_tcase(suite, readings);
	suite_add_tcase(suite, names);
	return run_suite(suite);
}
