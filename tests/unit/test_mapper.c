// SPDX-License-Identifier: BSD-2-Clause
/* What is said in a ring about the mappings of a process in memory laid out by hand. */
#include <check.h>
#include <unistd.h>

#include "fake_process.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel.h"
#include "read_ring.h"
#include "run_suite.h"
#include "stream/mapper.h"

#define SECOND UINT64_C(1000000000)
#define RING_BYTES (1u << 19)
#define BYTES_PER_S (RING_BYTES / ANNOUNCE_SHARE)

static struct fake_process process;
static struct announcer announcer;
static struct kernel_layout kernel;
static struct mapper mapper;
static struct task task;
static uint64_t leaf, text_vma;
static struct table_store *tables;

/* /bench at 0x400000, of two mappings. */
static void setup(void)
{
	fake_process_init(&process);
	uint64_t top = fake_dentry(&process, 0, "/"), mount = fake_mount(&process, top, 0, 0);
	uint64_t file = fake_file(&process, mount, fake_dentry(&process, top, "bench"));

	fake_set(&process, file, fake_tree_layout.file_mapping, FAKE_KERNEL);
	task = (struct task){.mm = fake_object(&process, 256), .pid = 7, .tid = 8};
	leaf = fake_node(&process, 1, true);
	text_vma = fake_vma(&process, 0x401000, 0x480000, 1, file, true);
	fake_set(&process, task.mm, fake_tree_layout.mm_tree, leaf);
	fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 127);
	fake_node_slot(&process, leaf, 0, 0x3fffff, 0);
	fake_node_slot(&process, leaf, 1, 0x400fff, fake_vma(&process, 0x400000, 0x401000, 0, file, false));
	fake_node_slot(&process, leaf, 2, 0x47ffff, text_vma);
	fake_node_slot(&process, leaf, 3, UINT64_MAX, 0);
	read_ring_open(RING_BYTES);
	announcer = (struct announcer){.ring = ring};
	tables = table_store_new();
	kernel = (struct kernel_layout){.has_tasks = true, .has_mappings = true, .mappings = fake_tree_layout};
	kernel_layout_settle(&kernel);
	mapper_init(&mapper, &kernel.os, &announcer, tables);
}

static void teardown(void)
{
	table_store_free(tables);
	read_ring_close();
}

static const struct user_code *sample_at(uint64_t time_ns, uint64_t user_ip)
{
	const struct record_id id = {.pid = task.pid, .tid = task.tid, .time_ns = time_ns, .cpu = 1, .id = 9};

	page_walk_init(&process.walk, &process.fake.guest, process.root, false);
	return mapper_task(&mapper, &process.walk, &task, &id, user_ip);
}

static const struct user_code *sample(uint64_t time_ns)
{
	return sample_at(time_ns, 0);
}

static void assert_said(const char *expected)
{
	const struct perf_event_header *record;
	g_autoptr(GString) text = g_string_new(NULL);
	struct record_mmap mmap;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL)
		if (record_mmap_decode(record, bytes, &mmap))
			g_string_append_printf(text, "%u/%u %lx+%lx@%lx %s%s ", mmap.pid, mmap.tid,
			                       (unsigned long)mmap.start, (unsigned long)mmap.bytes,
			                       (unsigned long)mmap.page_offset, mmap.file_name.raw,
			                       mmap.build_id_bytes != 0 && mmap.build_id[19] == 0xab ? "#ab" : "");
	ring_reader_release(reader);
	ck_assert_str_eq(text->str, expected);
}

START_TEST(a_process_is_said_once)
{
	uint8_t build_id[FAKE_BUILD_ID_BYTES];

	memset(build_id, 0xab, sizeof(build_id));
	fake_elf_page(&process, 0x400000, 0xab);
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
	ck_assert_uint_eq(file_places_find(table_store_places(tables), build_id, sizeof(build_id)), FAKE_KERNEL);
	sample(2 * SECOND);
	assert_said("");
	task.pid = 9; /* a fork that runs on the same memory, as vfork's */
	sample(3 * SECOND);
	assert_said("9/8 401000+7f000@1000 /bench#ab ");
}
END_TEST

START_TEST(code_that_can_be_written_to_is_found_by_samples)
{
	fake_elf_page(&process, 0x400000, 0xab);
	sample_at(SECOND, 0x401234);
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
	/* Of compiled code, the kernel counts no page. */
	fake_node_slot(&process, leaf, 3, 0x4fffff, 0);
	fake_node_slot(&process, leaf, 4, 0x500fff, fake_vma(&process, 0x500000, 0x501000, 0, 0, true));
	fake_node_slot(&process, leaf, 5, UINT64_MAX, 0);
	sample_at(2 * SECOND, 0x401234);
	assert_said("");
	sample_at(2 * SECOND, 0x500010);
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 //anon ");
	sample_at(3 * SECOND, 0x500010);
	assert_said("");
	/* What stays unknown is looked for again after longer and longer waits. */
	for (unsigned i = 0; i < 100; i++)
		sample_at(3 * SECOND + i, 0x700000);
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 //anon ");
}
END_TEST

