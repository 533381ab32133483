// SPDX-License-Identifier: BSD-2-Clause
/* BTF made by code, and what is damaged about it. */
#include <check.h>

#include "btf_builder.h"
#include "guest/btf.h"
#include "run_suite.h"

static struct btf_builder builder;

static void setup(void)
{
	btf_builder_init(&builder);
}

static void teardown(void)
{
	btf_builder_deinit(&builder);
}

static uint32_t offset_of(const GByteArray *file, const char *structure, const char *member)
{
	GError *error = NULL;
	struct btf *btf = btf_new(file->data, file->len, &error);
	uint32_t offset = UINT32_MAX, bytes;

	ck_assert_msg(btf != NULL, "%s", error ? error->message : "");
	btf_member(btf, structure, member, &offset, &bytes);
	btf_free(btf);
	return offset;
}

START_TEST(members_are_found_by_name)
{
	uint32_t word = btf_builder_int(&builder, "int", 4);

	btf_builder_struct(&builder, "other", (struct btf_member_spec[]){{"pid", word, 8 * 77}, {NULL}});
	btf_builder_struct(&builder, "task_struct",
	                   (struct btf_member_spec[]){{"flags", word, 0}, {"pid", word, 8 * 1200}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(offset_of(file, "task_struct", "pid"), 1200);
	ck_assert_uint_eq(offset_of(file, "task_struct", "flags"), 0);
	ck_assert_uint_eq(offset_of(file, "task_struct", "comm"), UINT32_MAX);
	ck_assert_uint_eq(offset_of(file, "nowhere", "pid"), UINT32_MAX);
}
END_TEST

static uint32_t bytes_of(const GByteArray *file, const char *structure, const char *member)
{
	g_autoptr(GError) error = NULL;
	struct btf *btf = btf_new(file->data, file->len, &error);
	uint32_t offset, bytes = UINT32_MAX;

	ck_assert_msg(btf != NULL, "%s", error ? error->message : "");
	btf_member(btf, structure, member, &offset, &bytes);
	btf_free(btf);
	return bytes;
}

START_TEST(members_have_the_sizes_of_their_types)
{
	const uint32_t byte = btf_builder_int(&builder, "unsigned char", 1);
	const uint32_t typedefed = btf_builder_reference(&builder, BTF_BUILDER_TYPEDEF, "u8", byte);
	const uint32_t pointer = btf_builder_reference(&builder, BTF_BUILDER_POINTER, "", byte);
	const uint32_t text = btf_builder_array(&builder, byte, 16);
	const uint32_t pair = btf_builder_array(&builder, pointer, 2);

	btf_builder_struct(&builder, "task_struct",
	                   (struct btf_member_spec[]){{"on_cpu", typedefed, 0},
	                                              {"mm", pointer, 64},
	                                              {"comm", text, 128},
	                                              {"pair", pair, 256},
	                                              {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(bytes_of(file, "task_struct", "on_cpu"), 1);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "mm"), 8);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "comm"), 16);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "pair"), 16);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "no_such"), UINT32_MAX);
}
END_TEST

/* An array of itself, and arrays that no memory holds. */
START_TEST(sizes_that_cannot_be_are_none)
{
	const uint32_t word = btf_builder_int(&builder, "int", 4);
	const uint32_t large = btf_builder_array(&builder, word, 1u << 30);
	const uint32_t larger = btf_builder_array(&builder, large, 1u << 30);
	const uint32_t circle = btf_builder_array(&builder, 4, 1);

	btf_builder_struct(&builder, "task_struct",
	                   (struct btf_member_spec[]){{"large", large, 0},
	                                              {"larger", larger, 64},
	                                              {"circle", circle, 128},
	                                              {"nowhere", 999, 192},
	                                              {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(circle, 4);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "large"), 0);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "larger"), 0);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "circle"), 0);
	ck_assert_uint_eq(bytes_of(file, "task_struct", "nowhere"), 0);
}
END_TEST

