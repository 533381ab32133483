// SPDX-License-Identifier: BSD-2-Clause
/* A session on a guest that a route samples: what the route hands over is in the rings, and what it cannot is said. */
#include <check.h>
#include <string.h>

#include "counter/route.h"
#include "elf_builder.h"
#include "fake_systems.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"
#include "sample/session.h"

#define KERNEL_RIP UINT64_C(0xffffffff81000010)
#define USER_RIP UINT64_C(0x401000)
#define HOST_IP UINT64_C(0xffffffff81abcd00)

#define KERNEL_TEXT UINT64_C(0xffffffff81000000)

static struct guest guest;
static struct session *session;
static struct counter_route_config in_force; /* what the session asked of the route; .take NULL: stopped */

static char *never(struct guest *which)
{
	return g_strdup_printf("%s has no such thing; buy one", which->name);
}

static char *always(struct guest *which G_GNUC_UNUSED)
{
	return NULL;
}

static bool fake_start(struct guest *which G_GNUC_UNUSED, const struct counter_route_config *config,
                       GError **error G_GNUC_UNUSED)
{
	in_force = *config;
	return true;
}

static void fake_stop(struct guest *which G_GNUC_UNUSED)
{
	in_force.take = NULL;
}

static bool hopeless;

static bool is_hopeless(struct guest *which G_GNUC_UNUSED)
{
	return hopeless;
}

static const struct counter_route route_absent = {
	.name = "absent", .summary = "is not there", .impossible = is_hopeless, .unavailable = never};
static const struct counter_route route_slow = {
	.name = "slow",
	.summary = "sees little, and that slowly",
	.event_default = "timer",
	.frequency_hz_default = 50,
	.frequency_hz_max = 100,
	.host = true,
	.unavailable = always,
	.start = fake_start,
	.stop = fake_stop,
};
static const struct counter_route route_whole = {
	.name = "whole",
	.summary = "sees registers",
	.event_default = "timer",
	.frequency_hz_default = 50,
	.registers = true,
	.unavailable = always,
	.start = fake_start,
	.stop = fake_stop,
};
static const struct counter_route *const routes[] = {&route_absent, &route_slow, &route_whole, NULL};

static void setup(void)
{
	guest = (struct guest){
		.kind = "fake", .name = (char *)"web01", .vcpus = 2, .routes = routes, .systems = fake_systems};
	session = session_new(&guest, NULL);
}

static void teardown(void)
{
	session_free(session);
}

static void start(const struct session_config *config)
{
	GError *error = NULL;

	ck_assert_msg(session_start(session, config, &error), "%s", error ? error->message : "");
}

static void assert_refused(const struct session_config *config, const char *text)
{
	g_autoptr(GError) error = NULL;

	ck_assert(!session_start(session, config, &error));
	ck_assert_msg(strstr(error->message, text), "%s", error->message);
}

static void take(unsigned vcpu, uint64_t rip, uint8_t cpl, bool in_guest)
{
	const struct counter_sample sample = {.vcpu = vcpu,
	                                      .overflow = {.event = 0, .period = 20000000},
	                                      .time_ns = 1,
	                                      .in_guest = in_guest,
	                                      .regs = {.rip = rip, .cpl = cpl, .valid = true}};

	in_force.take(in_force.data, &sample);
}

START_TEST(the_first_that_works_is_taken_with_its_defaults)
{
	start(&(struct session_config){0});
	ck_assert_str_eq(session_delivery(session), "slow");
	ck_assert_str_eq(session_configuration(session)->events[0].name, "timer");
	ck_assert_uint_eq(in_force.rate.frequency_hz, 50);
	ck_assert_uint_eq(in_force.n_events, 1);
	ck_assert(!session_has_tasks(session));
	ck_assert_str_eq(session_route_why(session), "absent: web01 has no such thing; buy one");
	ck_assert(session_stop(session, NULL));
	ck_assert_ptr_null(in_force.take);
	start(&(struct session_config){.route = "slow"});
	ck_assert_ptr_null(session_route_why(session)); /* it was asked for */
	ck_assert(session_stop(session, NULL));
	hopeless = true;
	start(&(struct session_config){0});
	ck_assert_ptr_null(session_route_why(session)); /* it is the best one for this guest */
	hopeless = false;
}
END_TEST

