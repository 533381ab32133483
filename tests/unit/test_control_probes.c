// SPDX-License-Identifier: BSD-2-Clause
/* The methods of probes: what they answer, what they refuse, and what becomes of a client's probes. */
#include <asm/unistd.h>
#include <linux/kvm.h>
#include <string.h>
#include <vprof/probe.h>

#include "control_fixture.h"
#include "fake_debug.h"
#include "lib/record/ring_reader.h"
#include "linux_image.h"
#include "run_suite.h"

static struct peer peer, other;

static void setup(void)
{
	memset(&fake_debug, 0, sizeof(fake_debug));
	fake_debug.regs = (struct guest_regs){.rip = 0xffffffff81000010, .valid = true};
	fake_debug.gprs = (struct guest_gprs){.rdi = 11, .rflags = 2};
	fixture_setup();
	fake.guest.debug = &fake_debug_ops;
	peer_join(&peer);
	peer_join(&other);
}

static void teardown(void)
{
	peer_deinit(&peer);
	peer_deinit(&other);
	fixture_teardown();
	ck_assert_uint_eq(fake_debug.n_breakpoints, 0);
	ck_assert_uint_eq(fake_debug.n_observers, 0);
}

#define ADD_WITH(probe, more) "{\"execute\":\"probe-add\",\"arguments\":{\"probe\":\"" probe "\"," more "}}"
#define ADD(probe) "{\"execute\":\"probe-add\",\"arguments\":{\"probe\":\"" probe "\"}}"
#define RECORD(on) "{\"execute\":\"probe-record\",\"arguments\":{\"on\":" on "}}"

START_TEST(lists)
{
	json_auto_t *all = peer_return(&peer, REQUEST("probe-list"));

	ck_assert_uint_eq(json_array_size(json_object_get(all, "providers")), 20);
	ck_assert_uint_eq(json_array_size(json_object_get(all, "probes")), 0);
	json_auto_t *some = peer_return(
		&peer, "{\"execute\":\"probe-list\",\"arguments\":{\"match\":\"syscall:*readv*\",\"from\":1}}");
	assert_json(json_object_get(some, "probes"), "[\"syscall:preadv\",\"syscall:process_vm_readv\","
	                                             "\"syscall:preadv2\"]");
	ck_assert(json_is_null(json_object_get(some, "next")));
	json_auto_t *arguments =
		peer_return(&peer, "{\"execute\":\"probe-args\",\"arguments\":{\"probe\":\"io:1016\"}}");
	assert_json(arguments,
	            "{\"name\":\"io:0x3f8\",\"arguments\":[\"port\",\"value\",\"bytes\",\"write\"],\"types\":[]}");
	json_auto_t *returned = peer_return(
		&peer,
		"{\"execute\":\"probe-args\",\"arguments\":{\"probe\":\"syscall:" G_STRINGIFY(__NR_read) ":return\"}}");
	assert_json(returned, "{\"name\":\"syscall:read:return\",\"arguments\":[\"nr\",\"retval\"],\"types\":[]}");
	peer_refused(
		&peer, "{\"execute\":\"probe-args\",\"arguments\":{\"probe\":\"what\"}}", "InvalidArgument",
		"the providers are profile, interval, exit, io, mmio, msr, syscall, function, return, user, usdt, tracepoint, marker, recording");
}
END_TEST

START_TEST(refusals)
{
	peer_refused(&peer, RECORD("true"), "WrongState", "there is no probe");
	peer_refused(&peer, REQUEST("probe-read"), "WrongState", "have not recorded yet");
	peer_refused(&peer, REQUEST("probe-rings"), "WrongState", "have not recorded yet");
	peer_refused(&peer, "{\"execute\":\"probe-remove\",\"arguments\":{\"id\":1}}", "InvalidArgument", "id 1");
	peer_refused(&peer, ADD("function:vfs_read"), "Unsupported", "kernel image is not known");
	peer_refused(&peer, ADD("exit:nothing"), "InvalidArgument", "KVM has no exit");
	peer_refused(&peer, "{\"execute\":\"probe-add\",\"arguments\":{\"probe\":\"io:*\",\"registers\":[\"eax\"]}}",
	             "InvalidArgument", "no register \"eax\"");
	json_decref(peer_return(&peer, ADD("function:0x1000")));
	peer_refused(&peer, ADD("function:4096"), "WrongState", "already; its id is 1");
	json_decref(peer_return(&peer, ADD("function:0x2000")));
	json_decref(peer_return(&peer, ADD("function:0x3000")));
	json_decref(peer_return(&peer, ADD("function:0x4000")));
	peer_refused(&peer, ADD("function:0x5000"), "Busy", "all taken");
	json_decref(peer_return(&peer, RECORD("true")));
	peer_refused(&peer, RECORD("true"), "WrongState", "do already");
	peer_refused(&peer, ADD("io:*"), "WrongState", "while they record");
	json_decref(peer_return(&peer, RECORD("false")));
	json_decref(peer_return(&peer, RECORD("false")));
	fake.guest.debug = NULL;
	peer_refused(&peer, ADD("io:*"), "Unsupported", "a guest of kind fake can only be sampled");
	fake.guest.debug = &fake_debug_ops;
}
END_TEST

