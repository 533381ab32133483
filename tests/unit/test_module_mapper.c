// SPDX-License-Identifier: BSD-2-Clause
/* What is said in a ring about the kernel's modules in memory laid out by hand. */
#include <check.h>

#include "fake_modules.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel.h"
#include "read_ring.h"
#include "run_suite.h"
#include "stream/module_mapper.h"

#define SECOND UINT64_C(1000000000)

static struct fake_process process;
static struct announcer announcer;
static struct kernel_layout kernel;
static struct module_mapper mapper;

static void setup(void)
{
	fake_modules_init(&process);
	read_ring_open(4096);
	announcer = (struct announcer){.ring = ring};
	kernel = (struct kernel_layout){.has_tasks = true, .has_modules = true, .modules = fake_module_layout};
	kernel_layout_settle(&kernel);
	module_mapper_init(&mapper, &kernel.os, &announcer);
}

static void sample(uint64_t time_ns)
{
	const struct record_id id = {.pid = 7, .tid = 7, .time_ns = time_ns, .cpu = 1, .id = 9};

	page_walk_init(&process.walk, &process.fake.guest, process.root, false);
	module_mapper_sample(&mapper, &process.walk, &id);
}

static void assert_said(const char *expected)
{
	const struct perf_event_header *record;
	g_autoptr(GString) text = g_string_new(NULL);
	struct record_mmap mmap;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL)
		if (record_mmap_decode(record, bytes, &mmap))
			g_string_append_printf(text, "%s%d %lx+%lx@%lx %s#%02x ",
			                       (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL
			                               ? "kernel "
			                               : "",
			                       (int)mmap.pid, (unsigned long)mmap.start, (unsigned long)mmap.bytes,
			                       (unsigned long)mmap.page_offset, mmap.file_name.raw,
			                       mmap.build_id_bytes != 0 ? mmap.build_id[19] : 0);
	ring_reader_release(reader);
	ck_assert_str_eq(text->str, expected);
}

START_TEST(a_module_is_said_once)
{
	fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);
	sample(SECOND);
	assert_said("kernel -1 ffffffffc0000000+8000@0 [ext4]#aa ");
	sample(2 * SECOND);
	fake_module(&process, "loop", FAKE_MODULE_CODE + 0x8000, 0x1000, 0);
	sample(3 * SECOND);
	assert_said("kernel -1 ffffffffc0008000+1000@0 [loop]#00 ");
}
END_TEST

/* In the place of one that was unloaded; and that one again. */
START_TEST(another_module_at_that_address_is_said)
{
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);

	sample(SECOND);
	assert_said("kernel -1 ffffffffc0000000+8000@0 [ext4]#aa ");
	fake_module_part(&process, module, MODULE_TEXT, 0, 0);
	uint64_t other = fake_module(&process, "xfs", FAKE_MODULE_CODE, 0x8000, 0xbb);

	sample(2 * SECOND);
	assert_said("kernel -1 ffffffffc0000000+8000@0 [xfs]#bb ");
	fake_module_part(&process, other, MODULE_TEXT, 0, 0);
	fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);
	sample(3 * SECOND);
	assert_said("kernel -1 ffffffffc0000000+8000@0 [ext4]#aa ");
}
END_TEST

START_TEST(a_full_ring_is_tried_again)
{
	const struct record_id id = {.pid = 1};
	const struct record_comm comm = {.comm = {"x"}};
	uint64_t record[8];

	fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);
	while (ring_write(ring, record, record_comm_encode(&comm, &id, record, sizeof(record)), &id))
		;
	sample(SECOND);
	ck_assert_uint_eq(announcer.later[ANNOUNCE_MAPPINGS], 1);
	assert_said("");
	sample(2 * SECOND);
	assert_said("kernel -1 ffffffffc0000000+8000@0 [ext4]#aa ");
}
END_TEST

START_TEST(a_kernel_without_modules_is_not_read)
{
	module_mapper_init(&mapper, NULL, &announcer);
	process.fake.reads = 0;
	sample(SECOND);
	ck_assert_uint_eq(process.fake.reads, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("module_mapper");
	TCase *tests = tcase_create("module_mapper");

	tcase_add_checked_fixture(tests, setup, read_ring_close);
	tcase_add_test(tests, a_module_is_said_once);
	tcase_add_test(tests, another_module_at_that_address_is_said);
	tcase_add_test(tests, a_full_ring_is_tried_again);
	tcase_add_test(tests, a_kernel_without_modules_is_not_read);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