START_TEST(what_is_new_is_said_while_build_ids_are_looked_for)
{
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench ");
	fake_node_slot(&process, leaf, 3, 0x4fffff, 0);
	fake_node_slot(&process, leaf, 4, 0x500fff, fake_vma(&process, 0x500000, 0x501000, 0, 0, true));
	fake_node_slot(&process, leaf, 5, UINT64_MAX, 0);
	sample(2 * SECOND);
	assert_said("7/8 500000+1000@0 //anon ");
	sample(3 * SECOND);
	assert_said("");
}
END_TEST

static void rows_add(uint8_t fill, uint32_t offset, uint32_t n)
{
	const struct {
		char magic[4];
		uint32_t n_rows, n_cells, n_index;
		struct cfi_row rows[2];
	} block = {{'C', 'F', 'I', '1'}, n, 0, 0, {{offset, CFI_UNKNOWN}, {offset + 1, CFI_NONE}}};
	const ssize_t bytes = 16 + (ssize_t)n * 8;
	uint8_t build_id[FAKE_BUILD_ID_BYTES];
	int memory = table_store_prepare(tables, (uint64_t)bytes, NULL);

	ck_assert_int_eq(pwrite(memory, &block, (size_t)bytes, 0), bytes);
	memset(build_id, fill, sizeof(build_id));
	ck_assert(table_store_add(tables, build_id, sizeof(build_id), &(struct python_file){0}, NULL));
}

static void table_add(uint8_t fill, uint32_t offset)
{
	rows_add(fill, offset, 1);
}

START_TEST(tables_come_when_they_are_made)
{
	const struct user_code *code;

	fake_elf_page(&process, 0x400000, 0xab);
	code = sample(SECOND);
	ck_assert_ptr_nonnull(code);
	ck_assert_uint_eq(code->n, 1);
	ck_assert_uint_eq(code->ranges[0].start, 0x401000);
	ck_assert_uint_eq(code->ranges[0].file_offset, 0x1000);
	ck_assert_ptr_null(code->ranges[0].table);
	table_add(0xac, 0);
	ck_assert_ptr_null(sample(2 * SECOND)->ranges[0].table);
	table_add(0xab, 0x1234);
	code = sample(3 * SECOND);
	ck_assert_ptr_nonnull(code->ranges[0].table);
	ck_assert_uint_eq(code->ranges[0].table->rows[0].offset, 0x1234);
	table_add(0xab, 0x5678); /* there already */
	ck_assert_uint_eq(sample(4 * SECOND)->ranges[0].table->rows[0].offset, 0x1234);
	rows_add(0xab, 0x6789, 2); /* more of it */
	ck_assert_uint_eq(sample(4 * SECOND)->ranges[0].table->rows[0].offset, 0x6789);
	task.mm = 0;
	ck_assert_uint_eq(sample(5 * SECOND)->n, 0);
}
END_TEST

/* It is in no file, but has a build-id as files have. */
START_TEST(the_kernels_library_has_a_name)
{
	fake_node_slot(&process, leaf, 3, 0x4fffff, 0);
	fake_node_slot(&process, leaf, 4, 0x500fff, fake_vma(&process, 0x500000, 0x501000, 0, 0, true));
	fake_node_slot(&process, leaf, 5, 0x5fffff, 0);
	fake_node_slot(&process, leaf, 6, 0x600fff, fake_vma(&process, 0x600000, 0x601000, 0, 0, true));
	fake_node_slot(&process, leaf, 7, UINT64_MAX, 0);
	fake_elf_page(&process, 0x400000, 0xab);
	fake_elf_page(&process, 0x500000, 0xab);
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 [vdso]#ab 7/8 600000+1000@0 //anon ");
}
END_TEST

static void map_more_code(void)
{
	fake_node_slot(&process, leaf, 3, 0x4fffff, 0);
	fake_node_slot(&process, leaf, 4, 0x500fff, fake_vma(&process, 0x500000, 0x501000, 0, 0, true));
	fake_node_slot(&process, leaf, 5, UINT64_MAX, 0);
	fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 128);
}

static void unmap_more_code(void)
{
	fake_node_slot(&process, leaf, 3, UINT64_MAX, 0);
	fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 127);
}

START_TEST(new_mappings_are_said_with_the_old_ones)
{
	fake_elf_page(&process, 0x400000, 0xab);
	sample(SECOND);
	map_more_code();
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
	sample(SECOND + 1); /* at once: programs start so */
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 //anon ");
}
END_TEST

