// SPDX-License-Identifier: BSD-2-Clause
/* The cgroup of a task in memory laid out by hand: where a layout comes from, what a ring and a session say of it. */
#include <check.h>

#include "counter/route.h"
#include "fake_process.h"
#include "fake_systems.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel.h"
#include "linux_image.h"
#include "read_ring.h"
#include "run_suite.h"
#include "sample/session.h"
#include "stream/cgroup_namer.h"

#define RING_BYTES (1u << 18)
#define OBJECT_BYTES 512u

/* As tests/support/linux_image.h has them. */
static const struct cgroup_layout layout = {
	.task_cgroups = 328,
	.set_default = 16,
	.node = 24,
	.node_parent = 8,
	.node_name = 16,
	.node_id = 96,
};

static struct fake_process kernel;
static struct announcer announcer;
static struct cgroup_namer namer;
static struct task task;
static uint64_t root, now;

/* A directory of the cgroup file system; parent 0: its root. */
static uint64_t node_make(uint64_t parent, uint64_t id, const char *name)
{
	uint64_t node = fake_object(&kernel, OBJECT_BYTES), text = fake_object(&kernel, strlen(name) + 1);

	memcpy(kernel.fake.ram + (text - FAKE_KERNEL), name, strlen(name) + 1);
	fake_set(&kernel, node, layout.node_parent, parent);
	fake_set(&kernel, node, layout.node_name, text);
	fake_set(&kernel, node, layout.node_id, id);
	return node;
}

/* A css_set of a cgroup with that directory. */
static uint64_t set_make(uint64_t node)
{
	uint64_t set = fake_object(&kernel, OBJECT_BYTES), group = fake_object(&kernel, OBJECT_BYTES);

	fake_set(&kernel, set, layout.set_default, group);
	fake_set(&kernel, group, layout.node, node);
	return set;
}

/* A kernel that has these cgroups. */
static struct kernel_layout of_layout;

static void move_to(uint64_t node)
{
	fake_set(&kernel, task.address, layout.task_cgroups, set_make(node));
}

static void setup(void)
{
	fake_process_init(&kernel);
	root = node_make(0, 1, "");
	task = (struct task){.address = fake_object(&kernel, OBJECT_BYTES), .pid = 7, .tid = 8};
	move_to(root);
	read_ring_open(RING_BYTES);
	announcer = (struct announcer){.ring = ring};
	of_layout = (struct kernel_layout){.has_tasks = true, .has_cgroups = true, .cgroups = layout};
	kernel_layout_settle(&of_layout);
	cgroup_namer_init(&namer, &of_layout.os, &announcer);
	now = 100;
}

static uint64_t sample(void)
{
	const struct record_id id = {.pid = task.pid, .tid = task.tid, .time_ns = now++, .cpu = 1, .id = 9};

	page_walk_init(&kernel.walk, &kernel.fake.guest, kernel.root, false);
	return cgroup_namer_task(&namer, &kernel.walk, &task, &id);
}

/* "7=/a 8=/a/b ", as the ring has it. */
static void assert_said(const char *expected)
{
	const struct perf_event_header *record;
	g_autoptr(GString) text = g_string_new(NULL);
	struct record_cgroup cgroup;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL) {
		struct record_id record_id;

		ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &record_id));
		ck_assert_uint_eq(record_id.tid, 8);
		if (record_cgroup_decode(record, bytes, &cgroup))
			g_string_append_printf(text, "%lu=%s ", (unsigned long)cgroup.cgroup, cgroup.path.raw);
	}
	ring_reader_release(reader);
	ck_assert_str_eq(text->str, expected);
}

START_TEST(the_root_and_nested_ones_are_said_once)
{
	uint64_t a = node_make(root, 20, "a"), b = node_make(a, 30, "b.service");

	ck_assert_uint_eq(sample(), 1);
	assert_said("1=/ ");
	move_to(b);
	ck_assert_uint_eq(sample(), 30);
	ck_assert_uint_eq(sample(), 30);
	assert_said("30=/a/b.service ");
	move_to(a);
	ck_assert_uint_eq(sample(), 20);
	move_to(b);
	ck_assert_uint_eq(sample(), 30);
	assert_said("20=/a ");
}
END_TEST

/* One that was removed, and another that is made with its id, elsewhere. */
START_TEST(a_later_path_of_an_id_is_said)
{
	move_to(node_make(root, 20, "first"));
	ck_assert_uint_eq(sample(), 20);
	move_to(node_make(node_make(root, 21, "x"), 20, "second"));
	ck_assert_uint_eq(sample(), 20);
	assert_said("20=/first 20=/x/second ");
}
END_TEST

