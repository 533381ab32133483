// SPDX-License-Identifier: BSD-2-Clause
/* Frames of CPython between native ones, in a process made by hand (fake_python.h). */
#include <check.h>

#include "fake_python.h"
#include "run_suite.h"

static struct fake_python python;
static struct python_walk walk;
static struct python_frame frame;

/* "NAME NAME ...", innermost first: what the native frame from `from` to `to` executes. */
static void expect(uint64_t from, uint64_t to, const char *names)
{
	g_autoptr(GString) text = g_string_new(NULL);
	char name[PYTHON_NAME_BYTES];

	while (python_walk_next(&walk, &python.memory, from, to, &frame)) {
		python_frame_name(&frame, &python.process, &python.memory, name);
		g_string_append_printf(text, "%s%s", text->len ? " " : "", name);
	}
	ck_assert_str_eq(text->str, names);
}

static void setup_of(uint32_t version)
{
	fake_python_init(&python, version);
	ck_assert_ptr_nonnull(python.process.layout);
	python_walk_init(&walk, &python.process, &python.memory, FAKE_PYTHON_STACK);
}

static const uint32_t versions[] = {0x030b02f0, 0x030c01f0};

START_TEST(each_native_frame_has_its_own)
{
	setup_of(versions[_i]);
	expect(FAKE_PYTHON_STACK, FAKE_PYTHON_STACK + 0x100, "");
	expect(FAKE_PYTHON_STACK + 0x100, FAKE_PYTHON_STACK + 0x200, "py::inner:/a.py py::outer:/a.py");
	expect(FAKE_PYTHON_STACK + 0x200, FAKE_PYTHON_STACK + 0x300, "");
	expect(FAKE_PYTHON_STACK + 0x300, FAKE_PYTHON_STACK + 0x400, "py::<module>:/a.py");
	expect(FAKE_PYTHON_STACK + 0x400, FAKE_PYTHON_STACK + 0x1000, "");
}
END_TEST

START_TEST(a_place_is_in_its_code)
{
	setup_of(versions[_i]);
	ck_assert(
		python_walk_next(&walk, &python.memory, FAKE_PYTHON_STACK + 0x100, FAKE_PYTHON_STACK + 0x200, &frame));
	ck_assert_uint_eq(frame.end - frame.start, 2 * FAKE_PYTHON_UNITS);
	ck_assert_uint_eq(frame.ip, frame.start + 2 * 3 + 1);
	ck_assert_uint_eq(frame.line, 7);
	/* Before its first instruction */
	ck_assert(
		python_walk_next(&walk, &python.memory, FAKE_PYTHON_STACK + 0x100, FAKE_PYTHON_STACK + 0x200, &frame));
	ck_assert_uint_eq(frame.ip, frame.start + 1);
}
END_TEST

START_TEST(another_stack_has_none)
{
	setup_of(versions[0]);
	python_walk_init(&walk, &python.process, &python.memory, FAKE_PYTHON_STACK + 0x2000);
	expect(FAKE_PYTHON_STACK + 0x2000, FAKE_PYTHON_STACK + 0x100000, "");
}
END_TEST

START_TEST(other_versions_are_not_read)
{
	ck_assert_ptr_null(python_layout_find(0x030a00f0));
	ck_assert_ptr_null(python_layout_find(0x030d00f0));
	ck_assert_ptr_null(python_layout_find(0));
	python_walk_init(&walk, &(struct python_process){NULL, 0}, &python.memory, FAKE_PYTHON_STACK);
	expect(0, UINT64_MAX, "");
}
END_TEST

START_TEST(frames_that_lead_in_a_circle_end)
{
	unsigned n = 0;

	setup_of(versions[0]);
	fake_python_circle(&python);
	while (n < 1000 &&
	       python_walk_next(&walk, &python.memory, FAKE_PYTHON_STACK + 0x100, FAKE_PYTHON_STACK + 0x200, &frame))
		n++;
	ck_assert_uint_eq(n, 1000); /* the caller has a depth */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("python");
	TCase *tests = tcase_create("frames");

	tcase_add_loop_test(tests, each_native_frame_has_its_own, 0, 2);
	tcase_add_loop_test(tests, a_place_is_in_its_code, 0, 2);
	tcase_add_test(tests, another_stack_has_none);
	tcase_add_test(tests, other_versions_are_not_read);
	tcase_add_test(tests, frames_that_lead_in_a_circle_end);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