START_TEST(mappings_that_never_stay_are_walked_now_and_then)
{
	unsigned walks = 0;

	for (unsigned i = 0; i < 1000; i++) {
		fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 1000 + i);
		process.fake.reads = 0;
		sample(SECOND + i * MAPPER_WAIT_MIN_NS / 100);
		walks += process.fake.reads > 4 + 3; /* more than the state */
	}
	ck_assert_uint_ge(walks, MAPPER_BURST + 1000 / 100 - 1);
	ck_assert_uint_le(walks, MAPPER_BURST + 1000 / 100 + 1);
}
END_TEST

START_TEST(a_program_that_begins_has_no_code_yet)
{
	const struct user_code *code;

	fake_set(&process, task.mm, fake_tree_layout.mm_tree, fake_node(&process, 1, true));
	fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 0);
	code = sample(SECOND);
	ck_assert_ptr_nonnull(code);
	ck_assert_uint_eq(code->n, 0);
}
END_TEST

START_TEST(mappings_that_go_are_said)
{
	fake_elf_page(&process, 0x400000, 0xab);
	map_more_code();
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 //anon ");
	unmap_more_code();
	sample(2 * SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab 7/8 500000+1000@0 [unmapped] ");
	sample(3 * SECOND);
	assert_said("");
}
END_TEST

/* It begins later, and another one is in front of its end. */
START_TEST(parts_of_a_mapping_go)
{
	fake_elf_page(&process, 0x400000, 0xab);
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
	fake_node_slot(&process, leaf, 2, 0x410fff, 0);
	fake_node_slot(&process, leaf, 3, 0x46ffff, fake_vma(&process, 0x411000, 0x470000, 0, 0, true));
	fake_node_slot(&process, leaf, 4, 0x47efff, 0);
	fake_node_slot(&process, leaf, 5, 0x480fff, fake_vma(&process, 0x47f000, 0x481000, 0, 0, true));
	fake_node_slot(&process, leaf, 6, UINT64_MAX, 0);
	fake_set(&process, task.mm, fake_tree_layout.mm_exec_vm, 128);
	sample(2 * SECOND);
	assert_said(
		"7/8 401000+10000@0 [unmapped] 7/8 411000+5f000@0 //anon 7/8 470000+f000@0 [unmapped] 7/8 47f000+2000@0 //anon ");
}
END_TEST

START_TEST(a_build_id_comes_when_its_page_is_there)
{
	sample(SECOND);
	assert_said("7/8 401000+7f000@1000 /bench ");
	sample(SECOND + MAPPER_TRY_NS);
	assert_said("");
	fake_elf_page(&process, 0x400000, 0xab);
	sample(SECOND + 2 * MAPPER_TRY_NS); /* too soon: the wait doubles */
	assert_said("");
	sample(SECOND + 3 * MAPPER_TRY_NS);
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
	sample(10 * SECOND);
	assert_said("");
}
END_TEST

START_TEST(a_build_id_that_never_comes_is_given_up)
{
	for (unsigned i = 1; i <= MAPPER_TRIES; i++)
		sample(i * 10 * SECOND);
	process.fake.reads = 0;
	sample(1000 * SECOND);
	ck_assert_uint_le(process.fake.reads, 4 + 3); /* the state, and no more */
}
END_TEST

START_TEST(a_full_ring_is_tried_again)
{
	const struct record_id id = {.pid = 1};
	const struct record_comm comm = {.comm = {"x"}};
	uint64_t record[8];

	fake_elf_page(&process, 0x400000, 0xab);
	while (ring_write(ring, record, record_comm_encode(&comm, &id, record, sizeof(record)), &id))
		;
	sample(SECOND);
	ck_assert_uint_eq(announcer.later[ANNOUNCE_MAPPINGS], 1);
	ck_assert_uint_eq(announcer.dropped, 0);
	assert_said("");
	sample(2 * SECOND);
	assert_said("7/8 401000+7f000@1000 /bench#ab ");
}
END_TEST

/* Reads what is in the ring: how many mappings, their bytes, and the number of those that begin at `address`. */
static unsigned mappings_read(size_t *read, uint64_t address, unsigned *there)
{
	const struct perf_event_header *record;
	struct record_mmap mmap;
	unsigned n = 0;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL) {
		ck_assert(record_mmap_decode(record, bytes, &mmap));
		*there += mmap.start == address;
		*read += bytes;
		n++;
	}
	ring_reader_release(reader);
	return n;
}

#define MANY 500u
#define MANY_START UINT64_C(0x10000000)
#define MANY_STEP UINT64_C(0x2000)

