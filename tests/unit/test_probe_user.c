// SPDX-License-Identifier: BSD-2-Clause
/* Probes of programs in the processes of a kernel in memory laid out by hand: which breakpoints there are, and when. */
#include <check.h>

#include "fake_page_cache.h"
#include "fake_tasks.h"
#include "linux/file_code.h"
#include "probe/user_priv.h"
#include "run_suite.h"

#define OBJECTS_GPA UINT64_C(0x50000) /* behind the tasks */
#define MM_PGD 0x28u
#define BREAKPOINTS_MAX 4u
#define FUNCTION UINT64_C(0x1230) /* in the file */
#define FIRST UINT64_C(0x400000)
#define SECOND UINT64_C(0x700000)

static struct fake_process process;
static struct kernel_layout kernel;
static struct probe_hub hub;
static struct probe_set set;
static struct probe *probe;
static struct guest_breakpoint *breakpoints[BREAKPOINTS_MAX];
static size_t n_breakpoints;
static enum guest_breakpoint_kind kind;      /* that place() asks for */
static uint64_t mount, top, mm[6], roots[6]; /* of each task */

/* ---- in the place of other files of the room ---- */

const struct os_kernel *session_kernel(struct session *session G_GNUC_UNUSED)
{
	kernel_layout_settle(&kernel);
	return &kernel.os;
}

bool session_kernel_walk(const struct session *session G_GNUC_UNUSED, struct page_walk *out)
{
	page_walk_init(out, &process.fake.guest, process.root, false);
	return true;
}

/* Nothing is hit here. */
bool probe_records(const struct probe *of G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED)
{
	return false;
}

struct firing probe_firing(struct probe *of, unsigned vcpu, const struct guest_regs *regs,
                           const struct guest_gprs *gprs)
{
	return (struct firing){.probe = of, .vcpu = vcpu, .regs = regs, .gprs = gprs};
}

void probe_read_arguments(const struct guest_gprs *gprs G_GNUC_UNUSED, uint64_t *arguments G_GNUC_UNUSED)
{
}

void probe_event_note(const struct firing *firing G_GNUC_UNUSED)
{
}

void probe_event_fire(struct firing *firing G_GNUC_UNUSED)
{
}

const struct probe_source probe_sources[PROBE_KINDS] = {
	[PROBE_PROGRAM] = {.find_places = user_program_of_function},
	[PROBE_PROGRAM_RETURN] = {.find_places = user_program_of_returns},
	[PROBE_NOTE] = {.find_places = user_program_of_notes},
};

const struct placement_ops *probe_placement_ops(const struct probe *of)
{
	return of->options.breakpoint == GUEST_BREAKPOINT_PATCH ? &placement_page : &placement_program;
}

/* ---- the guest ---- */

static bool breakpoint_add(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint, GError **error)
{
	if (n_breakpoints == BREAKPOINTS_MAX) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN, "all taken");
		return false;
	}
	breakpoints[n_breakpoints++] = breakpoint;
	return true;
}

static void breakpoint_remove(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint)
{
	size_t i = 0;

	while (breakpoints[i] != breakpoint)
		i++;
	breakpoints[i] = breakpoints[--n_breakpoints];
}

static size_t breakpoints_free(struct guest *guest G_GNUC_UNUSED)
{
	return BREAKPOINTS_MAX - n_breakpoints;
}

static bool breakpoint_intact(struct guest *guest G_GNUC_UNUSED, const struct guest_breakpoint *breakpoint)
{
	return breakpoint != breakpoints[0];
}

static void unpatch_file(struct guest *guest G_GNUC_UNUSED, uint64_t mapping G_GNUC_UNUSED,
                         uint64_t offset G_GNUC_UNUSED, uint8_t *code G_GNUC_UNUSED, size_t n G_GNUC_UNUSED)
{
}

static const char *why_not;

static const char *why_not_in_files(struct guest *guest G_GNUC_UNUSED)
{
	return why_not;
}

static const struct guest_debug_ops debug = {.breakpoint_add = breakpoint_add,
                                             .breakpoint_remove = breakpoint_remove,
                                             .breakpoint_intact = breakpoint_intact,
                                             .breakpoints_free = breakpoints_free,
                                             .unpatch_file = unpatch_file,
                                             .why_not_in_files = why_not_in_files};

/* Which processes there are, of 1, 4 and 5. */
static void run(bool fourth, bool fifth)
{
	const uint64_t tasks = fake_list_layout.tasks;
	uint64_t heads[4] = {FAKE_INIT_TASK + tasks, FAKE_TASK(1) + tasks};
	size_t n = 2;

	if (fourth)
		heads[n++] = FAKE_TASK(4) + tasks;
	if (fifth)
		heads[n++] = FAKE_TASK(5) + tasks;
	fake_ring(&process.fake, heads, n);
}