START_TEST(without_registers_there_are_no_tasks_and_it_says_why)
{
	start(&(struct session_config){0});
	ck_assert_ptr_nonnull(strstr(session_tasks_why(session), "without registers"));
	ck_assert(session_stop(session, NULL));
	start(&(struct session_config){.no_tasks = true});
	ck_assert_ptr_null(session_tasks_why(session)); /* they were not asked for */
}
END_TEST

START_TEST(samples_are_in_the_ring_of_their_vcpu)
{
	static const uint16_t misc[] = {PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_USER, PERF_RECORD_MISC_HYPERVISOR};
	const struct counter_statistics statistics = {.overflows = 3, .throttled = 2, .idle = 7, .expected = 12};
	const struct perf_event_header *record;
	struct session_statistics figures;
	struct record_throttle throttle;
	struct record_sample sample;
	size_t bytes;

	start(&(struct session_config){0});
	take(1, KERNEL_RIP, 0, true);
	take(1, USER_RIP, 3, true);
	take(1, USER_RIP, 3, false);
	in_force.statistics(in_force.data, 1, &statistics);
	in_force.throttle(in_force.data, 1, &(struct counter_throttle){.time_ns = 1000});
	in_force.throttle(in_force.data, 1, &(struct counter_throttle){.ends = true, .time_ns = 5000});
	ck_assert(session_stop(session, NULL));
	session_statistics_read(session, 1, &figures);
	ck_assert_uint_eq(figures.sample, 3);
	ck_assert_uint_eq(figures.throttles, 1);
	ck_assert_uint_eq(figures.throttled_ns, 4000);
	ck_assert_uint_eq(figures.in_hypervisor, 1);
	ck_assert_uint_eq(figures.skiptick, 7);
	ck_assert_uint_eq(figures.throttled, 2);
	ck_assert_uint_eq(figures.expected, 12);
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 1)), NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(misc); i++) {
		ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
		ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
		ck_assert_uint_eq(sample.misc, misc[i]);
		ck_assert_uint_eq(sample.cpu, 1);
		ck_assert_uint_eq(sample.period, 20000000);
	}
	for (int ends = 0; ends < 2; ends++) {
		ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
		ck_assert(record_throttle_decode(record, bytes, &throttle));
		ck_assert_int_eq(throttle.ends, ends);
		ck_assert_uint_eq(throttle.id, session_event_id(0, 1));
	}
	ck_assert_ptr_null(ring_reader_next(reader, &bytes));
	ring_reader_free(reader);
	ck_assert_uint_eq(ring_statistics(session_ring(session, 0)).records, 0);
}
END_TEST

/* Behind PERF_CONTEXT_HV without perf's other marks, up to what is no address of code; the guest's have one frame. */
START_TEST(the_hosts_side_has_its_chain)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, HOST_IP,     HOST_IP + 16, (uint64_t)PERF_CONTEXT_USER, 0x7f0000001000,
		UINT64_C(0x7063000000000000),  HOST_IP + 32};
	static const uint64_t host_want[] = {(uint64_t)PERF_CONTEXT_HV, HOST_IP, HOST_IP + 16, 0x7f0000001000};
	static const uint64_t guest_want[] = {(uint64_t)PERF_CONTEXT_USER, USER_RIP};
	const struct counter_sample outside = {.overflow = {.period = 1},
	                                       .host_ip = HOST_IP,
	                                       .host_chain = chain,
	                                       .n_host_chain = G_N_ELEMENTS(chain)};
	const struct perf_event_header *record;
	struct perf_event_attr attr;
	struct record_sample sample;
	size_t bytes;

	start(&(struct session_config){.host = true});
	ck_assert(in_force.host);
	session_event_attr(session, 0, &attr);
	ck_assert_uint_eq(attr.sample_type, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN);
	ck_assert_uint_eq(attr.exclude_host, 0);
	in_force.take(in_force.data, &outside);
	take(0, USER_RIP, 3, true);
	ck_assert(session_stop(session, NULL));
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);

	ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
	ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
	ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_HYPERVISOR);
	ck_assert_uint_eq(sample.ip, HOST_IP);
	ck_assert_uint_eq(sample.n_chain, G_N_ELEMENTS(host_want));
	ck_assert_mem_eq(sample.chain, host_want, sizeof(host_want));
	ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
	ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
	ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_USER);
	ck_assert_uint_eq(sample.n_chain, G_N_ELEMENTS(guest_want));
	ck_assert_mem_eq(sample.chain, guest_want, sizeof(guest_want));
	ring_reader_free(reader);
}
END_TEST