/* What takes a breakpoint says which, and whether the guest has left it alone. */
START_TEST(breakpoints_by_choice)
{
	json_auto_t *any = peer_return(&peer, ADD("function:0x1000"));

	ck_assert_str_eq(json_string_value(json_object_get(any, "breakpoint")), "processor");
	json_auto_t *patch = peer_return(&peer, ADD_WITH("function:0x2000", "\"breakpoint\":\"patch\""));
	ck_assert_str_eq(json_string_value(json_object_get(patch, "breakpoint")), "patch");
	ck_assert(json_is_true(json_object_get(patch, "intact")));
	peer_refused(&peer, ADD_WITH("function:0x3000", "\"breakpoint\":\"both\""), "InvalidArgument",
	             "one of any, processor, patch");

	fake_debug.overwritten = true;
	json_auto_t *state = peer_return(&peer, REQUEST("query-probes"));
	const json_t *probes = json_object_get(state, "probes");
	ck_assert(json_is_true(json_object_get(json_array_get(probes, 0), "intact")));
	ck_assert(json_is_false(json_object_get(json_array_get(probes, 1), "intact")));
}
END_TEST

START_TEST(events_by_json)
{
	const struct guest_access out = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x3f8, .value = 'x'};
	json_auto_t *added =
		peer_return(&peer, "{\"execute\":\"probe-add\",\"arguments\":{\"probe\":\"io:0x3f8\",\"registers\":"
	                           "[\"rflags\",\"rdi\"],\"stack\":false}}");

	assert_json(
		added,
		"{\"id\":1,\"name\":\"io:0x3f8\",\"arguments\":[\"port\",\"value\",\"bytes\",\"write\"],\"types\":[],\"fields\":[],"
		"\"registers\":[\"rdi\",\"rflags\"],\"stack\":false,\"events\":0,"
		"\"breakpoint\":null,\"intact\":true,\"processes\":null,\"similar\":null}");
	json_decref(peer_return(&peer, RECORD("true")));
	fake_access(&fake, 1, &out);
	fake_access(&fake, 1, &out);
	json_auto_t *read = peer_return(&peer, "{\"execute\":\"probe-read\",\"arguments\":{\"max\":1}}");
	ck_assert(json_is_true(json_object_get(read, "more")));
	json_t *event = json_array_get(json_object_get(read, "events"), 0);
	ck_assert(json_is_integer(json_object_get(event, "time-ns")));
	json_object_del(event, "time-ns");
	json_object_del(event, "pid");
	json_object_del(event, "tid");
	assert_json(event, "{\"probe\":1,\"vcpu\":1,\"comm\":null,\"ip\":\"0xffffffff81000010\",\"values\":[\"0x3f8\","
	                   "\"0x78\",\"0x1\",\"0x1\",\"0xb\",\"0x2\"],\"stack\":[]}");
	json_auto_t *rest = peer_return(&peer, REQUEST("probe-read"));
	ck_assert_uint_eq(json_array_size(json_object_get(rest, "events")), 1);
	ck_assert(json_is_false(json_object_get(rest, "more")));
	json_auto_t *none = peer_return(&peer, "{\"execute\":\"probe-read\",\"arguments\":{\"timeout-ms\":20}}");
	ck_assert_uint_eq(json_array_size(json_object_get(none, "events")), 0);
	peer_refused(&peer, REQUEST("probe-rings"), "WrongState", "probe-read has begun");
	json_auto_t *state = peer_return(&peer, REQUEST("query-probes"));
	ck_assert(json_is_true(json_object_get(state, "recording")));
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(state, "statistics"), "readevt")), 2);
	/* The other client has none of it. */
	json_auto_t *others = peer_return(&other, REQUEST("query-probes"));
	ck_assert_uint_eq(json_array_size(json_object_get(others, "probes")), 0);
}
END_TEST

/* {
 *	if (value == 'x') { @[value] = count(); send(value, 'x'); }
 * }
 */
#define PROGRAM                                                            \
	"1d00000000000000010000000000000000000100000000007800000000000000" \
	"1300020000000100000000000000000018000000020000000700000000000000" \
	"2400000000000100000000000000000026000000000002000900000000000000" \
	"17000000000000000700000000000000"