/* The task has a file of that name, with code from `start` on, in a new address space or in its own. */
static void execute(unsigned task, const char *name, uint64_t start)
{
	const struct vma_layout *layout = &fake_tree_layout;
	const uint64_t leaf = fake_node(&process, 1, true);
	const uint64_t file = fake_file(&process, mount, fake_dentry(&process, top, name));

	if (mm[task] == 0) {
		const uint64_t root = fake_table_new(&process.fake);

		roots[task] = root;
		fake_map(&process.fake, root, 4, FAKE_MEMORY, 0, 2);
		mm[task] = fake_object(&process, 256);
		fake_set(&process, mm[task], MM_PGD, FAKE_KERNEL + root);
		fake_write(&process.fake, FAKE_TASK(task) + fake_task_layout.mm, mm[task]);
	}
	fake_set(&process, file, layout->file_mapping, FAKE_MAPPING);
	fake_set(&process, mm[task], layout->mm_tree, leaf);
	fake_set(&process, mm[task], layout->mm_start_code, leaf);
	fake_node_slot(&process, leaf, 0, start - 1, 0);
	fake_node_slot(&process, leaf, 1, start + 0x1fff, fake_vma(&process, start, start + 0x2000, 1, file, true));
	fake_node_slot(&process, leaf, 2, UINT64_MAX, 0);
}

static void setup(void)
{
	fake_tasks_init(&process.fake, &process.walk);
	process.root = process.walk.tables.cr3;
	process.next_object = OBJECTS_GPA;
	process.fake.guest.debug = &debug;
	process.fake.guest.vcpus = 1;
	fake_processors_init(&process.fake, &kernel);
	kernel.tasks.mm_pgd = MM_PGD;
	kernel.mappings = fake_tree_layout;
	kernel.has_mappings = true;
	top = fake_dentry(&process, 0, "/");
	mount = fake_mount(&process, top, 0, 0);
	memset(mm, 0, sizeof(mm));
	n_breakpoints = 0;
	kind = GUEST_BREAKPOINT_ANY;
	hub = (struct probe_hub){.guest = &process.fake.guest, .sets = g_ptr_array_new()};
	set = (struct probe_set){.hub = &hub, .probes = g_ptr_array_new()};
	g_ptr_array_add(hub.sets, &set);
	run(true, false);
}

static void teardown(void)
{
	g_ptr_array_unref(set.probes);
	g_ptr_array_unref(hub.sets);
}

static void drop(void)
{
	probe->placement->ops->remove(probe->placement);
	ck_assert_uint_eq(n_breakpoints, 0);
	ck_assert_ptr_null(probe->placement);
	g_ptr_array_remove(set.probes, probe);
	g_clear_pointer(&probe, g_free);
}

static struct probe_info info(void)
{
	struct probe_info out = {.intact = true};

	probe->placement->ops->describe(probe->placement, &out);
	return out;
}

static uint64_t unplaced(void)
{
	struct probe_statistics out = {.event = 0};

	probe->placement->ops->count(probe->placement, &out);
	return out.unplaced;
}

/* With so many returns. */
static bool place(const char *text, size_t n_returns, GError **error)
{
	static const uint64_t returns[] = {FUNCTION + 8, FUNCTION + 16, FUNCTION + 24, FUNCTION + 32};
	const struct probe_binary binary = {
		.file_offset = FUNCTION, .returns = returns, .n_returns = n_returns, .build_id = (const uint8_t *)""};

	probe = g_new0(struct probe, 1);
	probe->set = &set;
	probe->options.binary = &binary;
	probe->options.breakpoint = kind;
	ck_assert(probe_spec_parse(text, &probe->spec, NULL));
	g_ptr_array_add(set.probes, probe);
	const bool done = probe_placement_ops(probe)->place(probe, error);
	probe->options.binary = NULL;
	return done;
}

static void add(const char *text, size_t n_returns)
{
	GError *error = NULL;

	place(text, n_returns, &error);
	g_assert_no_error(error);
}

static void look(void)
{
	GSource *watch = probe_user_watch(&set);

	ck_assert_ptr_nonnull(watch);
	g_source_destroy(watch);
	g_source_unref(watch);
}