static char *name_of(size_t n)
{
	return g_strnfill(n, 'n');
}

START_TEST(names_of_any_bytes_are_clean)
{
	g_autofree char *longest = name_of(CGROUP_NAME_BYTES - 1);
	g_autofree char *expected = g_strdup_printf("20=/a?[31m?\xff 21=/%s ", longest);

	move_to(node_make(root, 20, "a\033[31m\177\xff"));
	ck_assert_uint_eq(sample(), 20);
	move_to(node_make(root, 21, longest));
	ck_assert_uint_eq(sample(), 21);
	assert_said(expected);
}
END_TEST

/* Its samples have its id all the same, and it is not read for ever. */
static void assert_unnamed(uint64_t node, uint64_t id)
{
	move_to(node);
	for (unsigned i = 0; i < CGROUP_NAMER_TRIES; i++)
		ck_assert_uint_eq(sample(), id);
	kernel.fake.reads = 0;
	ck_assert_uint_eq(sample(), id);
	ck_assert_uint_le(kernel.fake.reads, 4 * 5); /* four words, each with a page walk */
	assert_said("");
}

START_TEST(a_cycle_of_parents_has_no_path)
{
	uint64_t a = node_make(root, 20, "a"), b = node_make(a, 21, "b");

	fake_set(&kernel, a, layout.node_parent, b);
	assert_unnamed(b, 21);
	fake_set(&kernel, a, layout.node_parent, a);
	assert_unnamed(a, 20);
}
END_TEST

START_TEST(paths_that_cannot_be_have_no_name)
{
	g_autofree char *too_long = name_of(CGROUP_NAME_BYTES), *longest = name_of(CGROUP_NAME_BYTES - 1);
	uint64_t deep = root, wide = root, lost = node_make(root, 40, "x"), last = node_make(root, 41, "x");

	for (unsigned i = 0; i < CGROUP_DEPTH_MAX; i++)
		deep = node_make(deep, 100 + i, "d");
	assert_unnamed(deep, 100 + CGROUP_DEPTH_MAX - 1);
	for (unsigned i = 0; i < OS_GROUP_PATH_BYTES / CGROUP_NAME_BYTES; i++)
		wide = node_make(wide, 200 + i, longest);
	assert_unnamed(node_make(wide, 300, "x"), 300);
	assert_unnamed(node_make(root, 301, too_long), 301);
	assert_unnamed(node_make(root, 302, ""), 302);
	fake_set(&kernel, lost, layout.node_name, UINT64_C(0x401000)); /* user space's */
	assert_unnamed(lost, 40);
	fake_set(&kernel, last, layout.node_name, UINT64_MAX - 3); /* up to the end of all addresses */
	assert_unnamed(last, 41);
	fake_set(&kernel, last, layout.node_parent, UINT64_C(0x401000));
	assert_unnamed(last, 41);
}
END_TEST

START_TEST(what_cannot_be_read_is_no_cgroup)
{
	move_to(node_make(root, 0, "x")); /* no id has been given to it yet */
	ck_assert_uint_eq(sample(), 0);
	move_to(UINT64_C(0x401000));
	ck_assert_uint_eq(sample(), 0);
	fake_set(&kernel, task.address, layout.task_cgroups, 0);
	ck_assert_uint_eq(sample(), 0);
	fake_set(&kernel, task.address, layout.task_cgroups, FAKE_KERNEL + FAKE_RAM_BYTES);
	ck_assert_uint_eq(sample(), 0);
	assert_said("");
}
END_TEST

START_TEST(a_full_ring_is_tried_again)
{
	const struct record_id id = {.pid = 7, .tid = 8};
	const struct record_comm comm = {.comm = {"x"}};
	uint64_t record[8];

	while (ring_write(ring, record, record_comm_encode(&comm, &id, record, sizeof(record)), &id))
		;
	ck_assert_uint_eq(sample(), 1);
	ck_assert_uint_eq(announcer.later[ANNOUNCE_CGROUPS], 1);
	assert_said("");
	ck_assert_uint_eq(sample(), 1);
	assert_said("1=/ ");
}
END_TEST