/* By CR0.PE alone; the fake guest has no memory, which must not be read. */
START_TEST(real_mode_is_a_frame_of_its_own)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, VPROF_REAL_MODE | 0xfffffff0};
	const struct counter_sample reset = {
		.in_guest = true, .regs = {.rip = 0xfff0, .real_mode = true, .cs_base = 0xffff0000, .valid = true}};
	const struct perf_event_header *record;
	struct session_statistics figures;
	struct record_sample sample;
	size_t bytes;

	start(&(struct session_config){.route = "whole", .call_graph = SESSION_CALL_GRAPH_FP});
	in_force.take(in_force.data, &reset);
	ck_assert(session_stop(session, NULL));
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);

	ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
	ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, &sample));
	ck_assert_uint_eq(sample.misc, PERF_RECORD_MISC_KERNEL | VPROF_CHAIN_WHOLE << VPROF_CHAIN_END_SHIFT);
	ck_assert_uint_eq(sample.ip, want[1]);
	ck_assert_uint_eq(sample.n_chain, G_N_ELEMENTS(want));
	ck_assert_mem_eq(sample.chain, want, sizeof(want));
	session_statistics_read(session, 0, &figures);
	ck_assert_uint_eq(figures.chain_end, 1);
	ring_reader_free(reader);
}
END_TEST

/* Those of the kernel's code at its physical address; user space may have the same addresses. */
START_TEST(a_kernel_that_has_not_mapped_itself_has_its_names)
{
	static const struct {
		uint64_t rip;
		uint8_t cpl;
		uint64_t ip;
	} expected[] = {{0x1000000, 0, KERNEL_TEXT},
	                {0x1000fff, 0, KERNEL_TEXT + 0xfff},
	                {0x1001000, 0, 0x1001000},
	                {0xffffff, 0, 0xffffff},
	                {0x1000000, 3, 0x1000000}};
	const struct perf_event_header *record;
	struct record_sample sample;
	size_t bytes;

	guest.start = (struct image_start){0x1000000, KERNEL_TEXT, 0x1000};
	start(&(struct session_config){0});
	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
		take(0, expected[i].rip, expected[i].cpl, true);
	ck_assert(session_stop(session, NULL));
	struct ring_reader *reader = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
		ck_assert_ptr_nonnull(record = ring_reader_next(reader, &bytes));
		ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
		ck_assert_uint_eq(sample.ip, expected[i].ip);
	}
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_suspended_session_goes_on_with_its_rings_and_figures)
{
	const struct counter_statistics statistics = {.overflows = 1, .expected = 4};
	struct session_statistics figures;

	session_suspend(session); /* without a session, nothing */
	ck_assert(session_resume(session, true, NULL));
	start(&(struct session_config){0});
	take(1, KERNEL_RIP, 0, true);
	in_force.statistics(in_force.data, 1, &statistics);
	session_suspend(session);
	ck_assert_ptr_null(in_force.take);
	ck_assert(session_running(session));
	ck_assert(session_resume(session, true, NULL));
	ck_assert_ptr_nonnull(in_force.take);
	take(1, USER_RIP, 3, true);
	in_force.statistics(in_force.data, 1, &statistics);
	session_statistics_read(session, 1, &figures);
	ck_assert_uint_eq(figures.sample, 2);
	ck_assert_uint_eq(figures.expected, 8);
	ck_assert_uint_eq(ring_statistics(session_ring(session, 1)).records, 2);
	session_suspend(session);
	ck_assert(session_stop(session, NULL));
	start(&(struct session_config){0});
	session_statistics_read(session, 1, &figures);
	ck_assert_uint_eq(figures.sample, 0);
}
END_TEST