START_TEST(programs_run_instead_of_events)
{
	struct guest_access out = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x3f8, .value = 'x'};

	json_decref(peer_return(&peer, ADD("io:0x3f8")));
	peer_refused(&peer, "{\"execute\":\"probe-program\",\"arguments\":{\"id\":1,\"program\":\"" PROGRAM "\"}}",
	             "InvalidArgument", "instruction 4 of the program has no such map");
	json_auto_t *map = peer_return(
		&peer,
		"{\"execute\":\"probe-map-add\",\"arguments\":{\"kind\":\"count\",\"key-words\":1,\"entries\":2}}");
	assert_json(map, "{\"map\":0}");
	json_decref(peer_return(&peer, "{\"execute\":\"probe-program\",\"arguments\":{\"id\":1,\"program\":\"" PROGRAM
	                               "\"}}"));
	peer_refused(&peer, "{\"execute\":\"probe-program\",\"arguments\":{\"id\":1,\"program\":\"00\"}}",
	             "InvalidArgument", "not pairs of hexadecimal digits for instructions of 16 bytes");
	peer_refused(&peer, "{\"execute\":\"probe-program\",\"arguments\":{\"id\":2,\"program\":\"" PROGRAM "\"}}",
	             "InvalidArgument", "no probe with id 2");
	peer_refused(&peer, "{\"execute\":\"probe-map-read\",\"arguments\":{\"map\":1}}", "InvalidArgument",
	             "no map 1");
	json_decref(peer_return(&peer, RECORD("true")));
	fake_access(&fake, 1, &out);
	fake_access(&fake, 0, &out);
	out.value = 'y';
	fake_access(&fake, 0, &out);
	json_auto_t *counts = peer_return(&peer, "{\"execute\":\"probe-map-read\",\"arguments\":{\"map\":0}}");
	assert_json(counts, "{\"entries\":[{\"key\":[\"0x78\"],\"value\":[\"0x2\"]}],\"next\":null,\"dropped\":0}");
	json_auto_t *read = peer_return(&peer, REQUEST("probe-read"));
	const json_t *events = json_object_get(read, "events");
	ck_assert_uint_eq(json_array_size(events), 2);
	assert_json(json_object_get(json_array_get(events, 0), "values"), "[\"0x9\",\"0x78\",\"0x78\"]");
	json_decref(
		peer_return(&peer, "{\"execute\":\"probe-map-clear\",\"arguments\":{\"map\":0,\"keep-keys\":true}}"));
	json_auto_t *kept = peer_return(&peer, "{\"execute\":\"probe-map-read\",\"arguments\":{\"map\":0}}");
	assert_json(json_object_get(kept, "entries"), "[{\"key\":[\"0x78\"],\"value\":[\"0x0\"]}]");
	json_auto_t *state = peer_return(&peer, REQUEST("query-probes"));
	const json_t *statistics = json_object_get(state, "statistics");
	ck_assert_int_eq(json_integer_value(json_object_get(statistics, "hit")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(statistics, "event")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(statistics, "map-full")), 0);
}
END_TEST

/* Of as many probes as a client can have, an answer has a part. */
START_TEST(many_probes)
{
	unsigned n = 0, answers = 0;
	json_int_t from = 0;

	for (unsigned i = 0; i < VPROF_PROBES_MAX; i++) {
		g_autofree char *request = g_strdup_printf(ADD("io:%u"), i);

		json_decref(peer_return(&peer, request));
	}
	peer_refused(&peer, ADD("io:9999"), "WrongState", "there are 512 probes, the most there can be");
	do {
		g_autofree char *request = g_strdup_printf(
			"{\"execute\":\"query-probes\",\"arguments\":{\"from\":%" JSON_INTEGER_FORMAT "}}", from);
		json_auto_t *state = peer_return(&peer, request);
		const json_t *probes = json_object_get(state, "probes");

		ck_assert_uint_gt(json_array_size(probes), 0);
		ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(probes, 0), "id")), n + 1);
		n += (unsigned)json_array_size(probes);
		from = json_integer_value(json_object_get(state, "next"));
		answers++;
	} while (from > 0);
	ck_assert_uint_eq(n, VPROF_PROBES_MAX);
	ck_assert_uint_gt(answers, 1);
}
END_TEST

