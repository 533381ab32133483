// SPDX-License-Identifier: BSD-2-Clause
/* Paths of fields, by types made by code, in a guest's memory. */
#include <check.h>

#include "field_types.h"
#include "guest/x86/page_tables_x86.h"
#include "run_suite.h"

#define AT UINT64_C(0xffff888000000000) /* mapped one to one */
#define PAGE_TABLES UINT64_C(0x100000)
#define PARENT 0x100u
#define TEXT 0x200u
#define LONG_TEXT 0xfe0u /* up to the end of what can be read */

static uint8_t memory[0x1000];
static uint64_t page_tables[3 * 512];
static struct btf *btf;
static GByteArray *types;
static uint32_t task;

static bool read_memory(struct guest *guest G_GNUC_UNUSED, gpa_t from, void *to, size_t bytes)
{
	const bool in_tables = from.value >= PAGE_TABLES;
	const uint64_t at = from.value - (in_tables ? PAGE_TABLES : 0),
		       n = in_tables ? sizeof(page_tables) : sizeof(memory);

	if (at >= n || bytes > n - at)
		return false;
	memcpy(to, (in_tables ? (const uint8_t *)page_tables : memory) + at, bytes);
	return true;
}

static const struct guest_ops ops = {.memory_read = read_memory};
static struct guest guest = {.ops = &ops, .kind = "fake", .vcpus = 1};

static void put_task(unsigned at, int32_t pid, const char *comm, uint64_t name, uint64_t parent, uint8_t flags)
{
	memcpy(memory + at, &pid, sizeof(pid));
	memcpy(memory + at + FIELD_COMM, comm, MIN(strlen(comm) + 1, 16));
	memcpy(memory + at + FIELD_NAME, &name, sizeof(name));
	memcpy(memory + at + FIELD_PARENT, &parent, sizeof(parent));
	memory[at + FIELD_FLAGS] = flags;
}

static void setup(void)
{
	types = field_types_make(&task);
	btf = btf_new(types->data, types->len, NULL);
	ck_assert_ptr_nonnull(btf);
	page_tables[(AT >> 39) & 511] = PAGE_TABLES + 0x1007;
	page_tables[512 + ((AT >> 30) & 511)] = 0x87;
	memset(memory, 0, sizeof(memory));
	put_task(0, -5, "sh", AT + TEXT, AT + PARENT, 0xfe);
	put_task(PARENT, 7, "sixteen letters.", AT + LONG_TEXT, 0, 1);
	memcpy(memory + TEXT, "a name", 7);
	memset(memory + LONG_TEXT, 'x', sizeof(memory) - LONG_TEXT);
}

static void teardown(void)
{
	btf_free(btf);
	g_byte_array_unref(types);
}

static bool parse(const char *text, struct field_path *path, GError **error)
{
	struct field_argument arguments[] = {{"prev", task, 0}, {"count", 0, 0}, {"curtask", 0, 0}};

	ck_assert(btf_structure(btf, "task", &arguments[2].structure));
	return field_path_parse(text, btf, arguments, G_N_ELEMENTS(arguments), path, error);
}

static const uint64_t values[] = {AT, AT + TEXT, AT + PARENT};

START_TEST(numbers_have_the_size_and_the_sign_of_their_types)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{"prev", AT},
		{"count", AT + TEXT},
		{"prev->pid", (uint64_t)-5},
		{"prev->flags", 0xfe},
		{"prev->parent->pid", 7},
		{"((struct task *)prev)->pid", (uint64_t)-5},
		{"((struct task *)prev)->parent->pid", 7},
		{"prev->parent", AT + PARENT},
		{"prev->name.text", AT + TEXT},
		{"prev->parent->parent", 0},
		{"prev->comm[1]", 'h'},
		{"curtask", AT + PARENT},
		{"curtask->pid", 7},
		{"((struct task *)curtask)->pid", 7},
		{"prev->parent->comm[15]", '.'},
	};
	struct page_walk walk;

	page_walk_init(&walk, &guest, PAGE_TABLES, false);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		struct field_path path;
		uint64_t number;

		ck_assert_msg(parse(cases[i].text, &path, &error), "%s", error ? error->message : "");
		ck_assert_msg(field_path_number(&path, &walk, values, &number), "%s", cases[i].text);
		ck_assert_msg(number == cases[i].value, "%s", cases[i].text);
		field_path_clear(&path);
	}
}
END_TEST