/* struct pcpu_hot { union { struct { struct task_struct *current_task; int x; }; u8 pad[64]; }; } of Linux 6.2. */
START_TEST(members_of_anonymous_members_count)
{
	uint32_t word = btf_builder_int(&builder, "int", 4);
	uint32_t inner = btf_builder_struct(
		&builder, "", (struct btf_member_spec[]){{"current_task", word, 0}, {"x", word, 64}, {NULL}});
	uint32_t qualified = btf_builder_reference(&builder, BTF_BUILDER_CONST, "", inner);

	btf_builder_struct(&builder, "pcpu_hot",
	                   (struct btf_member_spec[]){{"first", word, 0}, {"", qualified, 8 * 16}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(offset_of(file, "pcpu_hot", "current_task"), 16);
	ck_assert_uint_eq(offset_of(file, "pcpu_hot", "x"), 24);
}
END_TEST

START_TEST(a_bit_field_has_no_offset)
{
	uint32_t word = btf_builder_int(&builder, "int", 4);

	btf_builder_bit_fields(&builder, "task_struct",
	                       (struct btf_member_spec[]){{"one", word, 3u << 24 | 8}, {"pid", word, 8 * 100}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(offset_of(file, "task_struct", "one"), UINT32_MAX);
	ck_assert_uint_eq(offset_of(file, "task_struct", "pid"), 100);
}
END_TEST

/* Anonymous structs that contain each other end, and so do types that refer to themselves. */
START_TEST(circles_end)
{
	btf_builder_struct(&builder, "",
	                   (struct btf_member_spec[]){{"", 1, 0}, {"", 1, 0}, {"", 2, 0}, {"", 2, 0}, {NULL}});
	btf_builder_reference(&builder, BTF_BUILDER_CONST, "", 2);
	btf_builder_struct(&builder, "task_struct",
	                   (struct btf_member_spec[]){{"", 1, 0}, {"", 2, 0}, {"", 3, 0}, {"", 999, 0}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	ck_assert_uint_eq(offset_of(file, "task_struct", "pid"), UINT32_MAX);
}
END_TEST

static const struct damage {
	uint32_t at; /* in the file */
	uint8_t value;
	enum btf_error code;
} damages[] = {
	{0, 0x9e, BTF_ERROR_FORMAT},            /* magic */
	{2, 2, BTF_ERROR_FORMAT},               /* version */
	{4, 23, BTF_ERROR_CORRUPT},             /* a header that is too short */
	{7, 1, BTF_ERROR_CORRUPT},              /* or longer than the file */
	{11, 1, BTF_ERROR_CORRUPT},             /* types outside */
	{15, 0x80, BTF_ERROR_CORRUPT},          /* too many of them */
	{19, 1, BTF_ERROR_CORRUPT},             /* names outside */
	{20, 0, BTF_ERROR_CORRUPT},             /* no names */
	{20, 2, BTF_ERROR_CORRUPT},             /* names that do not end */
	{12, 13, BTF_ERROR_CORRUPT},            /* half a type */
	{24 + 7, 0x1f, BTF_ERROR_CORRUPT},      /* no such kind */
	{24 + 16 + 4, 0xff, BTF_ERROR_CORRUPT}, /* more members than there are */
};

START_TEST(damage_is_refused)
{
	const struct damage *damage = &damages[_i];
	uint32_t word = btf_builder_int(&builder, "int", 4);
	g_autoptr(GError) error = NULL;

	btf_builder_struct(&builder, "task_struct", (struct btf_member_spec[]){{"pid", word, 0}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	file->data[damage->at] = damage->value;
	ck_assert_ptr_null(btf_new(file->data, file->len, &error));
	ck_assert_msg(g_error_matches(error, BTF_ERROR, (int)damage->code), "%s", error->message);
}
END_TEST

START_TEST(every_cut_is_refused)
{
	uint32_t word = btf_builder_int(&builder, "int", 4);

	btf_builder_struct(&builder, "task_struct", (struct btf_member_spec[]){{"pid", word, 0}, {NULL}});
	g_autoptr(GByteArray) file = btf_builder_finish(&builder);

	for (guint n = 0; n < file->len; n++) {
		g_autofree uint8_t *cut =
			g_memdup2(file->data, n); /* so that a sanitizer sees what is read behind it */

		ck_assert_ptr_null(btf_new(cut, n, NULL));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("btf");
	TCase *tests = tcase_create("btf");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, members_are_found_by_name);
	tcase_add_test(tests, members_have_the_sizes_of_their_types);
	tcase_add_test(tests, sizes_that_cannot_be_are_none);
	tcase_add_test(tests, members_of_anonymous_members_count);
	tcase_add_test(tests, a_bit_field_has_no_offset);
	tcase_add_test(tests, circles_end);
	tcase_add_loop_test(tests, damage_is_refused, 0, G_N_ELEMENTS(damages));
	tcase_add_test(tests, every_cut_is_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