/* Of a bucket's cgroups, as many as it has places are remembered. */
START_TEST(many_cgroups_take_turns)
{
	uint64_t nodes[CGROUP_NAMER_BUCKETS * CGROUP_NAMER_WAYS * 2], set = set_make(root), group = set + OBJECT_BYTES;
	unsigned said = 0;

	fake_set(&kernel, task.address, layout.task_cgroups, set);
	for (unsigned i = 0; i < G_N_ELEMENTS(nodes); i++)
		nodes[i] = fake_object(&kernel, 128);
	for (unsigned i = 0; i < G_N_ELEMENTS(nodes); i++) {
		fake_set(&kernel, nodes[i], layout.node_parent, 0);
		fake_set(&kernel, nodes[i], layout.node_id, 1000 + i);
	}
	for (unsigned turn = 0; turn < 3; turn++)
		for (unsigned i = 0; i < G_N_ELEMENTS(nodes); i++) {
			fake_set(&kernel, group, layout.node, nodes[i]);
			ck_assert_uint_eq(sample(), 1000 + i);
			ck_assert_uint_eq(sample(), 1000 + i);
			for (size_t bytes; ring_reader_next(reader, &bytes);)
				said++;
			ring_reader_release(reader);
		}
	/* Not at every sample, though every cgroup at least once. */
	ck_assert_uint_ge(said, G_N_ELEMENTS(nodes));
	ck_assert_uint_le(said, 3 * G_N_ELEMENTS(nodes));
}
END_TEST

/* Layouts. */

static struct kernel_layout *layout_load(const char *node_parent)
{
	struct image *image =
		linux_image_make(&(struct linux_image){.per_cpu = "current_task", .node_parent = node_parent});
	struct kernel_layout *loaded = kernel_layout_load(image);

	image_free(image);
	ck_assert_msg(loaded->has_tasks, "%s", loaded->os.why[OS_TASKS]);
	return loaded;
}

START_TEST(a_layout_comes_from_types)
{
	static const char *const parents[] = {"parent", "__parent"};
	struct kernel_layout *loaded = layout_load(parents[_i]);

	ck_assert_msg(loaded->has_cgroups, "%s", loaded->os.why[OS_GROUPS]);
	ck_assert_ptr_null(loaded->os.why[OS_GROUPS]);
	ck_assert_mem_eq(&loaded->cgroups, &layout, sizeof(layout));
	kernel_layout_free(loaded);
}
END_TEST

START_TEST(a_kernel_without_has_no_layout)
{
	struct kernel_layout *loaded = layout_load(NULL);

	ck_assert(!loaded->has_cgroups);
	ck_assert_msg(strstr(loaded->os.why[OS_GROUPS], "CONFIG_CGROUPS"), "%s", loaded->os.why[OS_GROUPS]);
	kernel_layout_free(loaded);
	loaded = layout_load("mother");
	ck_assert(!loaded->has_cgroups);
	ck_assert_msg(strstr(loaded->os.why[OS_GROUPS], "no struct kernfs_node with a member parent"), "%s",
	              loaded->os.why[OS_GROUPS]);
	kernel_layout_free(loaded);
}
END_TEST

/* Sessions, of a guest that a route samples. */

static struct counter_route_config in_force;

static char *always(struct guest *guest G_GNUC_UNUSED)
{
	return NULL;
}

static bool fake_start(struct guest *guest G_GNUC_UNUSED, const struct counter_route_config *config,
                       GError **error G_GNUC_UNUSED)
{
	in_force = *config;
	return true;
}

static void fake_stop(struct guest *guest G_GNUC_UNUSED)
{
}

static const struct counter_route fake_route = {
	.name = "fake",
	.summary = "hands over what it is told",
	.event_default = "timer",
	.frequency_hz_default = 50,
	.registers = true,
	.unavailable = always,
	.start = fake_start,
	.stop = fake_stop,
};
static const struct counter_route *const routes[] = {&fake_route, NULL};

/* A per-CPU area with the task, where the image says. */
static uint64_t area_make(void)
{
	uint64_t area = fake_object(&kernel, OBJECT_BYTES);

	fake_set(&kernel, area, 0x18, area);
	fake_set(&kernel, area, 0x20, task.address);
	fake_set(&kernel, task.address, 100, UINT64_C(0x700000008)); /* pid and tgid */
	return area;
}

static struct session *session_make(const char *node_parent)
{
	struct guest *guest = &kernel.fake.guest;

	guest->kind = "fake";
	guest->name = (char *)"web01";
	guest->vcpus = 1;
	guest->routes = routes;
	guest->systems = fake_systems;
	guest->kernel_image =
		linux_image_make(&(struct linux_image){.per_cpu = "current_task", .node_parent = node_parent});
	return session_new(guest, NULL);
}

static void session_sample(uint64_t area)
{
	const struct counter_sample taken = {
		.overflow = {.period = 1},
		.time_ns = now++,
		.in_guest = true,
		.regs = {.rip = UINT64_C(0xffffffff81000010), .cr3 = kernel.root, .gs_base = area, .valid = true}};

	in_force.take(in_force.data, &taken);
}