static void assert_at(size_t n, const uint64_t *addresses)
{
	ck_assert_uint_eq(n_breakpoints, n);
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < n; j++)
			found |= breakpoints[j]->at.value == addresses[i];
		ck_assert_msg(found, "none at 0x%" G_GINT64_MODIFIER "x", addresses[i]);
	}
}
#define ASSERT_AT(...)                                                       \
	do {                                                                 \
		const uint64_t expected[] = {__VA_ARGS__};                   \
		assert_at(sizeof(expected) / sizeof(expected[0]), expected); \
	} while (0)

#define AT(start) ((start)-0x1000 + FUNCTION)

START_TEST(processes_begin_and_end)
{
	add("user:/bench:main", 0);
	assert_at(0, NULL);
	ck_assert_uint_eq(info().processes, 0);
	execute(4, "bench", FIRST);
	look();
	ASSERT_AT(AT(FIRST));
	execute(5, "bench", SECOND);
	run(true, true);
	look();
	look();
	ASSERT_AT(AT(FIRST), AT(SECOND));
	ck_assert_uint_eq(info().processes, 2);
	run(false, true);
	look();
	ASSERT_AT(AT(SECOND));
	execute(5, "other", SECOND); /* in the same mm_struct */
	look();
	assert_at(0, NULL);
	execute(5, "bench", FIRST);
	look();
	ASSERT_AT(AT(FIRST));
	ck_assert_uint_eq(unplaced(), 0);
	drop();
}
END_TEST

/* Those at one address share its breakpoint, which stays for the last of them. */
START_TEST(processes_share_an_address)
{
	execute(4, "bench", FIRST);
	execute(5, "bench", FIRST);
	run(true, true);
	add("user:/bench:main", 0);
	ASSERT_AT(AT(FIRST));
	ck_assert_uint_eq(info().processes, 2);
	run(false, true);
	look();
	ASSERT_AT(AT(FIRST));
	drop();
}
END_TEST