/* /bench, and then MANY pages of code of a file with a long name, in a list. */
static void map_many(void)
{
	static struct vma_layout list;
	uint64_t top = fake_dentry(&process, 0, "/"), mount = fake_mount(&process, top, 0, 0), file, last = text_vma;
	char name[200];

	list = fake_tree_layout;
	list.has_tree = false;
	list.mm_list = fake_tree_layout.mm_tree;
	list.next = 0x10;
	memset(name, 'f', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	file = fake_file(&process, mount, fake_dentry(&process, top, name));
	fake_set(&process, task.mm, list.mm_list, text_vma);
	for (unsigned i = 0; i < MANY; i++) {
		const uint64_t start = MANY_START + i * MANY_STEP;
		const uint64_t vma = fake_vma(&process, start, start + 0x1000, 0, file, true);

		fake_set(&process, last, list.next, vma);
		last = vma;
	}
	kernel.mappings = list;
	kernel_layout_settle(&kernel);
	mapper_init(&mapper, &kernel.os, &announcer, tables);
}

/* A loop of forks of a process with many mappings, as vprof sees it: a new process with each of many samples. */
START_TEST(many_processes_share_one_budget)
{
	const unsigned samples = 10000;
	const uint64_t step_ns = SECOND / 1000, ip = MANY_START + 400 * MANY_STEP;
	unsigned n = 0, there = 0;
	size_t bytes = 0;

	fake_elf_page(&process, 0x400000, 0xab);
	map_many();
	for (unsigned i = 0; i < samples; i++) {
		task.pid = 100 + i / 20;
		sample_at(SECOND + i * step_ns, ip + 0x10);
		n += mappings_read(&bytes, ip, &there);
	}
	ck_assert_uint_le(bytes, RING_BYTES / 2 + (samples / 1000 + 1) * BYTES_PER_S);
	ck_assert_uint_ge(n, 100);
	/* What the sample needs comes first. */
	ck_assert_uint_ge(there, 50);
	ck_assert_uint_ge(announcer.later[ANNOUNCE_MAPPINGS], 100);
	/* Another process finds its share of the budget. */
	task.pid = 99;
	there = 0;
	for (unsigned i = 0; i < 100; i++)
		sample_at(12 * SECOND + i * 10 * step_ns, 0x401234);
	mappings_read(&bytes, 0x401000, &there);
	ck_assert_uint_eq(there, 1);
}
END_TEST

START_TEST(what_is_over_the_budget_comes_later)
{
	unsigned n = 0, there = 0;
	size_t bytes = 0;
	uint64_t now = SECOND;

	fake_elf_page(&process, 0x400000, 0xab);
	map_many();
	sample(now);
	n = mappings_read(&bytes, 0, &there);
	ck_assert_uint_ge(n, 20);
	ck_assert_uint_lt(n, 1 + MANY);
	while (n < 1 + MANY) {
		now += SECOND;
		ck_assert_uint_lt(now, 100 * SECOND);
		sample(now);
		n += mappings_read(&bytes, 0, &there);
	}
	ck_assert_uint_eq(n, 1 + MANY);
	for (unsigned i = 0; i < 10; i++)
		sample(now + i * SECOND);
	ck_assert_uint_eq(mappings_read(&bytes, 0, &there), 0);
}
END_TEST

START_TEST(time_is_paid_for)
{
	announcer.budget = (struct announce_budget){.since_ns = SECOND, .bytes = 1000, .ns = -10000000};
	sample(SECOND + 100000000);
	assert_said("");
	sample(SECOND + 300000000);
	assert_said("7/8 401000+7f000@1000 /bench ");
	ck_assert_uint_eq(announcer.later[ANNOUNCE_MAPPINGS], 1);
}
END_TEST

START_TEST(kernel_threads_have_none)
{
	task.mm = 0;
	sample(SECOND);
	assert_said("");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mapper");
	TCase *tests = tcase_create("mapper");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_kernels_library_has_a_name);
	tcase_add_test(tests, mappings_that_never_stay_are_walked_now_and_then);
	tcase_add_test(tests, a_program_that_begins_has_no_code_yet);
	tcase_add_test(tests, tables_come_when_they_are_made);
	tcase_add_test(tests, a_process_is_said_once);
	tcase_add_test(tests, what_is_new_is_said_while_build_ids_are_looked_for);
	tcase_add_test(tests, code_that_can_be_written_to_is_found_by_samples);
	tcase_add_test(tests, new_mappings_are_said_with_the_old_ones);
	tcase_add_test(tests, mappings_that_go_are_said);
	tcase_add_test(tests, parts_of_a_mapping_go);
	tcase_add_test(tests, a_build_id_comes_when_its_page_is_there);
	tcase_add_test(tests, a_build_id_that_never_comes_is_given_up);
	tcase_add_test(tests, a_full_ring_is_tried_again);
	tcase_add_test(tests, many_processes_share_one_budget);
	tcase_add_test(tests, what_is_over_the_budget_comes_later);
	tcase_add_test(tests, time_is_paid_for);
	tcase_add_test(tests, kernel_threads_have_none);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