START_TEST(texts_end_with_zero_or_with_their_array)
{
	static const struct {
		const char *text, *value;
	} cases[] = {{"str(prev->comm)", "sh"},
	             {"prev->comm", "sh"},
	             {"str(((struct task *)prev)->parent->comm)", "sixteen letters."},
	             {"str(prev->parent->comm)", "sixteen letters."},
	             {"str(prev->name.text)", "a name"},
	             {"str(count)", "a name"}};
	char text[FIELD_TEXT_BYTES];
	struct page_walk walk;

	page_walk_init(&walk, &guest, PAGE_TABLES, false);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		struct field_path path;

		ck_assert_msg(parse(cases[i].text, &path, &error), "%s", error ? error->message : "");
		ck_assert(field_path_text(&path, &walk, values, text));
		ck_assert_str_eq(text, cases[i].value);
		field_path_clear(&path);
	}
}
END_TEST

START_TEST(memory_that_is_not_there_is_a_fault)
{
	struct field_path number, text;
	struct page_walk walk;
	char read[FIELD_TEXT_BYTES];
	uint64_t value;

	page_walk_init(&walk, &guest, PAGE_TABLES, false);
	ck_assert(parse("prev->parent->parent->pid", &number, NULL));
	ck_assert(!field_path_number(&number, &walk, values, &value));
	ck_assert(parse("str(prev->parent->name.text)", &text, NULL));
	ck_assert(!field_path_text(&text, &walk, values, read)); /* it has no end where there is memory */
	memory[sizeof(memory) - 1] = 0;
	ck_assert(field_path_text(&text, &walk, values, read));
	ck_assert_uint_eq(strlen(read), sizeof(memory) - LONG_TEXT - 1);
	field_path_clear(&number);
	field_path_clear(&text);
}
END_TEST

START_TEST(other_paths_are_refused)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "begins with no argument"},
		{"next->pid", "begins with no argument"},
		{"prev->", "is no path"},
		{"prev->pid2", "no member pid2"},
		{"prev->pid->pid", "behind what is no pointer"},
		{"prev.pid", "behind what is no structure"},
		{"prev->pid.pid", "no member pid"},
		{"((struct none *)count)->pid", "cast to a structure that"},
		{"((struct task *)count)", "a cast without ->"},
		{"((struct task *)count", "a cast without ->"},
		{"((struct task)count)->pid", "begins with no argument"},
		{"prev->name", "is no number"},
		{"str(prev->pid)", "is no text"},
		{"str(prev)", "is no text"},
		{"str(prev->comm", "is no path"},
		{"prev->pid)", "is no path"},
		{"prev->pid[0]", "has [ behind what is no array"},
		{"prev[0]", "has [ behind what is no array"},
		{"prev->comm[16]", "an element that its array does not have"},
		{"prev->comm[-1]", "an element that its array does not have"},
		{"prev->comm[1", "an element that its array does not have"},
		{"prev->comm[99999999999999999999]", "an element that its array does not have"},
		{"prev->comm[1]x", "is no path"},
		{"count->pid", "behind what is no pointer"},
		{"prev->parent->parent->parent->parent->parent->parent->parent->parent->pid", NULL},
		{"prev->parent->parent->parent->parent->parent->parent->parent->parent->parent->pid", "too many"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;
		struct field_path path;
		const bool parsed = parse(cases[i].text, &path, &error);

		if (parsed)
			field_path_clear(&path);
		ck_assert_msg(parsed == !cases[i].why, "%s", cases[i].text);
		ck_assert_msg(parsed || strstr(error->message, cases[i].why), "%s", parsed ? "" : error->message);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("field_path");
	TCase *all = tcase_create("field_path");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, numbers_have_the_size_and_the_sign_of_their_types);
	tcase_add_test(all, texts_end_with_zero_or_with_their_array);
	tcase_add_test(all, memory_that_is_not_there_is_a_fault);
	tcase_add_test(all, other_paths_are_refused);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