START_TEST(a_recording_has_a_start_and_an_end)
{
	json_decref(peer_return(&peer, ADD("recording:start")));
	json_decref(peer_return(&peer, ADD("recording:end")));
	peer_refused(&peer, ADD("recording:middle"), "InvalidArgument", "recording:start or recording:end");
	json_decref(peer_return(&peer, RECORD("true")));
	json_auto_t *first = peer_return(&peer, REQUEST("probe-read"));
	const json_t *events = json_object_get(first, "events");
	ck_assert_uint_eq(json_array_size(events), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(events, 0), "probe")), 1);
	json_decref(peer_return(&peer, RECORD("false")));
	json_auto_t *last = peer_return(&peer, REQUEST("probe-read"));
	events = json_object_get(last, "events");
	ck_assert_uint_eq(json_array_size(events), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(events, 0), "probe")), 2);
}
END_TEST

START_TEST(events_by_rings)
{
	struct record_sample sample;
	size_t bytes;

	json_decref(peer_return(&peer, ADD("function:0x1000")));
	json_decref(peer_return(&peer, RECORD("true")));
	json_decref(peer_return(&peer, REQUEST("probe-rings")));
	ck_assert_uint_eq(peer.fds->len, 2 * FIXTURE_VCPUS);
	struct ring_reader *reader = ring_reader_open(g_array_index(peer.fds, int, 0), NULL);
	fake_hit(&fake, 0, fake_debug.breakpoints[0]);
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	ck_assert_ptr_nonnull(record);
	ck_assert(record_sample_decode(record, bytes, VPROF_PROBE_SAMPLE_TYPE, &sample));
	ck_assert_uint_eq(sample.id, 1);
	ring_reader_free(reader);
	peer_refused(&peer, REQUEST("probe-read"), "WrongState", "probe-rings has begun");
}
END_TEST

START_TEST(probes_go_with_their_client)
{
	json_decref(peer_return(&other, ADD("function:0x1000")));
	json_decref(peer_return(&other, RECORD("true")));
	ck_assert_uint_eq(fake_debug.n_breakpoints, 1);
	ck_assert_uint_eq(fake_debug.n_observers, 1);
	close(other.fd);
	other.fd = -1;
	fixture_settle();
	ck_assert_uint_eq(fake_debug.n_breakpoints, 0);
	ck_assert_uint_eq(fake_debug.n_observers, 0);
}
END_TEST

START_TEST(mappings)
{
	peer_refused(&peer, "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"0x1000\"}}", "Unsupported",
	             "kernel image");
	peer_refused(&peer,
	             "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"0x1000\",\"bytes\":4,\"vcpu\":9}}",
	             "InvalidArgument", "there is no vCPU 9");
	peer_refused(&peer,
	             "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"0x1000\",\"bytes\":4,\"vcpu\":1}}",
	             "WrongState", "do not map them");
	peer_refused(&peer,
	             "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"0x1000\",\"pid\":1,\"bytes\":4}}",
	             "InvalidArgument", "excludes");
	peer_refused(&peer, "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"0x1000\",\"pid\":1}}",
	             "Unsupported", "of process 1: ");
}
END_TEST

#define MAPPING(address) "{\"execute\":\"mapping-read\",\"arguments\":{\"address\":\"" address "\"}}"

/* The image has a segment at 0, for per-CPU data, which is at other addresses in the guest. */
START_TEST(mappings_of_linux)
{
	struct image *image = linux_image_make(&(struct linux_image){.per_cpu = "current_task"});
	g_autofree char *path = g_strdup_printf("%s/vprof-vmlinux-%d", g_get_tmp_dir(), (int)getpid());
	size_t bytes;
	const uint8_t *file = image_bytes(image, &bytes);

	ck_assert(g_file_set_contents(path, (const char *)file, (gssize)bytes, NULL));
	fake.guest.kernel_path = path;
	peer_refused(&peer, MAPPING("0x10"), "WrongState", "0x10 is in no file");
	json_auto_t *text = peer_return(&peer, MAPPING("0xffffffff81000010"));
	ck_assert_str_eq(json_string_value(json_object_get(text, "start")), "0xffffffff81000000");
	fake.guest.kernel_path = NULL;
	unlink(path);
	image_free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_probes");
	TCase *test = tcase_create("probes");
	tcase_add_checked_fixture(test, setup, teardown);
	tcase_set_timeout(test, 60);
	tcase_add_test(test, lists);
	tcase_add_test(test, refusals);
	tcase_add_test(test, many_probes);
	tcase_add_test(test, breakpoints_by_choice);
	tcase_add_test(test, events_by_json);
	tcase_add_test(test, programs_run_instead_of_events);
	tcase_add_test(test, a_recording_has_a_start_and_an_end);
	tcase_add_test(test, events_by_rings);
	tcase_add_test(test, probes_go_with_their_client);
	tcase_add_test(test, mappings);
	tcase_add_test(test, mappings_of_linux);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