/* "cgroup 1=/ sample 1 ", ...: what a session's ring has of cgroups and samples. */
static void assert_session_said(struct session *session, const char *expected)
{
	struct ring_reader *from = ring_reader_open(ring_memfd(session_ring(session, 0)), NULL);
	g_autoptr(GString) text = g_string_new(NULL);
	const struct perf_event_header *record;
	struct record_sample out;
	struct perf_event_attr attr;
	struct record_cgroup cgroup;
	size_t bytes;

	session_event_attr(session, 0, &attr);
	while ((record = ring_reader_next(from, &bytes)) != NULL) {
		if (record_cgroup_decode(record, bytes, &cgroup))
			g_string_append_printf(text, "cgroup %lu=%s ", (unsigned long)cgroup.cgroup, cgroup.path.raw);
		else if (record_sample_decode(record, bytes, attr.sample_type, &out))
			g_string_append_printf(text, out.has_cgroup ? "sample %lu " : "sample ",
			                       (unsigned long)out.cgroup);
	}
	ring_reader_free(from);
	ck_assert_str_eq(text->str, expected);
}

START_TEST(samples_of_a_session_have_the_cgroup_of_their_moment)
{
	struct session *session = session_make("parent");
	uint64_t area = area_make(), a = node_make(root, 20, "a");
	struct perf_event_attr attr;
	GError *error = NULL;

	ck_assert_msg(session_start(session, &(struct session_config){0}, &error), "%s", error ? error->message : "");
	session_event_attr(session, 0, &attr);
	ck_assert_uint_eq(attr.sample_type, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CGROUP);
	ck_assert_uint_eq(attr.cgroup, 1);
	ck_assert_ptr_null(session_cgroups_why(session));
	session_sample(area);
	move_to(a);
	session_sample(area);
	session_sample(area);
	fake_set(&kernel, task.address, layout.task_cgroups, 0);
	session_sample(area);
	ck_assert(session_stop(session, NULL));
	assert_session_said(session, "cgroup 1=/ sample 1 cgroup 20=/a sample 20 sample 20 sample 0 ");

	/* Without tasks, no cgroups either. */
	ck_assert(session_start(session, &(struct session_config){.no_tasks = true}, NULL));
	session_event_attr(session, 0, &attr);
	ck_assert_uint_eq(attr.sample_type, VPROF_SAMPLE_TYPE);
	session_sample(area);
	ck_assert(session_stop(session, NULL));
	assert_session_said(session, "sample ");
	image_free(kernel.fake.guest.kernel_image);
	session_free(session);
}
END_TEST

START_TEST(a_session_keeps_its_samples_layout_when_the_kernel_changes)
{
	struct session *session = session_make("parent");
	uint64_t area = area_make();

	ck_assert(session_start(session, &(struct session_config){0}, NULL));
	session_sample(area);
	session_suspend(session);
	image_free(kernel.fake.guest.kernel_image);
	kernel.fake.guest.kernel_image = linux_image_make(&(struct linux_image){.per_cpu = "current_task"});
	ck_assert(session_resume(session, true, NULL));
	session_sample(area);
	ck_assert_ptr_nonnull(session_cgroups_why(session));
	ck_assert(session_stop(session, NULL));
	assert_session_said(session, "cgroup 1=/ sample 1 sample 0 ");

	ck_assert(session_start(session, &(struct session_config){0}, NULL));
	session_sample(area);
	ck_assert(session_stop(session, NULL));
	assert_session_said(session, "sample ");
	image_free(kernel.fake.guest.kernel_image);
	session_free(session);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cgroup");
	TCase *tests = tcase_create("cgroup");

	tcase_add_checked_fixture(tests, setup, read_ring_close);
	tcase_add_test(tests, the_root_and_nested_ones_are_said_once);
	tcase_add_test(tests, a_later_path_of_an_id_is_said);
	tcase_add_test(tests, names_of_any_bytes_are_clean);
	tcase_add_test(tests, a_cycle_of_parents_has_no_path);
	tcase_add_test(tests, paths_that_cannot_be_have_no_name);
	tcase_add_test(tests, what_cannot_be_read_is_no_cgroup);
	tcase_add_test(tests, a_full_ring_is_tried_again);
	tcase_add_test(tests, many_cgroups_take_turns);
	tcase_add_loop_test(tests, a_layout_comes_from_types, 0, 2);
	tcase_add_test(tests, a_kernel_without_has_no_layout);
	tcase_add_test(tests, samples_of_a_session_have_the_cgroup_of_their_moment);
	tcase_add_test(tests, a_session_keeps_its_samples_layout_when_the_kernel_changes);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