START_TEST(what_it_cannot_is_refused_by_name)
{
	assert_refused(&(struct session_config){.route = "absent"}, "absent: web01 has no such thing; buy one");
	assert_refused(&(struct session_config){.route = "pigeon"}, "slow: sees little");
	assert_refused(&(struct session_config){.rate.frequency_hz = 101}, "its maximum is 100 Hz");
	assert_refused(&(struct session_config){.route = "slow", .call_graph = SESSION_CALL_GRAPH_AUTO},
	               "sees no registers");
	start(&(struct session_config){0});
}
END_TEST

/* ---- what is wrong with a guest's kernel is a reason, and no end ---- */

#define ORC_TABLES (KERNEL_TEXT + 0x100000)

struct orc_tables {
	int32_t places[4];
	size_t place_bytes;
	uint8_t header[20]; /* only its first bytes count; 0: none */
	const char *why;    /* NULL: nothing is wrong */
};

static bool memory_read(struct guest *of G_GNUC_UNUSED, gpa_t from G_GNUC_UNUSED, void *to G_GNUC_UNUSED,
                        size_t bytes G_GNUC_UNUSED)
{
	return false;
}

static const struct guest_ops memory_ops = {.memory_read = memory_read};

static struct image *image_with(const struct orc_tables *tables)
{
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y) (gcc) #1 SMP\n";
	/* The first entries of functions, which tell the layout where there is no header. */
	static const uint16_t entries[4][3] = {{8, 0, 5}, {8, 0, 5}, {8, 0, 5}, {8, 0, 5}};
	GError *error = NULL;
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, KERNEL_TEXT,
	                                               0x1000000, banner, sizeof(banner), 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind_ip", SHT_PROGBITS, SHF_ALLOC, ORC_TABLES, 0x1100000,
	                                               tables->places, tables->place_bytes, 0});
	elf_builder_section(&elf, (struct elf_section){".orc_unwind", SHT_PROGBITS, SHF_ALLOC, ORC_TABLES + 0x1000,
	                                               0x1101000, entries, sizeof(entries), 0});
	if (tables->header[0] != 0)
		elf_builder_section(&elf,
		                    (struct elf_section){".orc_header", SHT_PROGBITS, SHF_ALLOC, ORC_TABLES + 0x2000,
		                                         0x1102000, tables->header, sizeof(tables->header), 0});
	struct image *image = image_new("vmlinux", g_byte_array_free_to_bytes(elf_builder_finish(&elf)), &error);

	g_assert_no_error(error);
	elf_builder_deinit(&elf);
	return image;
}

static const struct orc_tables whole_tables = {{-0x100000, -0xffff4, -0xfffe8, -0xfffdc}, 16, {0}, NULL};
static const struct orc_tables bad_tables[] = {
	{{-0x100000, -0xffff4, -0xfffe8, -0xfffdc}, 16, {1, 2, 3}, "newer than Linux"},
	{{-0x100000, -0xffff4, -0xfffe8, -0xfffdc}, 12, {0}, "4 and 6 for each entry expected"},
	{{-0x100000, -0x200000, -0xfffe8, -0xfffdc}, 16, {0}, "out of order"},
};

static void assert_sampled_without_orc(const char *why)
{
	struct session_statistics figures;

	ck_assert(session_running(session));
	ck_assert_str_eq(session_unwinder(session), "fp");
	ck_assert_ptr_nonnull(session_unwinder_why(session));
	ck_assert_msg(strstr(session_unwinder_why(session), why), "%s", session_unwinder_why(session));
	take(0, KERNEL_RIP, 0, true);
	session_statistics_read(session, 0, &figures);
	ck_assert_uint_ge(figures.sample, 1);
}