START_TEST(a_process_is_probed_as_a_whole)
{
	execute(4, "bench", FIRST);
	add("user:/bench:main:return", 2);
	ck_assert_ptr_nonnull(((const struct user *)probe->placement)->program.calls);
	ASSERT_AT(AT(FIRST), AT(FIRST) + 8, AT(FIRST) + 16);
	execute(5, "bench", SECOND);
	run(true, true);
	look();
	look();
	ASSERT_AT(AT(FIRST), AT(FIRST) + 8, AT(FIRST) + 16);
	ck_assert_uint_eq(unplaced(), 1);
	run(false, true);
	look(); /* frees them */
	look();
	ASSERT_AT(AT(SECOND), AT(SECOND) + 8, AT(SECOND) + 16);
	drop();
	/* When it is added, all are probed or none. */
	run(true, true);
	GError *error = NULL;
	ck_assert(!place("user:/bench:main:return", 2, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_TAKEN));
	ck_assert_uint_eq(n_breakpoints, 0);
	g_error_free(error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
}
END_TEST

START_TEST(what_waits_has_room)
{
	GError *error = NULL;

	add("user:/bench:main", 0);
	struct probe *first = probe;
	ck_assert(!place("user:/bench:main:return", 3, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_TAKEN));
	ck_assert_ptr_nonnull(strstr(
		error->message, "takes 4 breakpoints of the processor: 4 are free, and other probes that wait take 1"));
	g_error_free(error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
	probe = first;
	drop();
}
END_TEST

START_TEST(places_that_are_none)
{
	static const struct {
		const char *name, *probe, *message;
		size_t n_returns;
	} cases[] = {
		{"bench", "user:/bench:main+65535", "not all in one mapping", 0},
		{"bench", "user:/bench:main:return", "give \"returns\"", 0},
		{"bench", "usdt:/bench:a:b", "give \"notes\"", 0},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		GError *error = NULL;

		execute(4, cases[i].name, FIRST);
		ck_assert(!place(cases[i].probe, cases[i].n_returns, &error));
		ck_assert_msg(strstr(error->message, cases[i].message) != NULL, "%s", error->message);
		ck_assert_uint_eq(n_breakpoints, 0);
		g_error_free(error);
		g_ptr_array_remove(set.probes, probe);
		g_clear_pointer(&probe, g_free);
	}
}
END_TEST

/* Where instructions begin is known once the code is in memory; the page has instructions of two bytes. */
START_TEST(an_offset_is_checked_when_it_can_be)
{
	GError *error = NULL;

	execute(4, "bench", FIRST);
	add("user:/bench:main+4", 0);
	look();
	assert_at(0, NULL);
	fake_map(&process.fake, roots[4], 4, FIRST, OBJECTS_GPA + 0x20000, 1);
	look();
	ASSERT_AT(AT(FIRST) + 4);
	drop();
	ck_assert(!place("user:/bench:main+5", 0, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "in the middle of an instruction"));
	g_error_free(error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
}
END_TEST

START_TEST(a_file_with_a_longer_name)
{
	execute(4, "libz.so.1.2", FIRST);
	add("user:/lib/libz.so.1:inflate", 0);
	ck_assert_uint_eq(info().processes, 0);
	ck_assert_str_eq(info().similar, "/libz.so.1.2");
	drop();
}
END_TEST

/* The second page of the file, which has the function. */
static void set_page(uint64_t entry)
{
	fake_cache_init(&process, 0x3000);
	kernel.page_cache = fake_cache_layout;
	kernel.has_page_cache = true;
	const uint64_t node = fake_cache_node(&process, 0);
	fake_cache_slot(&process, node, 1, entry);
	fake_set(&process, FAKE_MAPPING, fake_cache_layout.mapping_root, node);
}

static void assert_in_file(size_t n, const uint64_t *offsets)
{
	ck_assert_uint_eq(n_breakpoints, n);
	for (size_t i = 0; i < n; i++) {
		const struct guest_breakpoint *breakpoint = breakpoints[i];

		ck_assert_int_eq(breakpoint->kind, GUEST_BREAKPOINT_PATCH);
		ck_assert_ptr_nonnull(breakpoint->in_file);
		ck_assert_uint_eq(breakpoint->in_file->mapping, FAKE_MAPPING);
		ck_assert_uint_eq(breakpoint->in_file->offset, offsets[i]);
		ck_assert_uint_eq(breakpoint->in_file->n, 1);
	}
}

#define PAGE UINT64_C(0x70000)

/* Once for all processes, and for those that come later. */
START_TEST(patches_are_in_the_file)
{
	static const uint64_t places[] = {FUNCTION, FUNCTION + 8, FUNCTION + 16};

	memset(process.fake.ram + PAGE, 0x90, 4096);
	kind = GUEST_BREAKPOINT_PATCH;
	set_page(0);
	execute(4, "bench", FIRST);
	add("user:/bench:main:return", 2);
	assert_in_file(0, NULL); /* the page is not there */
	ck_assert_uint_eq(info().processes, 0);
	set_page(fake_folio(&process, PAGE, 1));
	look();
	assert_in_file(3, places);
	ck_assert_uint_eq(info().processes, 1);
	execute(5, "bench", SECOND);
	run(true, true);
	look();
	assert_in_file(3, places);
	ck_assert_uint_eq(info().processes, 2);
	run(false, false);
	look();
	assert_in_file(3, places);
	ck_assert_uint_eq(info().processes, 0);
	ck_assert_int_eq(info().breakpoint, GUEST_BREAKPOINT_PATCH);
	ck_assert(!info().intact);
	drop();
}
END_TEST

/* All of them, or none. */
START_TEST(patches_that_are_refused)
{
	GError *error = NULL;

	memset(process.fake.ram + PAGE, 0x90, 4096);
	kind = GUEST_BREAKPOINT_PATCH;
	set_page(fake_folio(&process, PAGE, 1));
	execute(4, "bench", FIRST);
	ck_assert(!place("user:/bench:main:return", BREAKPOINTS_MAX, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_TAKEN));
	ck_assert_uint_eq(n_breakpoints, 0);
	g_clear_error(&error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
	process.fake.ram[PAGE + FUNCTION % 4096] = 0x06; /* PUSH ES, which 64-bit code does not have */
	ck_assert(!place("user:/bench:main", 0, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "there is no instruction"));
	g_clear_error(&error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
	why_not = "the host is another";
	ck_assert(!place("user:/bench:main", 0, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "patching: the host is another; use"));
	g_clear_error(&error);
	g_ptr_array_remove(set.probes, probe);
	g_free(probe);
	why_not = NULL;
	kernel.page_cache.has_states = false;
	ck_assert(!place("user:/bench:main", 0, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "CONFIG_DEBUG_INFO_BTF"));
	g_clear_error(&error);
	g_ptr_array_remove(set.probes, probe);
	g_clear_pointer(&probe, g_free);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe_user");
	TCase *tc = tcase_create("processes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, processes_begin_and_end);
	tcase_add_test(tc, processes_share_an_address);
	tcase_add_test(tc, a_process_is_probed_as_a_whole);
	tcase_add_test(tc, what_waits_has_room);
	tcase_add_test(tc, places_that_are_none);
	tcase_add_test(tc, an_offset_is_checked_when_it_can_be);
	tcase_add_test(tc, a_file_with_a_longer_name);
	tcase_add_test(tc, patches_are_in_the_file);
	tcase_add_test(tc, patches_that_are_refused);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