START_TEST(bad_orc_tables_leave_frame_pointers)
{
	const struct session_config open = {.route = "whole", .call_graph = SESSION_CALL_GRAPH_AUTO};

	guest.ops = &memory_ops;
	guest.kernel_image = image_with(&bad_tables[_i]);
	start(&open);
	assert_sampled_without_orc(bad_tables[_i].why);
	ck_assert(session_stop(session, NULL));
	start(&(struct session_config){.route = "whole", .call_graph = SESSION_CALL_GRAPH_FP});
	ck_assert_ptr_null(session_unwinder_why(session)); /* they were not asked for */
	ck_assert(session_stop(session, NULL));
	assert_refused(&(struct session_config){.route = "whole", .call_graph = SESSION_CALL_GRAPH_ORC},
	               bad_tables[_i].why);

	/* A kernel that is booted meanwhile. */
	image_free(guest.kernel_image);
	guest.kernel_image = image_with(&whole_tables);
	start(&open);
	ck_assert_str_eq(session_unwinder(session), "orc");
	ck_assert_ptr_null(session_unwinder_why(session));
	session_suspend(session);
	image_free(guest.kernel_image);
	guest.kernel_image = image_with(&bad_tables[_i]);
	ck_assert(session_resume(session, true, NULL));
	assert_sampled_without_orc(bad_tables[_i].why);
	session_suspend(session);
	image_free(guest.kernel_image);
	guest.kernel_image = image_with(&whole_tables);
	ck_assert(session_resume(session, true, NULL));
	ck_assert_str_eq(session_unwinder(session), "orc");
	ck_assert_ptr_null(session_unwinder_why(session));
	ck_assert(session_stop(session, NULL));
	image_free(guest.kernel_image);
}
END_TEST

START_TEST(an_image_that_cannot_be_read_leaves_samples)
{
	guest.ops = &memory_ops;
	guest.kernel_path = (char *)"/nowhere/vmlinux";
	start(&(struct session_config){.route = "whole", .call_graph = SESSION_CALL_GRAPH_AUTO});
	assert_sampled_without_orc("/nowhere/vmlinux");
	ck_assert_ptr_nonnull(strstr(session_tasks_why(session), "/nowhere/vmlinux"));
	ck_assert(session_stop(session, NULL));
}
END_TEST

START_TEST(tasks_that_cannot_be_read_leave_samples)
{
	struct session_statistics figures;

	guest.ops = &memory_ops;
	guest.kernel_image = image_with(&whole_tables);
	start(&(struct session_config){.route = "whole", .call_graph = SESSION_CALL_GRAPH_AUTO, .wall_hz = 10});
	ck_assert_str_eq(session_unwinder(session), "orc");
	ck_assert_ptr_nonnull(strstr(session_waits_why(session), "cannot look at the tasks that wait"));
	take(0, KERNEL_RIP, 0, true);
	session_statistics_read(session, 0, &figures);
	ck_assert_uint_eq(figures.sample, 1);
	ck_assert(session_stop(session, NULL));
	start(&(struct session_config){.route = "whole"});
	ck_assert_ptr_null(session_waits_why(session));
	ck_assert(session_stop(session, NULL));
	image_free(guest.kernel_image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_route");
	TCase *tc = tcase_create("route");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_first_that_works_is_taken_with_its_defaults);
	tcase_add_test(tc, without_registers_there_are_no_tasks_and_it_says_why);
	tcase_add_test(tc, samples_are_in_the_ring_of_their_vcpu);
	tcase_add_test(tc, the_hosts_side_has_its_chain);
	tcase_add_test(tc, real_mode_is_a_frame_of_its_own);
	tcase_add_test(tc, a_kernel_that_has_not_mapped_itself_has_its_names);
	tcase_add_test(tc, a_suspended_session_goes_on_with_its_rings_and_figures);
	tcase_add_test(tc, what_it_cannot_is_refused_by_name);
	tcase_add_loop_test(tc, bad_orc_tables_leave_frame_pointers, 0, G_N_ELEMENTS(bad_tables));
	tcase_add_test(tc, an_image_that_cannot_be_read_leaves_samples);
	tcase_add_test(tc, tasks_that_cannot_be_read_leave_samples);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
